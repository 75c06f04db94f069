/* What lies beside a log while files are renamed: service/client/follow/follow_listing.h */
#include "service/client/follow/follow_listing.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OTHERS 200
#define TURNS  100

static char base[] = "/tmp/tallyd-unit-XXXXXX";
static struct follow_listing listing;

static const char *rotated(unsigned n)
{
    static _Thread_local char text[PATH_MAX];
    (void)snprintf(text, sizeof(text), "%s/a.log.%u", base, n);
    return text;
}

static void put(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && write(fd, "x\n", 2) == 2 && close(fd) == 0);
}

struct move {
    unsigned from, to;
    long after_ns;
};

/* One rename, somewhere within a listing. */
static void *move_once(void *data)
{
    const struct move *move = data;
    char from[PATH_MAX];
    (void)snprintf(from, sizeof(from), "%s", rotated(move->from));
    (void)nanosleep(&(struct timespec){.tv_nsec = move->after_ns}, NULL);
    cr_assert_eq(rename(from, rotated(move->to)), 0);
    return NULL;
}

static bool is_listed(uint64_t inode)
{
    for (size_t i = 0; i < listing.n; i++) {
        if (listing.entries[i].inode == inode) {
            return true;
        }
    }
    return false;
}

/* A rotation gives files other names, and a file that is nowhere is taken for deleted. */
Test(follow_listing, a_file_that_is_renamed_meanwhile_is_listed, .timeout = 60)
{
    static struct follow_state state;
    char log[PATH_MAX], error[512];
    struct stat about;
    cr_assert_not_null(mkdtemp(base));
    (void)snprintf(log, sizeof(log), "%s/a.log", base);
    put(log);
    for (unsigned i = 0; i < OTHERS; i++) {
        put(rotated(1000 + i));
    }
    put(rotated(1));
    cr_assert_eq(stat(rotated(1), &about), 0);
    for (unsigned i = 0; i < TURNS; i++) {
        struct move move = {1 + i % 2, 2 - i % 2, (long)i * 20000};
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, move_once, &move), 0);
        cr_assert(follow_list(log, &state, &listing, error, sizeof(error)));
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_expect(is_listed((uint64_t)about.st_ino), "in turn %u", i);
    }
    for (unsigned i = 0; i < OTHERS; i++) {
        (void)unlink(rotated(1000 + i));
    }
    (void)unlink(rotated(1));
    (void)unlink(rotated(2));
    (void)unlink(log);
    (void)rmdir(base);
}

#define MANY (FOLLOW_ENTRIES + 40)

/* The files beside the log were written in the order in which the directory has them, or in the
 * opposite one.  Gives their inodes, the oldest first. */
static void write_in_order(bool is_opposite, uint64_t ret[MANY])
{
    DIR *directory = opendir(base);
    unsigned n = 0;
    cr_assert_not_null(directory);
    for (const struct dirent *found; (found = readdir(directory)) != NULL;) {
        if (strncmp(found->d_name, "a.log.", 6) == 0) {
            unsigned i = is_opposite ? MANY - 1 - n : n;
            const struct timespec at = {1800000000 + i, 0}, times[] = {at, at};
            cr_assert_eq(utimensat(dirfd(directory), found->d_name, times, 0), 0);
            ret[i] = (uint64_t)found->d_ino;
            n++;
        }
    }
    (void)closedir(directory);
    cr_assert_eq(n, MANY);
}

Test(follow_listing, of_too_many_files_those_that_were_written_last_are_listed, .timeout = 60)
{
    static struct follow_state state;
    static uint64_t inodes[MANY];
    char log[PATH_MAX], error[512];
    cr_assert_not_null(mkdtemp(base));
    (void)snprintf(log, sizeof(log), "%s/a.log", base);
    put(log);
    for (unsigned i = 0; i < MANY; i++) {
        put(rotated(i));
    }
    for (unsigned turn = 0; turn < 2; turn++) {
        write_in_order(turn == 1, inodes);
        cr_assert(follow_list(log, &state, &listing, error, sizeof(error)));
        cr_expect(!listing.is_complete && listing.n == FOLLOW_ENTRIES);
        for (unsigned i = 0; i < MANY; i++) {
            cr_expect_eq(is_listed(inodes[i]), i > MANY - FOLLOW_ENTRIES, "%u", i);
        }
    }
    for (unsigned i = 0; i < MANY; i++) {
        (void)unlink(rotated(i));
    }
    (void)unlink(log);
    (void)rmdir(base);
}

static bool may_have_moved(long before_ms, long after_ms, long began_ms)
{
    const struct timespec at[] = {{1800000000, before_ms * 1000000},
        {1800000000, after_ms * 1000000}, {1800000000, began_ms * 1000000}};
    return follow_may_have_moved(at[0], at[1], at[2]);
}

/* However long the directory is read: it counts whether it began in the tick of another change. */
Test(follow_listing, what_a_directorys_time_tells)
{
    cr_expect(may_have_moved(100, 101, 900), "it was changed meanwhile");
    cr_expect_not(may_have_moved(100, 100, 900));
    cr_expect(may_have_moved(100, 100, 101), "the next rename has the same time");
    cr_expect(may_have_moved(100, 100, 109));
    cr_expect_not(may_have_moved(100, 100, 110));
    cr_expect(may_have_moved(100, 100, 99), "it was changed behind the look at the clock");
    cr_expect_not(may_have_moved(900, 900, 100), "another host's clock, or one that was set back");
}
