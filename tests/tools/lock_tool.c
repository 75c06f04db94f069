/* lock_tool.c - storage/redlock on standard input and output, for integration/test_lock.py.
 *
 *     lock_tool NAME LEASE_MS URL[,URL..]
 *
 * Input, a word a line; output, a line for each:
 *
 *     acquire    "mine VALIDITY_MS" or "others LEFT_MS" or "unknown LEFT_MS"
 *     renew      "mine VALIDITY_MS", "others", "gone" or "unknown"
 *     release    "done"
 *     valid      "yes" or "no": is any of the lease left, by the monotonic clock?
 */
#include "storage/lock/redlock.h"

#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"

static const char *const names[] = {[LOCK_MINE] = "mine",
    [LOCK_OTHERS] = "others",
    [LOCK_GONE] = "gone",
    [LOCK_UNKNOWN] = "unknown"};

static int64_t until_ms;

static int64_t validity_ms(void)
{
    return until_ms - monotonic_ms();
}

/* The answer to a question that was asked at @asked_ms. */
static void tell(struct redlock *redlock, enum lock_answer answer, int64_t asked_ms, int64_t number)
{
    if (answer == LOCK_MINE) {
        until_ms = lock_until_ms(asked_ms, redlock->lock.lease_ms);
        number = validity_ms();
        if (number <= 0) {
            redlock_release(redlock);
            answer = LOCK_UNKNOWN;
        }
    }
    printf("%s %" PRId64 "\n", names[answer], number);
}

int main(int argc, char **argv)
{
    static struct redlock redlock;
    struct resolvers resolvers;
    char word[16];
    resolvers_init(&resolvers);
    if (argc != 4 || sodium_init() < 0 || !redlock_init(&redlock, argv[3], &resolvers)) {
        fprintf(stderr, "usage: lock_tool NAME LEASE_MS URL[,URL..]\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    redlock.lock.lease_ms = strtoll(argv[2], NULL, 10);
    key_fixed(&redlock.lock.key, "0", "lock", SLICE(""));
    while (scanf("%15s", word) == 1) {
        int64_t asked_ms = monotonic_ms();
        int64_t left_ms = 0;
        if (strcmp(word, "acquire") == 0) {
            lock_draw(&redlock.lock, argv[1]);
            enum lock_answer answer = redlock_acquire(&redlock, &left_ms);
            tell(&redlock, answer, asked_ms, left_ms);
        } else if (strcmp(word, "renew") == 0) {
            tell(&redlock, redlock_renew(&redlock), asked_ms, 0);
        } else if (strcmp(word, "release") == 0) {
            redlock_release(&redlock);
            printf("done\n");
        } else if (strcmp(word, "valid") == 0) {
            printf("%s\n", validity_ms() > 0 ? "yes" : "no");
        } else {
            fprintf(stderr, "lock_tool: %s?\n", word);
            return 2;
        }
        (void)fflush(stdout);
    }
    redlock_close(&redlock);
    resolvers_release(&resolvers);
    return 0;
}
