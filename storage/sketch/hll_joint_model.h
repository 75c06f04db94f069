/* hll_joint_model.h - what the registers of two sketches say about the sizes of three parts.
 *
 * Layer: storage, private to hll_joint.c, pure: no I/O, no clock, no allocation.  Thread-safe.
 *
 * The parts of two sets A and B are what is only in A, only in B, and in both.  A size is a number
 * of elements.  The model is described at the top of hll_joint_model.c.
 */
#ifndef STORAGE_SKETCH_HLL_JOINT_MODEL_H
#define STORAGE_SKETCH_HLL_JOINT_MODEL_H

#include "storage/sketch/hll.h"

#define JOINT_VALUES 52 /* of a register: 0..51 */

enum joint_part { ONLY_A, ONLY_B, BOTH, PARTS };

/* How many registers hold k, by what the other sketch's register is. */
struct joint_counts {
    double a_less[JOINT_VALUES],
        a_greater[JOINT_VALUES]; /* A's value, where it is less (greater) than B's */
    double b_less[JOINT_VALUES], b_greater[JOINT_VALUES];
    double equal[JOINT_VALUES];
};

/* Count the registers of two sketches.  What is above the greatest value counts as the greatest. */
void joint_count(const struct hll *a, const struct hll *b, struct joint_counts *ret);

/* The log-likelihood of the sizes @s, all above 0, but for what does not depend on the sizes. */
double joint_log_likelihood(const struct joint_counts *c, const double s[PARTS]);

/* The derivatives of the log-likelihood by the three sizes, all above 0. */
void joint_slope(const struct joint_counts *c, const double s[PARTS], double ret[PARTS]);

/* The expected curvature of the log-likelihood at the sizes @s: the Fisher information. */
void joint_information(const double s[PARTS], double ret[PARTS][PARTS]);

/* The probability that an element shows among @s elements that may hide it. */
double joint_visibility(double s);

#endif
