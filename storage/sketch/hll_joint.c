/* hll_joint.c - the joint maximum-likelihood estimate of two sketches.
 *
 *
 * The model ([Ertl 2017], section 4)
 * ----------------------------------
 * A\B, B\A and A&B throw their elements into the m registers independently of each other; call
 * their sizes a, b and x.  With sizes that are Poisson distributed, registers are independent too,
 * and a part of size s leaves a register at or below k with the probability
 *
 *     F_s(k) = exp(-s t(k)),  t(k) = 2^-k / m for k <= q,  t(q + 1) = 0
 *
 * A's register is the greater one of what A\B and A&B left, B's likewise, so
 *
 *     P(A's <= k, B's <= l) = F_a(k) F_b(l) F_x(min(k, l))
 *
 * and the likelihood of what is in the registers follows by differences.  All that counts is how
 * often a register of A (of B) has each value while the other's is less, the same or greater.
 * These are 5 histograms.  With T(k) = t(min(k, q)), the log-likelihood is the sum over the
 * registers of
 *
 *     A's = k < B's = l    log(1 - e^-(a+x)T(k)) + log(1 - e^-bT(l))                     [k, l > 0]
 *     A's = k > B's = l    log(1 - e^-aT(k)) + log(1 - e^-(b+x)T(l))
 *     A's = B's = k        log(1 - e^-(a+x)T(k) - e^-(b+x)T(k) + e^-(a+b+x)T(k))
 *
 * less a, b and x times the sum of those t(k) that each is multiplied with.
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
 * If a part is small beside what hides it, only some of its elements show.  An element of A\B of
 * rank k shows if the others' registers are below k.  The probability that an element shows is
 *
 *     c = sum over k of 2^-k F_b+x(k - 1)
 *
 * and what shows is a count.  If none shows, the estimate is 0 and its curvature says 0 +- 0, while
 * 3 / c elements may well be hidden (the "rule of three").  So the information is taken for one
 * more element that shows, at s + 1 / c.  That is nothing beside a large part, and about right for
 * a small one.
 */
#include "storage/sketch/hll_joint.h"

#include <math.h>
#include <string.h>

#define Q      50
#define VALUES (Q + 2) /* of a register: 0..51 */
#define M      ((double)HLL_REGISTERS)

#define STEPS_MAX   60
#define HALVED_MAX  20
#define ENOUGH      1e-10 /* of the log-likelihood: a hundred-thousandth of a standard error */
#define LEAST_LEFT  0.02  /* of a part, after one step */
#define NOTHING     1e-3  /* elements */
#define ELEMENTS_UP 1e20  /* registers that are all full: more than any set */

enum part { ONLY_A, ONLY_B, BOTH, PARTS };

/* How many registers hold k, by what the other sketch's register is. */
struct joint_counts {
    double a_less[VALUES], a_greater[VALUES]; /* A's value, where it is less (greater) than B's */
    double b_less[VALUES], b_greater[VALUES];
    double equal[VALUES];
};

static double t_of(int k)
{
    return ldexp(1 / M, -(k < Q ? k : Q));
}

static void count_pairs(const struct hll *a, const struct hll *b, struct joint_counts *ret)
{
    uint16_t pairs[VALUES][VALUES] = {{0}};
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        unsigned k = a->registers[i] < VALUES ? a->registers[i] : VALUES - 1;
        unsigned l = b->registers[i] < VALUES ? b->registers[i] : VALUES - 1;
        pairs[k][l]++;
    }
    memset(ret, 0, sizeof(*ret));
    for (size_t k = 0; k < VALUES; k++) {
        ret->equal[k] = pairs[k][k];
        for (size_t l = k + 1; l < VALUES; l++) {
            ret->a_less[k] += pairs[k][l];
            ret->b_greater[l] += pairs[k][l];
            ret->a_greater[l] += pairs[l][k];
            ret->b_less[k] += pairs[l][k];
        }
    }
}

/* ---- the likelihood ---- */

/* 1 - e^-(a+x)T - e^-(b+x)T + e^-(a+b+x)T as a sum of positive terms: an element in common is
 * there, or none of these, but one of A\B and one of B\A. */
static double equal_probability(const double s[PARTS], double t)
{
    double none_in_common = exp(-s[BOTH] * t);
    return -expm1(-s[BOTH] * t) + none_in_common * expm1(-s[ONLY_A] * t) * expm1(-s[ONLY_B] * t);
}

/* count * log(1 - e^-st); 0 if there is nothing to explain. */
static double log_shown(double count, double s, double t)
{
    return count > 0 ? count * log(-expm1(-s * t)) : 0;
}

/* The derivative of log_shown() by s. */
static double log_shown_slope(double count, double s, double t)
{
    return count > 0 ? count * t / expm1(s * t) : 0;
}

/* The sums of t(k) that a, b and x are multiplied with. */
static void joint_weights(const struct joint_counts *c, double ret[PARTS])
{
    memset(ret, 0, PARTS * sizeof(*ret));
    for (int k = 0; k <= Q; k++) {
        double t = t_of(k);
        ret[ONLY_A] += t * (c->a_less[k] + c->equal[k] + c->a_greater[k]);
        ret[ONLY_B] += t * (c->b_less[k] + c->equal[k] + c->b_greater[k]);
        ret[BOTH] += t * (c->a_less[k] + c->equal[k] + c->b_less[k]);
    }
}

static double log_likelihood(const struct joint_counts *c, const double s[PARTS])
{
    double w[PARTS];
    joint_weights(c, w);
    double sum = -(w[ONLY_A] * s[ONLY_A] + w[ONLY_B] * s[ONLY_B] + w[BOTH] * s[BOTH]);
    for (int k = 1; k < VALUES; k++) {
        double t = t_of(k);
        sum += log_shown(c->a_less[k], s[ONLY_A] + s[BOTH], t) +
               log_shown(c->a_greater[k], s[ONLY_A], t) +
               log_shown(c->b_less[k], s[ONLY_B] + s[BOTH], t) +
               log_shown(c->b_greater[k], s[ONLY_B], t);
        if (c->equal[k] > 0) {
            sum += c->equal[k] * log(equal_probability(s, t));
        }
    }
    return sum;
}

/* The derivatives of the log-likelihood by the three sizes. */
static void joint_slope(const struct joint_counts *c, const double s[PARTS], double ret[PARTS])
{
    joint_weights(c, ret);
    for (int p = 0; p < PARTS; p++) {
        ret[p] = -ret[p];
    }
    for (int k = 1; k < VALUES; k++) {
        double t = t_of(k);
        double a_or_x = log_shown_slope(c->a_less[k], s[ONLY_A] + s[BOTH], t);
        double b_or_x = log_shown_slope(c->b_less[k], s[ONLY_B] + s[BOTH], t);
        ret[ONLY_A] += a_or_x + log_shown_slope(c->a_greater[k], s[ONLY_A], t);
        ret[ONLY_B] += b_or_x + log_shown_slope(c->b_greater[k], s[ONLY_B], t);
        ret[BOTH] += a_or_x + b_or_x;
        double p = c->equal[k] > 0 ? equal_probability(s, t) : 0;
        if (p > 0) {
            double e_a = exp(-(s[ONLY_A] + s[BOTH]) * t);
            double e_b = exp(-(s[ONLY_B] + s[BOTH]) * t);
            double e_all = exp(-(s[ONLY_A] + s[ONLY_B] + s[BOTH]) * t);
            ret[ONLY_A] += c->equal[k] * t * (e_a - e_all) / p;
            ret[ONLY_B] += c->equal[k] * t * (e_b - e_all) / p;
            ret[BOTH] += c->equal[k] * t * (e_a + e_b - e_all) / p;
        }
    }
}

/* ---- the information ---- */

/* A register that the elements of a set of size s are thrown into: the probability of each value k,
 * and gain[k] = d log P(k) / ds. */
struct marginal {
    double p[VALUES], gain[VALUES];
};

static void marginal_of(double s, struct marginal *ret)
{
    ret->p[0] = exp(-s / M);
    ret->gain[0] = -1 / M;
    for (int k = 1; k < VALUES; k++) {
        double t = t_of(k);
        double below = k <= Q ? t : 0; /* full registers have no upper bound to stay below */
        ret->p[k] = exp(-s * below) * -expm1(-s * t);
        ret->gain[k] = t / expm1(s * t) - below;
    }
}

static void add_information(double info[PARTS][PARTS], double p, const double gain[PARTS])
{
    for (int i = 0; i < PARTS; i++) {
        for (int j = 0; j < PARTS; j++) {
            info[i][j] += M * p * gain[i] * gain[j];
        }
    }
}

/* Add the information of registers with A's = B's = k. */
static void equal_information(const double s[PARTS], int k, double info[PARTS][PARTS])
{
    double t = t_of(k);
    double below = k <= Q ? t : 0;
    double all = s[ONLY_A] + s[ONLY_B] + s[BOTH];
    if (k == 0) {
        add_information(info, exp(-all / M), (double[PARTS]){-1 / M, -1 / M, -1 / M});
        return;
    }
    double p = equal_probability(s, t);
    if (p <= 0) {
        return;
    }
    double e_a = exp(-(s[ONLY_A] + s[BOTH]) * t);
    double e_b = exp(-(s[ONLY_B] + s[BOTH]) * t);
    double e_all = exp(-all * t);
    add_information(info, p * exp(-all * below),
        (double[PARTS]){t * (e_a - e_all) / p - below, t * (e_b - e_all) / p - below,
            t * (e_a + e_b - e_all) / p - below});
}

#define TOO_RARE (1e-12 / HLL_REGISTERS)

/* The expected curvature of the log-likelihood. */
static void joint_information(const double s[PARTS], double info[PARTS][PARTS])
{
    struct marginal a, b, a_x, b_x;
    marginal_of(s[ONLY_A], &a);
    marginal_of(s[ONLY_B], &b);
    marginal_of(s[ONLY_A] + s[BOTH], &a_x);
    marginal_of(s[ONLY_B] + s[BOTH], &b_x);
    memset(info, 0, sizeof(double[PARTS][PARTS]));
    for (int k = 0; k < VALUES; k++) {
        equal_information(s, k, info);
        for (int l = k + 1; l < VALUES; l++) {
            double p = a_x.p[k] * b.p[l]; /* A's = k < B's = l: only B\A can have left l */
            if (p > TOO_RARE) {
                add_information(info, p, (double[PARTS]){a_x.gain[k], b.gain[l], a_x.gain[k]});
            }
            p = b_x.p[k] * a.p[l];
            if (p > TOO_RARE) {
                add_information(info, p, (double[PARTS]){a.gain[l], b_x.gain[k], b_x.gain[k]});
            }
        }
    }
}

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
    double before = log_likelihood(c, s);
    for (int halved = 0; halved < HALVED_MAX; halved++) {
        double share = ldexp(1, -halved);
        double tried[PARTS];
        for (int i = 0; i < PARTS; i++) {
            tried[i] = fmin(fmax(s[i] + share * step[i], s[i] * LEAST_LEFT), ELEMENTS_UP);
        }
        if (log_likelihood(c, tried) > before) {
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

/* The probability that an element shows among @s other elements; c in the text at the top. */
static double joint_visibility(double s)
{
    double sum = 0;
    for (int k = 1; k < VALUES; k++) {
        sum += ldexp(1, -(k < Q ? k : Q)) * exp(-s * t_of(k - 1));
    }
    return sum;
}

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
    struct hll both;
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        both.registers[i] = a->registers[i] > b->registers[i] ? a->registers[i] : b->registers[i];
    }
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
    count_pairs(a, b, &counts);
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
