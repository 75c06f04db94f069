/* hll_joint.h - how many elements two sets have in common, from their sketches.
 *
 * Layer: storage, pure: no I/O, no clock, no allocation.  Thread-safe.  A call takes about 0.1 ms
 * and 25 KB of stack.
 *
 * The sketches (hll.h) of two pages tell how many visitors have seen both, one or the other.  The
 * simple way is inclusion and exclusion, |A| + |B| - |A or B|.  Its error is about 0.8 % of the
 * union, however small the intersection is.  The registers of both sketches together tell more.
 * This is the maximum-likelihood estimate of the three disjoint parts: only in A, only in B, in
 * both.  The curvature of the likelihood gives the errors of the figures.
 *
 * Source: O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017,
 * arXiv:1702.01284, section 4: the model and its likelihood.  The errors and the search for the
 * maximum are described at the top of hll_joint.c, the model at the top of hll_joint_model.c.
 */
#ifndef STORAGE_SKETCH_HLL_JOINT_H
#define STORAGE_SKETCH_HLL_JOINT_H

#include "storage/sketch/hll.h"

/* Half of a 95 % interval, in standard errors. */
#define HLL_JOINT_95 1.96

/* @error is the standard error, in the unit of @value.  The truth lies within value +- HLL_JOINT_95
 * * error 95 times in a hundred. */
struct hll_figure {
    double value, error;
};

/* The first three figures are disjoint parts.  The others follow from them, with errors that
 * include how the parts depend on each other.  No member is negative, a NaN or infinite.  jaccard
 * is 0..1; for two empty sets it is 0 +- 0. */
struct hll_joint {
    struct hll_figure only_a, only_b, both;
    struct hll_figure a, b, either; /* |A|, |B|, |A or B| */
    struct hll_figure jaccard;      /* both / either */
};

/* Estimate the parts of @a and @b.  Any registers are taken; forged ones give figures that mean
 * nothing. */
void hll_joint_estimate(const struct hll *a, const struct hll *b, struct hll_joint *ret);

#endif
