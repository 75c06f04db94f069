/* The file in which a follower remembers how far it is: whoever has it, and what keeps it safe. */
#include "service/client/follow/follow_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[] = "/tmp/tallyd-unit-XXXXXX";
static char path[PATH_MAX], beside[PATH_MAX];
static struct follow_store store;
static struct follow_state state;
static bool is_new;

static void setup(void)
{
    cr_assert_not_null(mkdtemp(base));
    (void)snprintf(path, sizeof(path), "%s/state", base);
    (void)snprintf(beside, sizeof(beside), "%s/state.new", base);
}

static void teardown(void)
{
    follow_store_close(&store);
    (void)unlink(beside), (void)rmdir(beside);
    (void)unlink(path), (void)rmdir(path);
    (void)rmdir(base);
}

TestSuite(follow_store, .init = setup, .fini = teardown, .timeout = 60);

static void open_store(void)
{
    cr_assert(follow_store_open(&store, path, &state, &is_new), "%s", store.error);
}

static void expect_error(const char *what, int number)
{
    cr_expect(strncmp(store.error, what, strlen(what)) == 0, "%s", store.error);
    cr_expect_not_null(strstr(store.error, strerror(number)), "%s", store.error);
}

static void put(const char *to, const char *text, size_t n)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && write(fd, text, n) == (ssize_t)n && close(fd) == 0);
}

Test(follow_store, what_is_saved_is_read_again)
{
    open_store();
    cr_expect(is_new);
    state.n = 1;
    state.files[0] =
        (struct follow_file){.inode = 4711, .place = {.offset = 17, .header = -1}, .size = 20};
    cr_assert(follow_store_save(&store, &state), "%s", store.error);
    follow_store_close(&store);
    memset(&state, 0, sizeof(state));
    open_store();
    cr_expect_not(is_new);
    cr_assert_eq(state.n, 1);
    cr_expect_eq(state.files[0].inode, 4711);
    cr_expect_eq(state.files[0].place.offset, 17);
    cr_expect_neq(access(beside, F_OK), 0, "nothing is left beside");
}

Test(follow_store, a_name_without_a_directory_is_in_the_working_directory)
{
    cr_assert_eq(chdir(base), 0);
    cr_assert(follow_store_open(&store, "state", &state, &is_new), "%s", store.error);
    cr_expect(follow_store_save(&store, &state), "%s", store.error);
    cr_expect_eq(access(path, F_OK), 0);
}

Test(follow_store, one_process_at_a_time)
{
    struct follow_store other;
    open_store();
    cr_expect_not(follow_store_open(&other, path, &state, &is_new));
    cr_expect_not_null(strstr(other.error, "is in use"), "%s", other.error);
    cr_expect_eq(other.fd, -1);
    /* The name leads to another file now, and that one is locked, too. */
    cr_assert(follow_store_save(&store, &state), "%s", store.error);
    cr_expect_not(follow_store_open(&other, path, &state, &is_new));
    cr_expect_not_null(strstr(other.error, "is in use"), "%s", other.error);
}

Test(follow_store, what_cannot_be_opened_or_read)
{
    struct follow_state before = state;
    cr_expect_not(follow_store_open(&store, "/tmp/not-there/state", &state, &is_new));
    expect_error("cannot open", ENOENT);
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_not(follow_store_open(&store, path, &state, &is_new));
    expect_error("cannot read", ESPIPE);
    cr_expect_eq(store.fd, -1);
    cr_expect_eq(memcmp(&state, &before, sizeof(state)), 0);
}

Test(follow_store, another_program_s_file_is_left_alone)
{
    static char text[FOLLOW_STATE_BYTES + 1];
    memset(text, ' ', sizeof(text));
    size_t lengths[] = {1, sizeof(text) - 1, sizeof(text)};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct stat about;
        put(path, text, lengths[i]);
        cr_expect_not(follow_store_open(&store, path, &state, &is_new));
        cr_expect_not_null(strstr(store.error, "is no state of"), "%s", store.error);
        cr_assert(stat(path, &about) == 0);
        cr_expect_eq((size_t)about.st_size, lengths[i]);
    }
}

/* A state that cannot be replaced stays, with its lock: the follower stops and has lost nothing. */
static void expect_not_saved(int number)
{
    struct follow_store other;
    int fd = store.fd;
    cr_expect_not(follow_store_save(&store, &state));
    expect_error("cannot write", number);
    cr_expect_eq(store.fd, fd, "the old file is still held");
    cr_expect_not(follow_store_open(&other, path, &state, &is_new));
}

Test(follow_store, a_directory_stands_where_the_new_file_is_written)
{
    open_store();
    cr_assert_eq(mkdir(beside, 0700), 0);
    expect_not_saved(EISDIR);
}

Test(follow_store, another_process_writes_beside)
{
    open_store();
    int fd = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && flock(fd, LOCK_EX) == 0);
    expect_not_saved(EWOULDBLOCK);
    cr_assert_eq(close(fd), 0);
    cr_expect(follow_store_save(&store, &state), "%s", store.error);
}

Test(follow_store, a_directory_has_taken_the_name)
{
    open_store();
    cr_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
    expect_not_saved(EISDIR);
}

Test(follow_store, no_room_for_the_longer_name)
{
    size_t n = strlen(base);
    memcpy(path, base, n);
    while (n < PATH_MAX - 8) {
        memcpy(path + n, "/.", 3);
        n += 2;
    }
    memcpy(path + n, "/state", 7);
    path[PATH_MAX - 1] = '\0';
    open_store();
    cr_expect_not(follow_store_save(&store, &state));
    cr_expect_eq(strncmp(store.error, "cannot write", 12), 0, "%s", store.error);
    cr_expect_eq(errno, ENAMETOOLONG);
    cr_expect_geq(store.fd, 0);
    (void)unlink(path);
}
