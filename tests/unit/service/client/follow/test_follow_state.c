#include "service/client/follow/follow_state.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(follow_state, .timeout = 60);

static struct follow_state full_state(void)
{
    struct follow_state state = {.n = FOLLOW_FILES, .sites = "--site blog"};
    for (size_t i = 0; i < FOLLOW_FILES; i++) {
        state.files[i] = (struct follow_file){.inode = i % 2 == 0 ? UINT64_MAX : INT64_MAX,
            .format = "nginx-json",
            .head = follow_head_of(SLICE("192.0.2.1 - -")),
            .place = {.offset = INT64_MAX - 1,
                .lines = INT64_MAX,
                .header = i % 2 == 0 ? -1 : 7,
                .in_long_line = i % 3 == 0},
            .size = INT64_MAX,
            .mtime_ns = i % 4 == 0 ? INT64_MIN : INT64_MAX, /* before 1970, too */
            .is_done = i % 5 == 0,
            .is_past = i % 7 == 0};
        memset(state.files[i].id.bytes, (int)(200 + i % 50), sizeof(state.files[i].id.bytes));
    }
    state.has_piece = true;
    state.piece = (struct follow_piece){.file = FOLLOW_FILES - 1,
        .to = {.offset = INT64_MAX, .lines = INT64_MAX, .header = 9, .in_long_line = true},
        .sent_at_s = 1790000000,
        .is_last = true};
    return state;
}

Test(follow_state, what_is_written_is_read)
{
    char text[FOLLOW_STATE_BYTES];
    struct follow_state state = full_state(), read;
    size_t n = follow_state_print(&state, text);
    cr_assert(n > 0, "the largest state fits");
    cr_assert(follow_state_parse((struct slice){text, n}, &read));
    char again[FOLLOW_STATE_BYTES];
    cr_expect_eq(follow_state_print(&read, again), n);
    cr_expect_str_eq(again, text);
    cr_expect_str_eq(read.sites, "--site blog");
    cr_expect_eq(read.files[3].place.header, 7);
    cr_expect(read.files[7].is_past && !read.files[8].is_past);
    cr_expect_eq(read.files[3].id.bytes[0], 203);
    cr_expect_eq(read.files[4].inode, UINT64_MAX);
    cr_expect_eq(read.files[4].mtime_ns, INT64_MIN);
    cr_expect_eq(read.piece.to.offset, INT64_MAX);
    follow_state_pass(&read);
    const struct follow_place *last = &read.files[FOLLOW_FILES - 1].place;
    cr_expect(last->offset == INT64_MAX && last->lines == INT64_MAX && last->header == 9);
    cr_expect(last->in_long_line && !read.has_piece);
    struct follow_state none = {0};
    n = follow_state_print(&none, text);
    cr_assert(n > 0 && follow_state_parse((struct slice){text, n}, &read));
    cr_expect_eq(read.n, 0);
    cr_expect_not(read.has_piece);
}

Test(follow_state, a_state_that_is_cut_off_or_changed_is_none)
{
    char text[FOLLOW_STATE_BYTES];
    struct follow_state state = full_state(), read;
    state.n = state.piece.file = 2;
    state.has_piece = false;
    size_t n = follow_state_print(&state, text);
    for (size_t cut = 0; cut < n; cut++) {
        cr_assert_not(follow_state_parse((struct slice){text, cut}, &read), "%zu bytes", cut);
    }
    static const struct {
        const char *was, *is;
    } changes[] = {
        {"\"sites\":\"",
            "\"sites\":\"01234567890123456789012345678901234567890123456789012345678901234"
            "5678901234567890123456789012345"},
        {"\"version\":1", "\"version\":2"}, {"\"lines\":9", "\"lines\":-"},
        {"\"head_bytes\":13", "\"head_bytes\":9999"}, {"\"head\":\"", "\"head\":\"z"},
        {"\"format\":\"nginx-json\"", "\"format\":\"a-name-that-is-too-long\""},
        {"\"header\":-1", "\"header\":-2"}, {"\"done\":true", "\"done\":1"},
        {"\"files\":[", "\"files\":[0,"}};
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char other[FOLLOW_STATE_BYTES + 64];
        const char *at = strstr(text, changes[i].was);
        cr_assert_not_null(at, "%s", changes[i].was);
        int length = snprintf(other, sizeof(other), "%.*s%s%s", (int)(at - text), text,
            changes[i].is, at + strlen(changes[i].was));
        cr_expect_not(
            follow_state_parse((struct slice){other, (size_t)length}, &read), "%s", changes[i].is);
    }
}

Test(follow_state, a_piece_lies_behind_its_files_offset)
{
    char text[FOLLOW_STATE_BYTES];
    struct follow_state state = full_state(), read;
    state.piece.to = state.files[FOLLOW_FILES - 1].place;
    size_t n = follow_state_print(&state, text);
    cr_expect_not(follow_state_parse((struct slice){text, n}, &read));
    state.piece.file = FOLLOW_FILES;
    n = follow_state_print(&state, text);
    cr_expect_not(follow_state_parse((struct slice){text, n}, &read));
}

Test(follow_state, a_file_that_is_forgotten_moves_the_others)
{
    struct follow_state state = full_state();
    state.files[5].inode = 55;
    follow_state_remove(&state, 4);
    cr_expect_eq(state.n, FOLLOW_FILES - 1);
    cr_expect_eq(state.files[4].inode, 55);
    cr_expect_eq(state.piece.file, FOLLOW_FILES - 2);
    follow_state_remove(&state, state.n - 1 == state.piece.file ? 0 : state.n - 1);
    cr_expect_eq(state.piece.file, FOLLOW_FILES - 3);
}

Test(follow_state, a_head_fits_what_begins_so)
{
    struct follow_head head = follow_head_of(SLICE("one line\n"));
    cr_expect(follow_head_fits(&head, SLICE("one line\n")));
    cr_expect(follow_head_fits(&head, SLICE("one line\nand another\n")));
    cr_expect_not(follow_head_fits(&head, SLICE("one line")));
    cr_expect_not(follow_head_fits(&head, SLICE("two line\n")));
    struct follow_head none = follow_head_of(SLICE(""));
    cr_expect(follow_head_fits(&none, SLICE("anything")));
    char long_text[2 * FOLLOW_HEAD] = {0};
    head = follow_head_of((struct slice){long_text, sizeof(long_text)});
    cr_expect_eq(head.n, FOLLOW_HEAD);
    long_text[FOLLOW_HEAD] = 'x';
    cr_expect(follow_head_fits(&head, (struct slice){long_text, sizeof(long_text)}));
    long_text[FOLLOW_HEAD - 1] = 'x';
    cr_expect_not(follow_head_fits(&head, (struct slice){long_text, sizeof(long_text)}));
}
