/* hll_joint.c - how much narrower is the joint estimate of an intersection than
 *inclusion-exclusion?
 *
 *	hll_joint [pairs of sets a row] [elements in either] [seed]
 *
 * Sets of equal size, drawn again for each pair; errors are root mean squares over the pairs, in
 * elements.  "holds": how often the 95 % interval that the joint estimate gives itself held the
 * truth.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "storage/sketch/hll_joint.h"

static const double jaccards[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9};

/* splitmix64 (Steele, Lea, Flood) */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void throw_in(struct hll *hll, uint64_t hash)
{
    uint8_t *reg = &hll->registers[hash % HLL_REGISTERS];
    uint8_t count = (uint8_t)(__builtin_ctzll(hash >> 14 | UINT64_C(1) << 50) + 1);
    *reg = count > *reg ? count : *reg;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

struct row {
    double plain, joint, said; /* sums of squares */
    double us;
    int held;
};

static void one_pair(uint64_t *state, long only, long both, struct row *row)
{
    struct hll a;
    struct hll b;
    hll_clear(&a);
    hll_clear(&b);
    for (long i = 0; i < only; i++) {
        throw_in(&a, draw(state));
        throw_in(&b, draw(state));
    }
    for (long i = 0; i < both; i++) {
        uint64_t hash = draw(state);
        throw_in(&a, hash);
        throw_in(&b, hash);
    }
    struct hll_joint joint;
    double start = now_us();
    hll_joint_estimate(&a, &b, &joint);
    row->us += now_us() - start;
    double off = joint.both.value - (double)both;
    row->joint += off * off;
    row->said += joint.both.error * joint.both.error;
    row->held += fabs(off) <= HLL_JOINT_95 * joint.both.error ? 1 : 0;
    double plain = (double)hll_estimate(&a) + (double)hll_estimate(&b);
    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        a.registers[i] = a.registers[i] > b.registers[i] ? a.registers[i] : b.registers[i];
    }
    plain -= (double)hll_estimate(&a) + (double)both;
    row->plain += plain * plain;
}

int main(int argc, char **argv)
{
    long pairs = argc > 1 ? strtol(argv[1], NULL, 10) : 200;
    long either = argc > 2 ? strtol(argv[2], NULL, 10) : 100000;
    uint64_t state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (pairs < 1 || pairs > 1000000 || either < 1 || either > 100000000) {
        (void)fprintf(stderr, "usage: hll_joint [pairs of sets a row] [elements] [seed]\n");
        return 2;
    }
    printf("%8s %9s %12s %9s %9s %9s %7s %6s\n", "jaccard", "both", "incl.-excl.", "joint",
        "it says", "narrower", "holds", "us");
    for (size_t i = 0; i < sizeof(jaccards) / sizeof(jaccards[0]); i++) {
        struct row row = {0};
        long both = lround((double)either * jaccards[i]);
        for (long k = 0; k < pairs; k++) {
            one_pair(&state, (either - both) / 2, both, &row);
        }
        double n = (double)pairs;
        printf("%8.2f %9ld %12.1f %9.1f %9.1f %8.2fx %6.1f%% %6.0f\n", jaccards[i], both,
            sqrt(row.plain / n), sqrt(row.joint / n), sqrt(row.said / n),
            sqrt(row.plain / row.joint), 100.0 * row.held / n, row.us / n);
    }
    return 0;
}
