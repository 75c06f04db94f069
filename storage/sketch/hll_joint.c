/* hll_joint.c - the joint maximum-likelihood estimate of two sketches.
 *
 * The model, with the sizes a, b and x, is described at the top of hll_joint_model.c.
 *
 *
 * The maximum
 * -----------
 * The search is Fisher scoring: Newton's method with the expected curvature instead of the observed
 * one.  The expected curvature is positive definite everywhere, and the errors need it anyway.  A
 * step is halved until the likelihood grows.  At the maximum a part may have no elements at all, as
 * with disjoint sets or a subset.  So no step takes all of a part.  A part that has fallen below a
 * thousandth of an element, and would fall on, is held there and is 0 in the end.
 *
 *
 * The errors
 * ----------
 * The inverse of the Fisher information I is the covariance of the estimates if the sizes are
 * Poisson distributed.  Then it includes the variance of the sizes themselves, s for a size s.  The
 * sizes here are fixed, so cov = I^-1 - diag(a, b, x).  For one sketch and few elements this is the
 * known variance of linear counting, m (e^t - t - 1) with t = n / m.
 *
 * If a part is small beside what hides it, only some of its elements show, each with a probability
 * c, and what shows is a count.  If none shows, the estimate is 0 and its curvature says 0 +- 0,
 * while 3 / c elements may well be hidden (the "rule of three").  So the information is taken for
 * one more element that shows, at s + 1 / c.  That is nothing beside a large part, and about right
 * for a small one.
 */
#include "storage/sketch/hll_joint.h"

#include <math.h>
#include <string.h>

#include "storage/sketch/hll_joint_model.h"

#define STEPS_MAX   60
#define HALVED_MAX  20
#define ENOUGH      1e-10 /* of the log-likelihood: a hundred-thousandth of a standard error */
#define LEAST_LEFT  0.02  /* the share of a part that one step leaves at least */
#define NOTHING     1e-3  /* elements */
#define ELEMENTS_UP 1e20  /* registers that are all full: more than any set */

/* Solve matrix * x = right in place by Cholesky's method.  False: the matrix is not symmetric and
 * positive definite. */
static bool solve_cholesky(const double matrix[PARTS][PARTS], double right[PARTS])
{
    double l[PARTS][PARTS] = {{0}};
    for (int i = 0; i < PARTS; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = matrix[i][j];
            for (int k = 0; k < j; k++) {
                sum -= l[i][k] * l[j][k];
            }
            if (i == j && !(sum > 0)) {
                return false;
            }
            l[i][j] = i == j ? sqrt(sum) : sum / l[j][j];
        }
    }
    for (int i = 0; i < PARTS; i++) {
        for (int k = 0; k < i; k++) {
            right[i] -= l[i][k] * right[k];
        }
        right[i] /= l[i][i];
    }
    for (int i = PARTS - 1; i >= 0; i--) {
        for (int k = i + 1; k < PARTS; k++) {
            right[i] -= l[k][i] * right[k];
        }
        right[i] /= l[i][i];
    }
    return true;
}

/* ---- the maximum ---- */

/* The next step.  Parts that are held at nothing stay.  *ret_gain is about twice what the step
 * promises to gain.  False: there is no step. */
static bool next_step(
    const struct joint_counts *c, const double s[PARTS], double ret[PARTS], double *ret_gain)
{
    double info[PARTS][PARTS];
    double gradient[PARTS];
    bool held[PARTS];
    joint_slope(c, s, gradient);
    joint_information(s, info);
    for (int i = 0; i < PARTS; i++) {
        held[i] = s[i] <= NOTHING && gradient[i] <= 0;
    }
    for (int i = 0; i < PARTS; i++) { /* in units of each size: they may differ by many powers */
        for (int j = 0; j < PARTS; j++) {
            info[i][j] = held[i] || held[j] ? 0 : info[i][j] * s[i] * s[j];
        }
        info[i][i] = held[i] ? 1 : info[i][i] * (1 + 1e-9);
        gradient[i] = held[i] ? 0 : gradient[i] * s[i];
        ret[i] = gradient[i];
    }
    if (!solve_cholesky(info, ret)) {
        return false;
    }
    *ret_gain = 0;
    for (int i = 0; i < PARTS; i++) {
        *ret_gain += ret[i] * gradient[i];
        ret[i] *= s[i];
    }
    return isfinite(*ret_gain);
}

/* Go along @step, or half of it, or a quarter and so on, until the likelihood grows.  False: it
 * does not. */
static bool joint_climb(const struct joint_counts *c, const double step[PARTS], double s[PARTS])
{
    double before = joint_log_likelihood(c, s);
    for (int halved = 0; halved < HALVED_MAX; halved++) {
        double share = ldexp(1, -halved);
        double tried[PARTS];
        for (int i = 0; i < PARTS; i++) {
            tried[i] = fmin(fmax(s[i] + share * step[i], s[i] * LEAST_LEFT), ELEMENTS_UP);
        }
        if (joint_log_likelihood(c, tried) > before) {
            memcpy(s, tried, sizeof(tried));
            return true;
        }
    }
    return false;
}

static void joint_maximize(const struct joint_counts *c, double s[PARTS])
{
    for (int i = 0; i < STEPS_MAX; i++) {
        double step[PARTS];
        double gain = 0;
        if (!next_step(c, s, step, &gain) || gain < ENOUGH || !joint_climb(c, step, s)) {
            break;
        }
    }
}

/* ---- the figures ---- */

/* The covariance of the three sizes; see the top. */
static void joint_covariance(const double s[PARTS], double ret[PARTS][PARTS])
{
    double info[PARTS][PARTS];
    double all = s[ONLY_A] + s[ONLY_B] + s[BOTH];
    double at[PARTS] = {
        s[ONLY_A] + 1 / joint_visibility(s[ONLY_B] + s[BOTH]),
        s[ONLY_B] + 1 / joint_visibility(s[ONLY_A] + s[BOTH]),
        s[BOTH] + 1 / joint_visibility(all),
    };
    joint_information(at, info);
    for (int i = 0; i < PARTS; i++) { /* in units of each size: they may differ by many powers */
        for (int j = 0; j < PARTS; j++) {
            info[i][j] *= at[i] * at[j];
        }
    }
    for (int i = 0; i < PARTS; i++) {
        double column[PARTS] = {0};
        column[i] = 1;
        bool solved = solve_cholesky(info, column);
        for (int j = 0; j < PARTS; j++) {
            ret[j][i] = solved ? column[j] * at[i] * at[j] : i == j ? at[i] * at[i] : 0;
        }
        ret[i][i] = fmax(ret[i][i] - at[i], 0);
    }
}

/* A figure with its error.  @value is a weighted sum of the sizes, or a function of them; the
 * weights are its derivatives. */
static struct hll_figure figure_of(
    double value, const double cov[PARTS][PARTS], double only_a, double only_b, double both)
{
    const double weight[PARTS] = {only_a, only_b, both};
    double variance = 0;
    for (int i = 0; i < PARTS; i++) {
        for (int j = 0; j < PARTS; j++) {
            variance += weight[i] * weight[j] * cov[i][j];
        }
    }
    return (struct hll_figure){value, sqrt(fmax(variance, 0))};
}

/* Where the search begins: at inclusion and exclusion, with at least one element a part. */
static void first_guess(const struct hll *a, const struct hll *b, double ret[PARTS])
{
    struct hll both = *a;
    hll_unite(&both, b);
    double size_a = (double)hll_estimate(a);
    double size_b = (double)hll_estimate(b);
    double either = (double)hll_estimate(&both);
    ret[ONLY_A] = fmin(fmax(either - size_b, 1), ELEMENTS_UP);
    ret[ONLY_B] = fmin(fmax(either - size_a, 1), ELEMENTS_UP);
    ret[BOTH] = fmin(fmax(size_a + size_b - either, 1), ELEMENTS_UP);
}

void hll_joint_estimate(const struct hll *a, const struct hll *b, struct hll_joint *ret)
{
    struct joint_counts counts;
    double s[PARTS];
    double cov[PARTS][PARTS];
    joint_count(a, b, &counts);
    if (counts.equal[0] == HLL_REGISTERS) {
        memset(ret, 0, sizeof(*ret));
        return;
    }
    first_guess(a, b, s);
    joint_maximize(&counts, s);
    for (int i = 0; i < PARTS; i++) {
        s[i] = s[i] <= NOTHING ? 0 : s[i];
    }
    joint_covariance(s, cov);
    double all = s[ONLY_A] + s[ONLY_B] + s[BOTH];
    double per = all > 0 ? 1 / all : 0;
    double j = s[BOTH] * per;
    ret->only_a = figure_of(s[ONLY_A], cov, 1, 0, 0);
    ret->only_b = figure_of(s[ONLY_B], cov, 0, 1, 0);
    ret->both = figure_of(s[BOTH], cov, 0, 0, 1);
    ret->a = figure_of(s[ONLY_A] + s[BOTH], cov, 1, 0, 1);
    ret->b = figure_of(s[ONLY_B] + s[BOTH], cov, 0, 1, 1);
    ret->either = figure_of(all, cov, 1, 1, 1);
    ret->jaccard = figure_of(j, cov, -j * per, -j * per, (1 - j) * per);
}
