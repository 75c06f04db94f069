/* A log's files as they come, go and cannot be read: service/client/follow/follow_files.h */
#include "service/client/follow/follow_files.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/gzip.h"

static char base[] = "/tmp/tallyd-unit-XXXXXX";
static char path[PATH_MAX], said_path[PATH_MAX];
static struct follow_state state;
static struct import_report report;
static struct follow_files *files;
static int64_t now_ms = 1000;

static const char *in_base(const char *name)
{
    static char text[PATH_MAX];
    (void)snprintf(text, sizeof(text), "%s/%s", base, name);
    return text;
}

/* What is said goes to stderr, and that is a file now. */
static void setup(void)
{
    cr_assert_not_null(mkdtemp(base));
    (void)snprintf(path, sizeof(path), "%s/a.log", base);
    (void)snprintf(said_path, sizeof(said_path), "%s/said", base);
    int fd = open(said_path, O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
    cr_assert(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO && close(fd) == 0);
    import_report_init(&report);
    files = follow_files_new(path, &state, &report);
    cr_assert_not_null(files);
}

static void teardown(void)
{
    follow_files_free(files);
    DIR *directory = opendir(base);
    cr_assert_not_null(directory);
    for (const struct dirent *d = readdir(directory); d != NULL; d = readdir(directory)) {
        (void)unlink(in_base(d->d_name));
    }
    (void)closedir(directory);
    (void)rmdir(base);
}

TestSuite(follow_files, .init = setup, .fini = teardown, .timeout = 60);

static void put(const char *name, const char *bytes, size_t n)
{
    int fd = open(in_base(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    cr_assert(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && close(fd) == 0);
}

static void put_text(const char *name, const char *text)
{
    put(name, text, strlen(text));
}

/* How often @text was said. */
static unsigned said(const char *text)
{
    static char all[65536];
    int fd = open(said_path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, all, sizeof(all) - 1);
    cr_assert(fd >= 0 && n >= 0 && close(fd) == 0);
    all[n] = '\0';
    unsigned times = 0;
    for (const char *at = strstr(all, text); at != NULL; at = strstr(at + 1, text)) {
        times++;
    }
    return times;
}

static void watch(void)
{
    now_ms += 1000;
    cr_assert(follow_files_watch(files, false, now_ms));
}

static void first_watch(void)
{
    cr_assert(follow_files_watch(files, true, now_ms));
}

/* File @index was read up to @to. */
static void was_read(size_t index, int64_t to)
{
    struct follow_cut cut = {.to = {.offset = to}, .seen = to};
    state.files[index].place.offset = to;
    follow_files_read(files, index, &cut);
}

Test(follow_files, a_log_that_is_not_there_yet_is_waited_for)
{
    first_watch();
    watch();
    cr_expect_eq(said("is not there yet"), 1);
    put_text("a.log", "1\n");
    watch();
    cr_assert_eq(state.n, 1);
    cr_expect(files->is_changed);
}

Test(follow_files, a_path_that_goes_round_in_circles_is_said_once)
{
    cr_assert_eq(symlink("a.log", path), 0);
    first_watch();
    watch();
    cr_expect_eq(said("cannot open"), 1);
    cr_expect_eq(said("Too many levels of symbolic links"), 1);
    cr_expect_eq(state.n, 0);
}

/* As a file of a broken disk, which can be opened. */
Test(follow_files, why_a_log_cannot_be_read_is_said)
{
    files->path = "/proc/self/mem";
    first_watch();
    watch();
    cr_expect_eq(said("cannot read /proc/self/mem: Input/output error"), 1);
    cr_expect_eq(state.n, 0);
}

Test(follow_files, a_directory_that_is_not_there_may_come_to_be)
{
    char later[PATH_MAX];
    (void)snprintf(later, sizeof(later), "%s/later/a.log", base);
    files->path = later;
    first_watch();
    watch();
    cr_expect_eq(said("cannot read "), 1);
    cr_assert_eq(mkdir(in_base("later"), 0700), 0);
    put_text("later/a.log", "1\n");
    watch();
    cr_expect_eq(state.n, 1);
    cr_assert(unlink(later) == 0 && rmdir(in_base("later")) == 0);
}

Test(follow_files, what_can_never_be_followed)
{
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_expect_not(follow_files_watch(files, true, now_ms));
    cr_expect_eq(said("is no regular file"), 1);
    cr_assert(unlink(path) == 0 && mkdir(path, 0700) == 0);
    cr_expect_not(follow_files_watch(files, true, now_ms));
    cr_expect_eq(said("is a directory"), 1);
    cr_assert_eq(rmdir(path), 0);
    put_text("a.log", "BZh91AY&SY");
    cr_expect_not(follow_files_watch(files, true, now_ms));
    cr_expect_eq(said("it is compressed"), 1);
    cr_expect_eq(state.n, 0);
}

Test(follow_files, unread_bytes_that_are_deleted_are_missing)
{
    put_text("a.log", "1234\n5678\n");
    first_watch();
    was_read(0, 5);
    cr_assert(unlink(path) == 0);
    put_text("a.log", "new\n");
    watch(); /* the old file is still open */
    cr_expect_eq(said("missing"), 0);
    (void)close(files->open[0].fd); /* as it is when a follower starts again */
    files->open[0].fd = -1;
    files->has_looked = false;
    watch();
    cr_expect_eq(said("missing: at least 5 bytes of"), 1);
    cr_expect(state.files[0].is_done);
    cr_expect_eq(state.files[0].inode, 0);
}

/* Its beginning is as before.  Nothing says what came behind the cut, so all is read. */
Test(follow_files, a_file_that_was_cut_behind_its_beginning_is_another_one)
{
    static char text[3 * FOLLOW_HEAD];
    memset(text, 'x', sizeof(text));
    text[FOLLOW_HEAD - 1] = text[2 * FOLLOW_HEAD - 1] = text[sizeof(text) - 1] = '\n';
    put("a.log", text, sizeof(text));
    first_watch();
    was_read(0, sizeof(text));
    cr_assert_eq(truncate(path, 2 * FOLLOW_HEAD), 0);
    watch();
    cr_assert_eq(state.n, 2);
    cr_expect(state.files[0].is_done && !state.files[1].is_done);
    cr_expect_eq(state.files[1].place.offset, 0);
}

/* Whether a piece that was sent has been counted must be asked before its bytes are given up. */
Test(follow_files, a_file_with_a_piece_under_way_is_not_given_up)
{
    put_text("a.log", "1\n");
    state.n = 1;
    state.files[0] = (struct follow_file){.inode = 1, .size = 10};
    state.has_piece = true;
    state.piece = (struct follow_piece){.file = 0, .to = {.offset = 10}, .sent_at_s = 1};
    watch();
    cr_expect(files->open[0].is_gone);
    cr_expect_eq(said("missing"), 0);
    state.has_piece = false;
    follow_files_give_up(files, 0);
    cr_expect_eq(said("missing: at least 10 bytes"), 1);
    cr_expect_not(files->open[0].is_gone);
}

Test(follow_files, a_file_that_went_between_two_processes)
{
    put_text("a.log", "1\n");
    state.n = 1;
    state.files[0] = (struct follow_file){.inode = 1, .place = {.offset = 10}, .size = 10};
    watch();
    cr_expect_eq(said("it was read up to byte 10; whether more was written is not known"), 1);
    cr_expect_eq(state.n, 2, "the log is another file");
}

/* While a piece is sent the log is replaced, and then written to the renamed file once more. */
Test(follow_files, what_was_renamed_is_read_first)
{
    enum follow_end end;
    put_text("a.log", "1\n");
    first_watch();
    was_read(0, 2);
    cr_assert_eq(rename(path, in_base("a.log.1")), 0);
    put_text("a.log", "3\n");
    watch();
    watch();
    cr_assert_eq(state.n, 2);
    int64_t new_ms = now_ms;
    cr_expect_eq(follow_files_due(files, new_ms + 399, 400, &end), FOLLOW_NONE);
    put_text("a.log.1", "2\n");
    watch();
    cr_expect_eq(follow_files_due(files, now_ms, 400, &end), 0);
    cr_expect_eq(end, FOLLOW_END_OPEN);
    was_read(0, 4);
    cr_expect_eq(follow_files_due(files, now_ms, 400, &end), 1);
}

/* The log is there, empty, and was made a minute ago. */
static void make_old_log(void)
{
    put_text("a.log", "");
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    times[1] = (struct timespec){.tv_sec = time(NULL) - 60};
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Nothing tells that its content was not seen, but the time. */
Test(follow_files, a_log_that_is_empty_again_was_truncated)
{
    make_old_log();
    first_watch();
    watch();
    put_text("a.log.1", "1\n"); /* a copy */
    cr_assert_eq(truncate(path, 0), 0);
    watch();
    cr_assert_eq(state.n, 2);
    cr_expect(!state.files[0].is_done && files->open[0].fd >= 0);
    cr_expect_eq(files->plan.n_new, 1, "the log is new");
    int64_t looked_ms = files->looked_ms;
    watch();
    cr_assert_eq(state.n, 2);
    cr_assert_eq(utimensat(AT_FDCWD, path, NULL, 0), 0); /* it was written, and there is no copy */
    watch();
    cr_assert_eq(state.n, 2);
    cr_expect_gt(files->looked_ms, looked_ms);
    looked_ms = files->looked_ms;
    watch();
    cr_expect_eq(files->looked_ms, looked_ms, "once");
}

/* The log that follows it has many bytes, which need not wait. */
Test(follow_files, a_copy_of_what_was_seen_only_empty_is_read_first)
{
    static char many[512 * 1024];
    enum follow_end end;
    memset(many, 'x', sizeof(many));
    make_old_log();
    first_watch();
    watch();
    put_text("a.log.1", "1\n");
    put("a.log", many, sizeof(many));
    for (int i = 0; i < 3; i++) {
        watch();
        cr_assert_eq(state.n, 2);
        size_t due = follow_files_due(files, now_ms, 0, &end);
        cr_expect(due == 0 || (due == FOLLOW_NONE && i < 2), "look %d: %zu", i, due);
    }
}

/* The file may have grown while a piece of it was sent, and never again. */
Test(follow_files, what_is_written_while_a_piece_is_sent_is_due)
{
    enum follow_end end;
    put_text("a.log", "1\n2");
    first_watch();
    watch();
    cr_expect_eq(follow_files_due(files, now_ms, 0, &end), 0);
    struct follow_cut cut = {.to = {.offset = 2}, .seen = 3};
    put_text("a.log", "\n");
    watch();
    state.files[0].place.offset = 2;
    follow_files_read(files, 0, &cut);
    cr_expect_eq(follow_files_due(files, now_ms, 400, &end), 0);
    put_text("a.log", "3");
    watch();
    cut = (struct follow_cut){.to = {.offset = 4}, .seen = 5};
    state.files[0].place.offset = 4;
    follow_files_read(files, 0, &cut);
    cr_expect_eq(follow_files_due(files, now_ms + 400, 400, &end), FOLLOW_NONE, "half a line");
}

/* The state knows a file of @bytes, read up to @offset, that is there only as a.log.1.gz. */
static void find_packed(size_t offset, bool is_whole)
{
    static char text[3000];
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)('a' + i * i % 23); /* not all the same */
    }
    size_t n;
    char *packed = gzip_member(text, sizeof(text), &n);
    put("a.log.1.gz", packed, is_whole ? n : n - 9);
    free(packed);
    put_text("a.log", "1\n");
    state.n = 1;
    state.files[0] = (struct follow_file){.inode = 1,
        .head = follow_head_of((struct slice){text, FOLLOW_HEAD}),
        .place = {.offset = (int64_t)offset, .header = -1},
        .size = (int64_t)offset};
    watch();
    cr_expect(state.files[0].is_done);
}

Test(follow_files, what_was_compressed_before_it_was_read_is_missing)
{
    find_packed(1000, true);
    cr_expect_eq(said("missing: 2000 bytes of"), 1);
    cr_expect_eq(said("tail -c +1001 | tallyd import -"), 1);
}

Test(follow_files, what_was_read_to_its_end_may_be_compressed)
{
    find_packed(3000, true);
    cr_expect_eq(said("missing"), 0);
}

Test(follow_files, a_compressed_file_without_its_end)
{
    find_packed(1000, false);
    cr_expect_eq(said("behind byte 1000: it is compressed, and cannot be read to its end"), 1);
}

Test(follow_files, of_many_rotated_files_the_newest_are_remembered)
{
    char name[32];
    for (int i = 1; i <= FOLLOW_ENTRIES + 10; i++) {
        (void)snprintf(name, sizeof(name), "a.log.%d", i);
        put_text(name, "old\n");
    }
    put_text("a.log", "new\n");
    first_watch();
    cr_expect_not(files->listing.is_complete);
    cr_expect_eq(said("cannot read"), 0, "it could be read: there was no room");
    cr_assert_eq(state.n, FOLLOW_FILES - 8);
    for (size_t i = 0; i + 1 < state.n; i++) {
        cr_expect(state.files[i].is_done);
        cr_expect_eq(state.files[i].place.offset, 4);
    }
    cr_expect_not(state.files[state.n - 1].is_done);
    cr_expect_geq(files->open[state.n - 1].fd, 0);
    cr_expect_not(follow_files_forget(files), "there is room for more");
}

/* a-443.log may be another server's log, and grow all the time. */
Test(follow_files, what_had_rotated_at_the_first_look_is_never_read)
{
    put_text("a-443.log", "other\n");
    put_text("a.log", "new\n");
    first_watch();
    put_text("a-443.log", "other\nmore\n");
    for (int i = 0; i < 2; i++) {
        watch();
        cr_assert_eq(state.n, 2);
        cr_expect(state.files[0].is_past && state.files[0].is_done && files->open[0].fd < 0);
        cr_expect_eq(state.files[0].place.offset, 6);
        follow_files_free(files); /* and started again */
        files = follow_files_new(path, &state, &report);
        cr_assert_not_null(files);
    }
    cr_assert_eq(rename(in_base("a-443.log"), path), 0); /* now it is the log */
    watch();
    cr_expect(!state.files[0].is_past && files->open[0].fd >= 0);
    cr_expect_eq(state.files[0].place.offset, 6);
}

/* Else it would be new one day. */
Test(follow_files, what_is_never_read_is_remembered_while_it_is_there)
{
    put_text("a-443.log", "other\n");
    put_text("a.log", "new\n");
    first_watch();
    uint64_t inode = state.files[0].inode;
    for (; state.n < FOLLOW_FILES; state.n++) {
        files->open[state.n] = FOLLOW_NOT_OPEN;
        state.files[state.n] = (struct follow_file){.is_done = true};
    }
    cr_expect(follow_files_forget(files));
    cr_expect_lt(state.n, FOLLOW_FILES);
    cr_expect(state.files[0].inode == inode && state.files[0].is_past);
    cr_assert_eq(unlink(in_base("a-443.log")), 0);
    files->must_look = true;
    watch();
    cr_expect(state.files[0].is_done && !state.files[0].is_past);
}

/* Wherever they stand in the directory. */
Test(follow_files, of_too_many_rotated_files_those_that_are_known_are_found)
{
    char name[32];
    struct stat about;
    for (int i = 1; i <= FOLLOW_ENTRIES + 60; i++) {
        (void)snprintf(name, sizeof(name), "a.log.%d", i);
        put_text(name, "old\n");
    }
    put_text("a.log", "new\n");
    for (int i = 1; i <= FOLLOW_ENTRIES + 60; i += 15) {
        (void)snprintf(name, sizeof(name), "a.log.%d", i);
        cr_assert_eq(stat(in_base(name), &about), 0);
        follow_files_free(files);
        state = (struct follow_state){.n = 1};
        state.files[0] = (struct follow_file){.inode = about.st_ino,
            .head = follow_head_of(SLICE("ol")),
            .place = {.offset = 2},
            .size = 2};
        files = follow_files_new(path, &state, &report);
        cr_assert_not_null(files);
        watch();
        cr_expect(!state.files[0].is_done && files->open[0].fd >= 0, "%s", name);
    }
}

/* The oldest that are done go; what may still be read stays, and finds its open file again. */
Test(follow_files, files_that_are_done_are_forgotten)
{
    put_text("a.log", "1\n");
    first_watch();
    int fd = files->open[0].fd;
    cr_assert_geq(fd, 0);
    files->open[0].fd = -1;
    state.n = FOLLOW_FILES;
    for (size_t i = 0; i < FOLLOW_FILES; i++) {
        state.files[i].inode = 100 + i;
        state.files[i].is_done = i % 2 == 1;
    }
    files->open[FOLLOW_FILES - 2].fd = fd;
    cr_expect(follow_files_forget(files));
    cr_expect_eq(state.n, FOLLOW_FILES - 8);
    cr_expect_eq(state.files[0].inode, 100);
    cr_expect_eq(state.files[7].inode, 114, "1, 3, .. 15 are gone");
    cr_expect_eq(state.files[8].inode, 116);
    cr_expect_eq(files->open[FOLLOW_FILES - 10].fd, fd);
    cr_expect_eq(state.files[FOLLOW_FILES - 10].inode, 100 + FOLLOW_FILES - 2);
    cr_expect_eq(files->open[FOLLOW_FILES - 1].fd, -1);
}

Test(follow_files, no_room_for_another_file_means_later)
{
    put_text("a.log", "1\n");
    state.n = FOLLOW_FILES;
    for (size_t i = 0; i < FOLLOW_FILES; i++) {
        state.files[i] = (struct follow_file){.inode = 1, .is_done = true};
    }
    watch();
    cr_expect_eq(state.n, FOLLOW_FILES);
    cr_expect(files->must_look);
    cr_expect(follow_files_forget(files));
    watch();
    cr_expect_eq(state.n, FOLLOW_FILES - 8 + 1);
    cr_expect_not(files->must_look);
}

/* A file that is done and deleted is closed: the disk gets its room back. */
Test(follow_files, a_deleted_file_that_is_read_is_closed)
{
    put_text("a.log", "1\n");
    first_watch();
    watch();
    was_read(0, 2);
    cr_assert_eq(unlink(path), 0);
    put_text("a.log", "2\n");
    watch();
    cr_expect_geq(files->open[0].fd, 0, "its writer may not know yet");
    now_ms += FOLLOW_REST_MS;
    watch();
    cr_expect(state.files[0].is_done);
    cr_expect_eq(files->open[0].fd, -1);
    cr_expect_eq(said("missing"), 0);
}
