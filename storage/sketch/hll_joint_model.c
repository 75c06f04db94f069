/* hll_joint_model.c - how likely the registers of two sketches are, by the sizes of the parts.
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
 * What shows
 * ----------
 * An element of A\B of rank k shows if the others' registers are below k.  The probability that an
 * element shows is
 *
 *     c = sum over k of 2^-k F_b+x(k - 1)
 */
#include "storage/sketch/hll_joint_model.h"

#include <math.h>
#include <string.h>

#define Q (JOINT_VALUES - 2)
#define M ((double)HLL_REGISTERS)

static double t_of(int k)
{
    return ldexp(1 / M, -(k < Q ? k : Q));
}

void joint_count(const struct hll *a, const struct hll *b, struct joint_counts *ret)
{
    uint16_t pairs[JOINT_VALUES][JOINT_VALUES] = {{0}};
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        unsigned k = a->registers[i] < JOINT_VALUES ? a->registers[i] : JOINT_VALUES - 1;
        unsigned l = b->registers[i] < JOINT_VALUES ? b->registers[i] : JOINT_VALUES - 1;
        pairs[k][l]++;
    }
    memset(ret, 0, sizeof(*ret));
    for (size_t k = 0; k < JOINT_VALUES; k++) {
        ret->equal[k] = pairs[k][k];
        for (size_t l = k + 1; l < JOINT_VALUES; l++) {
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

double joint_log_likelihood(const struct joint_counts *c, const double s[PARTS])
{
    double w[PARTS];
    joint_weights(c, w);
    double sum = -(w[ONLY_A] * s[ONLY_A] + w[ONLY_B] * s[ONLY_B] + w[BOTH] * s[BOTH]);
    for (int k = 1; k < JOINT_VALUES; k++) {
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

void joint_slope(const struct joint_counts *c, const double s[PARTS], double ret[PARTS])
{
    joint_weights(c, ret);
    for (int p = 0; p < PARTS; p++) {
        ret[p] = -ret[p];
    }
    for (int k = 1; k < JOINT_VALUES; k++) {
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
    double p[JOINT_VALUES], gain[JOINT_VALUES];
};

static void marginal_of(double s, struct marginal *ret)
{
    ret->p[0] = exp(-s / M);
    ret->gain[0] = -1 / M;
    for (int k = 1; k < JOINT_VALUES; k++) {
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

void joint_information(const double s[PARTS], double ret[PARTS][PARTS])
{
    struct marginal a, b, a_x, b_x;
    marginal_of(s[ONLY_A], &a);
    marginal_of(s[ONLY_B], &b);
    marginal_of(s[ONLY_A] + s[BOTH], &a_x);
    marginal_of(s[ONLY_B] + s[BOTH], &b_x);
    memset(ret, 0, sizeof(double[PARTS][PARTS]));
    for (int k = 0; k < JOINT_VALUES; k++) {
        equal_information(s, k, ret);
        for (int l = k + 1; l < JOINT_VALUES; l++) {
            double p = a_x.p[k] * b.p[l]; /* A's = k < B's = l: only B\A can have left l */
            if (p > TOO_RARE) {
                add_information(ret, p, (double[PARTS]){a_x.gain[k], b.gain[l], a_x.gain[k]});
            }
            p = b_x.p[k] * a.p[l];
            if (p > TOO_RARE) {
                add_information(ret, p, (double[PARTS]){a.gain[l], b_x.gain[k], b_x.gain[k]});
            }
        }
    }
}

/* ---- what shows ---- */

double joint_visibility(double s)
{
    double sum = 0;
    for (int k = 1; k < JOINT_VALUES; k++) {
        sum += ldexp(1, -(k < Q ? k : Q)) * exp(-s * t_of(k - 1));
    }
    return sum;
}
