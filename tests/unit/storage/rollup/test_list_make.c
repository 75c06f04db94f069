/* A list of what a pass has to merge, from replies as they come: pass_list() of rollup/step.h */
#include "storage/rollup/step.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/reply_notation.h"
#include "tests/lib/stand_in.h"

#define REPLIES_MAX 16

static struct core *core;
static struct session session;
static struct pass pass;
static struct arena arena;
static const char *replies[REPLIES_MAX]; /* "": the connection is lost */
static unsigned n_asked;
static bool leads;

static bool still_mine(void *data)
{
    (void)data;
    return leads;
}

static const struct leadership leadership = {.fencing_token = 1, .still_mine = still_mine};

static const struct reply *answer(const struct buffer *out, size_t i)
{
    struct commands commands;
    cr_assert(commands_read(out, &commands) && i == 0 && commands.n == 1);
    cr_expect(command_is(&commands.commands[0], 0, "EVALSHA"));
    commands_release(&commands);
    cr_assert_lt(n_asked, REPLIES_MAX);
    const char *text = replies[n_asked++];
    cr_assert_not_null(text, "nothing was to be asked after %u steps", n_asked - 1);
    if (text[0] == '\0') {
        return NULL;
    }
    const struct reply *reply = reply_read(&arena, slice_of(text));
    cr_assert_not_null(reply, "%s", text);
    return reply;
}

/* The hour before FOLD_NOW_S of one partition. */
static void setup(void)
{
    core = fold_core_make(1);
    session = (struct session){.core = core, .redis = stand_in_redis()};
    stand_in.answer = answer;
    leads = true;
    pass = (struct pass){.core = core,
        .session = &session,
        .tag = core->partitions.tag[0],
        .leadership = &leadership,
        .id = "p",
        .cur = "m0",
        .level = LEVEL_HOUR,
        .end_s = FOLD_NOW_S / 3600 * 3600};
}

static void teardown(void)
{
    rollup_list_release(&pass.list);
    buffer_release(&pass.keys);
    buffer_release(&pass.args);
    buffer_release(&pass.out);
    arena_release(&arena);
    fold_core_drop(core);
}

TestSuite(rollup_list, .init = setup, .fini = teardown, .timeout = 60);

/* ['CURSOR', [MEMBER]] with a member of @site for the hour that ends @hours_ago hours ago. */
static const char *open_sites(const char *cursor, const char *site, int hours_ago)
{
    static char texts[4][512];
    static unsigned n;
    char *text = texts[n++ % 4];
    struct key member;
    key_open_member(&member, slice_of(site),
        bucket_at(zone_utc(), LEVEL_HOUR, pass.end_s - 3600 * (1 + hours_ago)));
    (void)snprintf(
        text, sizeof(texts[0]), "[['%s', ['%.*s']], 1]", cursor, (int)member.n, member.p);
    return text;
}

/* Sizes, or pieces, of the sixty minutes of an hour: @first, and then @other. */
static const char *of_minutes(const char *first, const char *other)
{
    static char texts[4][4096];
    static unsigned turn;
    char *text = texts[turn++ % 4];
    size_t n = (size_t)snprintf(text, sizeof(texts[0]), "[%s", first);
    for (int i = 1; i < 60; i++) {
        n += (size_t)snprintf(text + n, sizeof(texts[0]) - n, ",%s", other);
    }
    (void)snprintf(text + n, sizeof(texts[0]) - n, ",1795187834000]");
    return text;
}

static enum pass_result make(bool sites_only)
{
    n_asked = 0;
    return pass_list(&pass, sites_only);
}

Test(rollup_list, sites_come_in_pieces_and_each_once)
{
    replies[0] = open_sites("17", "a", 0);
    replies[1] = open_sites("4", "b", 0);
    replies[2] = open_sites("0", "a", 0);
    cr_assert_eq(make(true), PASS_DONE);
    cr_expect_eq(n_asked, 3);
    cr_assert_eq(pass.list.n_sites, 2);
    cr_expect(slice_equal(pass.list.sites[0].name, SLICE("a")));
    cr_expect(slice_equal(pass.list.sites[1].name, SLICE("b")));
    cr_expect_eq(pass.list.n_cuts, 1);
    cr_expect_eq(rollup_cut_of(&pass.list, 1)->n_parts, 60);
}

Test(rollup_list, what_ended_before_is_listed_when_it_is_asked_for)
{
    replies[0] = open_sites("3", "a", 0);
    replies[1] = open_sites("0", "a", 5);
    cr_assert_eq(make(true), PASS_DONE);
    cr_expect_eq(pass.list.n_sites, 1);
    strcpy(pass.cur, "x0");
    cr_assert_eq(make(true), PASS_DONE);
    cr_assert_eq(pass.list.n_sites, 2, "two buckets of one site");
    cr_expect_eq(pass.list.n_cuts, 2);
    cr_expect_eq(rollup_cut_of(&pass.list, 1)->target.end_s, pass.end_s - 5 * 3600);
}

Test(rollup_list, members_that_are_none_of_ours_are_passed_over)
{
    replies[0] = "[['0', ['', 'x', 'site:', ':h', 'site:nonsense', 'site:h99999999']], 1]";
    cr_assert_eq(make(true), PASS_DONE);
    cr_expect_eq(pass.list.n_sites, 0);
}

Test(rollup_list, pages_are_listed_with_their_parts)
{
    replies[0] = open_sites("0", "a", 0);
    replies[1] = of_minutes("2", "0");
    replies[2] = "[['5', ['/x', '3', '/y', '1']], 1]"; /* a scan may show a page twice */
    replies[3] = "[['0', ['/x', '3']], 1]";
    replies[4] = of_minutes("0", "0"); /* visits */
    cr_assert_eq(make(false), PASS_DONE);
    cr_expect_eq(n_asked, 5);
    cr_assert_eq(pass.list.n_items, 2);
    cr_expect(slice_equal(pass.list.items[0].page, SLICE("/x")));
    cr_expect_eq(pass.list.items[0].parts, 1);
    cr_expect_eq(pass.list.items[0].count, 3, "its views count once");
    cr_expect_eq(pass.list.items[1].count, 1);
}

/* Minutes are kept for @keep_s, and the pass has closed its hour at @closed_s. */
static void close_hour(int64_t keep_s, int64_t closed_s)
{
    for (int level = 0; level < LEVELS; level++) {
        pass.view.retention.keep_s[level] = level == LEVEL_MINUTE ? keep_s : KEEP_FOREVER;
    }
    strcpy(pass.cur, "x0");
    pass.closed_ms = closed_s * 1000;
}

/* A pass before this one has closed the hour, at a time that is not known.  So minutes that have
 * expired by now may have been there, and then all pages of the hour are taken to be in them. */
Test(rollup_list, minutes_that_may_have_expired_since_an_earlier_pass_closed_their_hour)
{
    close_hour(4 * 3600, FOLD_NOW_S - 1);
    replies[0] = open_sites("0", "a", 5);
    replies[1] = of_minutes("0", "0");
    replies[2] = "[1, 1795187834000]"; /* the hour itself */
    replies[3] = "[['0', ['/x', '3']], 1795187834000]";
    replies[4] = of_minutes("0", "0"); /* visits */
    replies[5] = "[0, 1795187834000]";
    cr_assert_eq(make(false), PASS_DONE);
    cr_expect_eq(n_asked, 6);
    cr_assert_eq(pass.list.n_items, 1);
    cr_expect(slice_equal(pass.list.items[0].page, SLICE("/x")));
    cr_expect_eq(pass.list.items[0].parts, (UINT64_C(1) << 60) - 1);
}

/* Their keys were gone by then, and so none of them still needs an expiry. */
Test(rollup_list, minutes_that_had_expired_when_the_hour_was_closed)
{
    close_hour(60, FOLD_NOW_S - 1);
    replies[0] = open_sites("0", "a", 0);
    replies[1] = of_minutes("0", "0");
    replies[2] = of_minutes("0", "0"); /* visits */
    cr_assert_eq(make(false), PASS_DONE);
    cr_expect_eq(n_asked, 3, "the hour itself is not looked at");
    cr_expect_eq(pass.list.n_items, 0);
}

/* Each step of a list may be the one that meets another Redis than the step before. */
static void expect_at_each_step(const char *reply, enum pass_result result)
{
    for (unsigned at = 0; at < 5; at++) {
        replies[0] = open_sites("0", "a", 0);
        replies[1] = of_minutes("2", "0");
        replies[2] = "[['0', ['/x', '3']], 1]";
        replies[3] = of_minutes("2", "0");
        replies[4] = "[['0', ['/x', '3']], 1]";
        replies[at] = reply;
        cr_expect_eq(make(false), result, "%s at step %u", reply, at);
        cr_expect_eq(n_asked, at + 1, "nothing is asked behind it");
    }
}

Test(rollup_list, a_pass_that_is_another_process_s_is_void)
{
    expect_at_each_step("0", PASS_VOID);
}

Test(rollup_list, a_lost_connection_and_errors)
{
    expect_at_each_step("", PASS_LOST);
    expect_at_each_step("!'NOSCRIPT No matching script.'", PASS_LOST);
    expect_at_each_step("!'READONLY You can\"t write'", PASS_LOST);
    expect_at_each_step("!'LOADING Redis is loading'", PASS_FAILED);
    expect_at_each_step("!'WRONGTYPE a key of another type'", PASS_FAILED);
    core->is_spread = true;
    expect_at_each_step("!'MOVED 1 127.0.0.1:1'", PASS_FAILED);
    expect_at_each_step("!'TRYAGAIN Multiple keys'", PASS_FAILED);
    core->is_spread = false;
}

Test(rollup_list, replies_of_another_shape)
{
    expect_at_each_step("null", PASS_FAILED);
    expect_at_each_step("'text'", PASS_FAILED);
    expect_at_each_step("[]", PASS_FAILED);
    expect_at_each_step("[1]", PASS_FAILED);
    expect_at_each_step("[1, 2, 3]", PASS_FAILED);
    static const char *const scans[] = {
        "[['0'], 1]", "[['0', [], []], 1]", "[7, 1]", "[['0123456789012345678901234', []], 1]"};
    for (size_t i = 0; i < sizeof(scans) / sizeof(scans[0]); i++) {
        replies[0] = scans[i];
        cr_expect_eq(make(true), PASS_FAILED, "%s", scans[i]);
        replies[0] = open_sites("0", "a", 0);
        replies[1] = of_minutes("2", "0");
        replies[2] = scans[i];
        cr_expect_eq(make(false), PASS_FAILED, "%s", scans[i]);
        cr_expect_eq(n_asked, 3);
    }
    replies[1] = of_minutes("-1", "0");
    cr_expect_eq(make(false), PASS_FAILED);
    replies[1] = of_minutes("null", "0");
    cr_expect_eq(make(false), PASS_FAILED);
}

Test(rollup_list, whoever_does_not_lead_any_more_asks_nothing)
{
    leads = false;
    cr_expect_eq(make(false), PASS_VOID);
    cr_expect_eq(n_asked, 0);
}
