/* repeat.h - how soon a question that many ask is begun again.
 *
 * Layer: storage, pure, private to readers.c, whose lock guards it.
 *
 * A hundred dashboards ask the same every second, each at its own moment.  Each question alone is
 * quick, but a hundred of them a second, read one by one, take Redis from those who write.  While
 * one of them is read the next ones gather, and are answered together.
 *
 * So a question that was just answered to several at once, a *crowded* one, is held back for a
 * while before it is begun again: REPEAT_HOLD_TIMES as long as it took, so that it takes about a
 * tenth of a reader, but at most until REPEAT_HOLD_MAX_US after it was begun.  An answer does not
 * become older than its question by that: it is read later, not kept.  A question that one client
 * alone asks, as often as may be, is never held back.
 *
 * Nor is a question begun while the same one is *settled* (read/settled.h): while a reader waits
 * until what was acknowledged before is counted.  Those that come meanwhile need no reader.  When
 * the wait is over, the reader answers all of them for which it was long enough.
 */
#ifndef STORAGE_READ_REPEAT_H
#define STORAGE_READ_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/job/window_job.h"

#define REPEAT_HOLD_TIMES  8
#define REPEAT_HOLD_MAX_US 25000

#define REPEATS 256 /* questions that are remembered, each in a place that its hash decides */

/* A number for a question: equal for questions that are the same, and hardly ever for others.
 * @pages: those that it names; @what: all else that tells it apart.  Not 0. */
uint64_t question_hash(
    const struct window_question *asked, const struct slice *pages, size_t n_pages, uint64_t what);

/* Zeroed: nothing is crowded. */
struct repeats {
    struct repeat {
        uint64_t question;
        int64_t due_us;
        bool crowded;
        bool settling;
    } all[REPEATS];
};

/* When a question (question_hash(), 0: any time) may be begun: a time of the monotonic clock, or
 * one that is past.  INT64_MAX: when the same one is settled. */
int64_t repeat_due_us(const struct repeats *repeats, uint64_t question);

/* It is begun: it is settled first. */
void repeat_begin(struct repeats *repeats, uint64_t question, int64_t now_us);

/* It is settled, or was given up.  True: that is news, so the same one may be begun. */
bool repeat_settled(struct repeats *repeats, uint64_t question);

/* It was answered, to @answered at once, and had been begun at @begun_us. */
void repeat_end(
    struct repeats *repeats, uint64_t question, int64_t begun_us, int64_t now_us, size_t answered);

#endif
