/* Who may use a data directory, when its last user has just been killed. */
#include "service/redis/data_dir.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "tests/lib/stand_in.h"

TestSuite(data_dir, .timeout = 60);

static char base[] = "/tmp/tallyd-unit-XXXXXX";
static int held = -1; /* another process's lock: to the kernel, one of another open file */
static int64_t now_us, step_us;
static unsigned n_looks, frees_at;

static int64_t look_at_clock(void)
{
    n_looks++;
    if (n_looks == frees_at) {
        (void)close(held);
    }
    now_us += step_us;
    return now_us;
}

static void setup(void)
{
    char path[64];
    cr_assert_not_null(mkdtemp(base));
    (void)snprintf(path, sizeof(path), "%s/tallyd.lock", base);
    held = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(flock(held, LOCK_EX) == 0 && write(held, "4711\n", 5) == 5);
    stand_in.now_us = look_at_clock;
}

static void teardown(void)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/tallyd.lock", base);
    (void)unlink(path);
    (void)rmdir(base);
}

/* What a killed tallyd was just starting has its lock until it is exec()ed, or sees that its parent
 * is gone. */
Test(data_dir, a_lock_that_is_about_to_go_is_waited_for, .init = setup, .fini = teardown)
{
    struct data_dir dir;
    char error[256] = "";
    frees_at = 3;
    cr_expect(data_dir_open(&dir, base, error, sizeof(error)), "%s", error);
    cr_expect_geq(dir.lock_fd, 0);
    data_dir_close(&dir);
}

/* The next one who wants the directory is told who has it: nothing of an earlier name is left. */
Test(data_dir, the_lock_names_its_process, .init = setup, .fini = teardown)
{
    struct data_dir dir;
    char error[256] = "", own[24], is[64] = "";
    cr_assert_eq(pwrite(held, "123456789012\n", 13, 0), 13);
    frees_at = 1;
    cr_assert(data_dir_open(&dir, base, error, sizeof(error)), "%s", error);
    (void)snprintf(own, sizeof(own), "%ld\n", (long)getpid());
    cr_assert_gt(pread(dir.lock_fd, is, sizeof(is) - 1, 0), 0);
    cr_expect_str_eq(is, own);
    data_dir_close(&dir);
}

Test(data_dir, a_lock_that_stays_is_refused, .init = setup, .fini = teardown)
{
    struct data_dir dir;
    char error[256] = "";
    step_us = 300000;
    cr_expect_not(data_dir_open(&dir, base, error, sizeof(error)));
    cr_expect(strstr(error, "in use by another tallyd (process 4711)") != NULL, "%s", error);
    cr_expect_leq(now_us, 3000000, "in time");
    cr_expect_eq(dir.lock_fd, -1);
}

static bool is_full(unsigned long blocks, unsigned long files, unsigned long free_files)
{
    bool is_root = geteuid() == 0; /* what is kept for root is of no use to others */
    const struct statvfs disk = {.f_frsize = 4096,
        .f_bfree = is_root ? blocks : 1u << 20,
        .f_bavail = is_root ? 0 : blocks,
        .f_files = files,
        .f_ffree = free_files};
    const struct data_dir dir = {.path = "/"};
    stand_in.disk = &disk;
    bool full = data_dir_full(&dir);
    stand_in.disk = NULL;
    return full;
}

/* A disk is full that has no room for what Redis writes at once, or for another file. */
Test(data_dir, a_disk_is_full_without_blocks_or_files)
{
    cr_expect_not(is_full(64, 1000, 1));
    cr_expect(is_full(63, 1000, 1));
    cr_expect(is_full(64, 1000, 0));
    cr_expect_not(is_full(64, 0, 0), "a file system that does not count its files");
}
