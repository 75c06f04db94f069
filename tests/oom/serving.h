/* serving.h - `tallyd serve` in a child of this process, whose allocations may be made to fail.
 *
 * It is serve_main() as it is, with its options, signals and exit status.  Its log and its errors
 * go into a file.  A thread of the child obeys the parent, which says when allocations fail.
 */
#ifndef TESTS_OOM_SERVING_H
#define TESTS_OOM_SERVING_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a child leaves behind, in memory that both have. */
struct serving_end {
    bool struck; /* an allocation failed since it was told to */
    size_t left; /* blocks that were not freed.. */
    unsigned long number;
    size_t size; /* ..and of which number and size the first one is */
};

struct serving {
    pid_t pid;
    uint16_t port; /* 0: it does not listen */
    int orders, replies;
    struct serving_end *end; /* stays until the next serving_start() */
};

#define SERVING_UNWATCHED ULONG_MAX

/* Start it with @argv, as of serve_main(); the @nth allocation and @more behind it fail, if @nth is
 * not 0.  Of SERVING_UNWATCHED none fails, and what is left is not told: so it may have more blocks
 * than can be watched.  Wait until it listens or has ended. */
void serving_start(struct serving *p, int argc, char **argv, const char *log, unsigned long nth,
    unsigned long more);

/* As alloc_fail() and alloc_stop() in the child. */
void serving_fail(struct serving *p, unsigned long nth, unsigned long more);
bool serving_stop_failing(struct serving *p);

/* Wait until it has ended.  Its exit status, or 256 and more: a signal ended it, or it had to be
 * killed. */
int serving_wait(struct serving *p);

#endif
