#include "service/client/follow/follow_plan.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(follow_plan, .timeout = 60);

static struct follow_state state;
static struct follow_listing listing;
static struct follow_plan plan;

static void begin(void)
{
    memset(&state, 0, sizeof(state));
    memset(&listing, 0, sizeof(listing));
}

/* Remember a file that began with @text and was written last at @at. */
static void remember(uint64_t inode, const char *text, int64_t offset, int64_t at)
{
    state.files[state.n++] = (struct follow_file){.inode = inode,
        .head = follow_head_of(slice_of(text)),
        .place = {.offset = offset},
        .size = offset,
        .mtime_ns = at};
}

static void lies(const char *name, enum follow_kind kind, uint64_t inode, const char *text,
    int64_t size, int64_t at)
{
    struct follow_entry *entry = &listing.entries[listing.n++];
    *entry = (struct follow_entry){.is_log = strcmp(name, "a.log") == 0,
        .has_rotated_name = follow_is_rotated_name("a.log", name),
        .kind = kind,
        .inode = inode,
        .size = size,
        .mtime_ns = at,
        .head_n = strlen(text)};
    (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    memcpy(entry->head, text, strlen(text));
}

static void expect_found(size_t file, const char *name, bool is_copy)
{
    size_t entry = plan.entries[file];
    cr_assert_neq(entry, FOLLOW_NONE, "file %zu is %s", file, name);
    cr_expect_str_eq(listing.entries[entry].name, name);
    cr_expect_eq(plan.is_copy[file], is_copy);
}

/* @names: new entries in order, with a blank between. */
static void expect_new(const char *names)
{
    char found[512] = "";
    for (size_t i = 0; i < plan.n_new; i++) {
        size_t n = strlen(found);
        (void)snprintf(found + n, sizeof(found) - n, "%s%s", n > 0 ? " " : "",
            listing.entries[plan.new_entries[i]].name);
    }
    cr_expect_str_eq(found, names);
}

Test(follow_plan, the_first_look_takes_the_log_last, .init = begin)
{
    lies("a.log", FOLLOW_PLAIN, 3, "c", 1, 30);
    lies("a.log.1", FOLLOW_PLAIN, 2, "b", 1, 20);
    lies("a.log.3.gz", FOLLOW_GZIP, 9, "z", 1, 5);
    lies("a.log.2", FOLLOW_PLAIN, 1, "a", 1, 10);
    follow_plan(&state, true, &listing, &plan);
    expect_new("a.log.2 a.log.1 a.log");
    cr_expect_eq(plan.n_unread, 0);
}

Test(follow_plan, the_log_that_stays_is_all_there_is, .init = begin)
{
    remember(3, "c", 1, 30);
    lies("a.log", FOLLOW_PLAIN, 3, "cd", 2, 40);
    lies("a.log.1", FOLLOW_PLAIN, 8, "c", 1, 41); /* a copy in the making */
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log", false);
    expect_new("");
}

Test(follow_plan, a_renamed_file_is_found_by_its_inode, .init = begin)
{
    remember(3, "c", 1, 30);
    lies("a.log", FOLLOW_PLAIN, 4, "d", 1, 50);
    lies("a.log.1", FOLLOW_PLAIN, 3, "cx", 2, 40);
    lies("a.log.2", FOLLOW_PLAIN, 2, "b", 1, 20);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.1", false);
    expect_new("a.log");
}

Test(follow_plan, files_between_are_read_in_order, .init = begin)
{
    remember(3, "c", 1, 30);
    lies("a.log.1", FOLLOW_PLAIN, 5, "e", 1, 60);
    lies("a.log.3", FOLLOW_PLAIN, 3, "cx", 2, 70); /* written late */
    lies("a.log.2", FOLLOW_PLAIN, 4, "d", 1, 50);
    lies("a.log.4", FOLLOW_PLAIN, 2, "b", 1, 20);
    lies("a.log.5.gz", FOLLOW_GZIP, 1, "a", 1, 10);
    lies("a.log", FOLLOW_PLAIN, 6, "f", 1, 55);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.3", false);
    expect_new("a.log.2 a.log.1 a.log");
    cr_expect_eq(plan.n_unread, 0);
}

/* Nothing of it can be read, or be missing. */
Test(follow_plan, an_empty_rotated_file_is_nothing, .init = begin)
{
    remember(3, "c", 1, 30);
    lies("a.log", FOLLOW_PLAIN, 4, "d", 1, 50);
    lies("a.log.1", FOLLOW_PLAIN, 5, "", 0, 45);
    lies("a.log.2.gz", FOLLOW_UNREADABLE, 6, "", 0, 40);
    lies("a.log.3", FOLLOW_PLAIN, 3, "cx", 2, 35);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.3", false);
    expect_new("a.log");
    cr_expect_eq(plan.n_unread, 0);
}

Test(follow_plan, an_inode_that_is_used_again_is_another_file, .init = begin)
{
    remember(3, "c", 1, 30);
    lies("a.log", FOLLOW_PLAIN, 3, "f", 1, 50);
    follow_plan(&state, false, &listing, &plan);
    cr_expect_eq(plan.entries[0], FOLLOW_NONE);
    cr_expect_eq(plan.packed[0], FOLLOW_NONE);
    expect_new("a.log");
}

Test(follow_plan, a_truncated_log_goes_on_in_its_copy, .init = begin)
{
    remember(3, "c", 5, 30);
    lies("a.log", FOLLOW_PLAIN, 3, "", 0, 50);
    lies("a.log.1", FOLLOW_PLAIN, 9, "cd", 9, 49);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.1", true);
    expect_new("a.log");
}

Test(follow_plan, truncated_twice, .init = begin)
{
    remember(3, "c", 5, 30);
    lies("a.log", FOLLOW_PLAIN, 3, "ef", 50, 70);
    lies("a.log.1", FOLLOW_PLAIN, 10, "d", 20, 60);
    lies("a.log.2", FOLLOW_PLAIN, 9, "cd", 9, 49);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.2", true);
    expect_new("a.log.1 a.log");
}

Test(follow_plan, a_log_that_was_seen_only_empty_may_have_been_truncated, .init = begin)
{
    remember(2, "b", 1, 20);
    remember(3, "", 0, 30);
    lies("a.log", FOLLOW_PLAIN, 3, "f", 1, 60);
    lies("a.log.1", FOLLOW_PLAIN, 9, "e", 5, 50);
    lies("a.log.2", FOLLOW_PLAIN, 8, "d", 5, 40);
    lies("a.log.3", FOLLOW_PLAIN, 2, "b", 1, 20);
    lies("a.log.4", FOLLOW_PLAIN, 1, "a", 1, 10);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.3", false);
    expect_found(1, "a.log.2", true);
    expect_new("a.log.1 a.log");
}

Test(follow_plan, a_copy_in_the_making_is_no_earlier_content, .init = begin)
{
    remember(3, "", 0, 30);
    lies("a.log", FOLLOW_PLAIN, 3, "fgh", 3, 60);
    lies("a.log.1", FOLLOW_PLAIN, 9, "fg", 2, 61);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log", false);
    expect_new("");
}

Test(follow_plan, a_compressed_file_is_known_by_its_first_bytes, .init = begin)
{
    remember(3, "c", 5, 30);
    lies("a.log", FOLLOW_PLAIN, 5, "e", 1, 70);
    lies("a.log.1.gz", FOLLOW_GZIP, 10, "d", 20, 60);
    lies("a.log.2.gz", FOLLOW_GZIP, 9, "cd", 9, 40);
    lies("a.log.3.gz", FOLLOW_GZIP, 8, "b", 9, 20);
    follow_plan(&state, false, &listing, &plan);
    cr_expect_eq(plan.entries[0], FOLLOW_NONE);
    cr_expect_eq(plan.packed[0], 2);
    cr_assert_eq(plan.n_unread, 1);
    cr_expect_eq(plan.unread[0], 1);
    expect_new("a.log");
}

/* The clock was set back, and the log was replaced twice.  What the first replaced was written
 * behind that.. */
Test(follow_plan, a_clock_that_was_set_back_hides_no_file, .init = begin)
{
    remember(2, "b", 1, 1000);
    remember(3, "c", 1, 2000);
    lies("a.log", FOLLOW_PLAIN, 5, "e", 1, 3000);
    lies("a.log.1", FOLLOW_PLAIN, 4, "d", 1, 1800);
    lies("a.log.2", FOLLOW_PLAIN, 3, "cx", 2, 1700);
    lies("a.log.3", FOLLOW_PLAIN, 2, "b", 1, 1000);
    follow_plan(&state, false, &listing, &plan);
    expect_found(1, "a.log.2", false);
    expect_new("a.log.1 a.log");
}

/* ..or is not, and only the log tells. */
Test(follow_plan, a_clock_that_was_set_back_before_the_log_was_replaced, .init = begin)
{
    remember(3, "c", 1, 2000);
    lies("a.log", FOLLOW_PLAIN, 5, "", 0, 800);
    lies("a.log.1", FOLLOW_PLAIN, 4, "d", 1, 700);
    lies("a.log.2", FOLLOW_PLAIN, 3, "c", 1, 2000);
    follow_plan(&state, false, &listing, &plan);
    expect_new("a.log.1 a.log");
}

Test(follow_plan, a_clock_that_was_set_back_before_an_empty_log_was_truncated, .init = begin)
{
    remember(3, "", 0, 2000);
    lies("a.log", FOLLOW_PLAIN, 3, "f", 1, 900);
    lies("a.log.1", FOLLOW_PLAIN, 9, "e", 5, 800);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.1", true);
    expect_new("a.log");
}

/* What was compressed at the first look is not remembered, but is older than what is. */
Test(follow_plan, a_clock_that_was_set_back_and_compressed_files, .init = begin)
{
    remember(2, "b", 1, 1000);
    remember(3, "c", 5, 2000);
    lies("a.log", FOLLOW_PLAIN, 5, "e", 1, 3000);
    lies("a.log.1.gz", FOLLOW_GZIP, 10, "d", 20, 1800);
    lies("a.log.2.gz", FOLLOW_GZIP, 9, "cd", 9, 1700);
    lies("a.log.3", FOLLOW_PLAIN, 2, "b", 1, 1000);
    lies("a.log.4.gz", FOLLOW_GZIP, 8, "a", 9, 500);
    follow_plan(&state, false, &listing, &plan);
    cr_expect_eq(plan.packed[1], 2);
    cr_assert_eq(plan.n_unread, 1);
    cr_expect_eq(plan.unread[0], 1);
    expect_new("a.log");
}

/* Then times tell again: a file that was forgotten is older than all that are remembered. */
Test(follow_plan, a_clock_that_was_set_back_when_files_are_forgotten, .init = begin)
{
    char head[] = "00";
    for (unsigned i = 0; i < FOLLOW_FILES_KEPT; i++) {
        head[0] = (char)('A' + i / 10);
        head[1] = (char)('0' + i % 10);
        remember(100 + i, head, 2, 1000 + 10 * (int64_t)i);
    }
    lies("a.log", FOLLOW_PLAIN, 5, "e", 1, 3000);
    lies("a.log.1", FOLLOW_PLAIN, 4, "d", 1, 1200);
    lies("a.log.2", FOLLOW_PLAIN, 100 + FOLLOW_FILES_KEPT - 1, head, 2, 1100);
    lies("a.log.99", FOLLOW_PLAIN, 9, "a", 1, 990);
    follow_plan(&state, false, &listing, &plan);
    expect_new("a.log.1 a.log");
}

Test(follow_plan, a_log_that_cannot_be_read_yet_is_not_new, .init = begin)
{
    remember(3, "c", 1, 30);
    lies("a.log", FOLLOW_UNREADABLE, 4, "", 9, 50);
    lies("a.log.1", FOLLOW_UNREADABLE, 3, "", 2, 40);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.1", false);
    expect_new("");
}

Test(follow_plan, files_that_begin_alike_are_told_by_their_inodes, .init = begin)
{
    remember(1, "x", 1, 10);
    remember(2, "x", 1, 20);
    remember(3, "x", 1, 30);
    lies("a.log", FOLLOW_PLAIN, 4, "x", 1, 50);
    lies("a.log.1", FOLLOW_PLAIN, 3, "x", 1, 30);
    lies("a.log.2", FOLLOW_PLAIN, 2, "x", 1, 20);
    lies("a.log.3", FOLLOW_PLAIN, 1, "x", 1, 10);
    follow_plan(&state, false, &listing, &plan);
    expect_found(0, "a.log.3", false);
    expect_found(1, "a.log.2", false);
    expect_found(2, "a.log.1", false);
    expect_new("a.log");
}

Test(follow_plan, a_log_that_appears_after_nothing_was_there, .init = begin)
{
    lies("a.log", FOLLOW_PLAIN, 4, "b", 1, 50);
    lies("a.log.1", FOLLOW_PLAIN, 3, "a", 1, 40);
    follow_plan(&state, false, &listing, &plan);
    expect_new("a.log.1 a.log");
}

Test(follow_plan, names_of_rotated_files)
{
    static const char *const rotated[] = {"a.log.1", "a.log.10", "a.log.1.gz", "a.log-20261122",
        "a.log-20261122.gz", "a.log-20261122-1790000000.zst", "a.log.2026-11-22T10:00:00Z",
        "a.log.old", "a.1.log", "a-20261122.log", "a-2026-11-22.log.gz", "a.log_2026-11-22"};
    static const char *const others[] = {"a.log", "a.logs.1", "b.log.1", "a.log.bak", "a.log.1.tmp",
        "a.log.tallyd", ".a.log.tallyd", "a.log.", "a.log-", "a-b.log", "a.error.log",
        "a-error.log.1", "ab.log.1", "a.log1", "a1.log", "a.log.1.gz.tmp", "a.log.gz"};
    for (size_t i = 0; i < sizeof(rotated) / sizeof(rotated[0]); i++) {
        cr_expect(follow_is_rotated_name("a.log", rotated[i]), "%s", rotated[i]);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        cr_expect_not(follow_is_rotated_name("a.log", others[i]), "%s", others[i]);
    }
    cr_expect(follow_is_rotated_name("log", "log.1"));
    cr_expect_not(follow_is_rotated_name(".log", "1.log"));
}
