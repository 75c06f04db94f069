/* hll_joint.h - how many elements two sketches have in common, and each for itself.
 *
 * Layer: storage, pure (no I/O, no clock, no allocation).  Thread-safe.  Some 0.1 ms a call, 25 KB
 * of stack.
 *
 * Inclusion and exclusion, |A| + |B| - |A or B|, errs by some 0.8 % of the union however small the
 * intersection is.  The registers of both sketches together tell more: the maximum-likelihood
 * estimate of the three disjoint parts, with the errors that the curvature of the likelihood gives.
 * Source: O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017,
 * arXiv:1702.01284, section 4 (the model and its likelihood); the errors and the search for the
 * maximum are described at the top of hll_joint.c.
 */
#ifndef STORAGE_SKETCH_HLL_JOINT_H
#define STORAGE_SKETCH_HLL_JOINT_H

#include "storage/sketch/hll.h"

/* Half of a 95 % interval, in standard errors. */
#define HLL_JOINT_95 1.96

/* @error is the standard error, in the unit of @value: value +- HLL_JOINT_95 * error holds the
 * truth 95 times in a hundred. */
struct hll_figure {
    double value, error;
};

/* The first three are disjoint; the others follow from them, with errors that know how those of the
 * three hang together.  Nothing is negative, a NaN or infinite; jaccard is 0..1, and 0 +- 0 for two
 * empty sets. */
struct hll_joint {
    struct hll_figure only_a, only_b, both;
    struct hll_figure a, b, either; /* |A|, |B|, |A or B| */
    struct hll_figure jaccard;      /* both / either */
};

/* Any registers are taken; forged ones give figures that mean nothing. */
void hll_joint_estimate(const struct hll *a, const struct hll *b, struct hll_joint *ret);

#endif
