/* repeat.h - how soon a question that many ask is begun again.
 *
 * Layer: storage, pure, private to readers.c.  Not thread-safe: the lock of readers.c guards it.
 *
 * A hundred dashboards ask the same every second, each at its own moment.  Each question alone is
 * quick, but a hundred of them a second, read one by one, take Redis from the writers.  While one
 * of them is read the next ones gather, and are answered together.
 *
 * So a question that was just answered to several jobs at once, a *crowded* question, is held back
 * before it is begun again: REPEAT_HOLD_TIMES as long as the answer took, so that it takes about a
 * tenth of a reader's time, but at most until REPEAT_HOLD_MAX_US after the answer was begun.  That
 * makes no answer older than its question: the answer is read later, not kept.  A question that
 * only one client asks is never held back, however often it comes.
 *
 * Nor is a question begun while the same one is *settled* (read/settled.h): while a reader waits
 * until everything is counted that was acknowledged before.  Jobs that come meanwhile need no
 * reader.  When the wait is over, the reader answers all of them for which it was long enough.
 */
#ifndef STORAGE_READ_REPEAT_H
#define STORAGE_READ_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/job/window_job.h"

#define REPEAT_HOLD_TIMES  8
#define REPEAT_HOLD_MAX_US 25000 /* microseconds */

#define REPEATS 256 /* questions that are remembered; a question's hash decides its place */

/* A hash of a question: equal for the same question, and hardly ever for another.  @pages are the
 * pages that the question names; @what stands for all else that tells it apart.  Never 0. */
uint64_t question_hash(
    const struct window_question *asked, const struct slice *pages, size_t n_pages, uint64_t what);

/* What is remembered of questions.  Zeroed: none is crowded.  All times are of CLOCK_MONOTONIC. */
struct repeats {
    struct repeat {
        uint64_t question; /* question_hash() */
        int64_t due_us;    /* a crowded question may be begun from then on */
        bool crowded;
        bool settling; /* a reader waits until everything is counted */
    } all[REPEATS];
};

/* The instant from which @question (question_hash(); 0: it is never held back) may be begun.  0: at
 * once.  INT64_MAX: when repeat_settled() says so. */
int64_t repeat_due_us(const struct repeats *repeats, uint64_t question);

/* A reader begins @question: everything must be counted first. */
void repeat_begin(struct repeats *repeats, uint64_t question, int64_t now_us);

/* The wait for @question is over, or was given up.  True: the same question may be begun now, and
 * could not before. */
bool repeat_settled(struct repeats *repeats, uint64_t question);

/* @question was answered to @answered jobs at once.  The reader had begun it at @begun_us. */
void repeat_end(
    struct repeats *repeats, uint64_t question, int64_t begun_us, int64_t now_us, size_t answered);

#endif
