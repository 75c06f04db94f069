#include "storage/fold/pace.h"

/* A smaller transaction says more of what any transaction costs than of what is in it.  One that is
 * full tells, by the short goal too. */
#define TELLING_US (PACE_GOAL_SHORT_US / 3.0)

/* Sums are of about so much lately, by the constants: two full transactions. */
#define LATELY_US 3000
/* A transaction counts as at most this many times its estimate: one that took longer was
 * interrupted, and its time says nothing of its content. */
#define SLOWEST 4

void work_add(struct work *work, const struct work *more)
{
    for (unsigned k = 0; k < WORK_KINDS; k++) {
        work->tenths[k] += more->tenths[k];
    }
    work->newest_s = more->newest_s > work->newest_s ? more->newest_s : work->newest_s;
}

/* Forget what is known of sketches if a newer minute than ever has begun.  A time after @now_s is
 * that of a sender's clock, and would keep the pace from seeing the minutes before. */
static void note_minute(struct pace *pace, int64_t newest_s, int64_t now_s)
{
    int64_t at_s = newest_s < now_s ? newest_s : now_s;
    if (at_s >= pace->end_s) {
        pace->end_s = at_s - at_s % 60 + 60;
        pace->kinds[TASK_PAGE] = pace->kinds[TASK_SITE] = (struct pace_kind){0};
    }
}

static void learn_kind(struct pace_kind *kind, double estimated_us, double measured_us)
{
    double estimated = kind->estimated_us + estimated_us;
    double measured = kind->measured_us + measured_us;
    double kept = estimated > LATELY_US ? LATELY_US / estimated : 1;
    double percent = 100 * measured / estimated;
    kind->estimated_us = kept * estimated;
    kind->measured_us = kept * measured;
    kind->percent = percent < PACE_LEAST  ? PACE_LEAST
                    : percent > PACE_MOST ? PACE_MOST
                                          : (uint32_t)percent;
}

void pace_learn(struct pace *pace, const struct work *work, int64_t measured_us, int64_t now_s)
{
    double expected_us[WORK_KINDS];
    double estimated_us = 0, all_us = 0;
    note_minute(pace, work->newest_s, now_s);
    for (unsigned k = 0; k < WORK_KINDS; k++) {
        estimated_us += work->tenths[k] / 10.0;
        expected_us[k] = work->tenths[k] / 1000.0 * pace_percent(pace, k, work->newest_s);
        all_us += expected_us[k];
    }
    if (all_us < TELLING_US || measured_us <= 0) {
        return;
    }
    /* What it took is divided as was expected. */
    double measured =
        (double)measured_us < SLOWEST * estimated_us ? (double)measured_us : SLOWEST * estimated_us;
    for (unsigned k = 0; k < WORK_KINDS; k++) {
        if (work->tenths[k] > 0) {
            learn_kind(&pace->kinds[k], work->tenths[k] / 10.0, measured * expected_us[k] / all_us);
        }
    }
}
