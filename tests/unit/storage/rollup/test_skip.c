/* How far buckets without data are closed at once: pass_skip() of storage/rollup/step.h. */
#include "storage/rollup/step.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "storage/redis/resp.h"
#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/reply_notation.h"
#include "tests/lib/stand_in.h"

#define HOUR 3600
#define DAYS 3 /* so long nobody rolled up */

static struct core *core;
static struct session session;
static struct pass pass;
static struct arena arena;
static char open_set[1024]; /* the answer about it, as reply_read() takes it */
static const char *closes;  /* the answer of skip.lua */
static unsigned n_asked;
static char st[ROLLUP_STATE_TEXT], fold[VER_MAX + 1], end[24]; /* that skip.lua was given */

static bool still_mine(void *data)
{
    (void)data;
    return true;
}

static const struct leadership leadership = {.fencing_token = 7, .still_mine = still_mine};

static void copy_word(const struct command *command, size_t i, char *ret)
{
    memcpy(ret, command->words[i].p, command->words[i].n);
    ret[command->words[i].n] = '\0';
}

static const struct reply *answer(const struct buffer *out, size_t i)
{
    struct commands commands;
    cr_assert(commands_read(out, &commands) && i == 0 && commands.n == 1);
    const struct command *command = &commands.commands[0];
    bool scans = n_asked++ == 0;
    cr_expect(command_is(command, 0, scans ? "SSCAN" : "EVALSHA"));
    if (!scans) {
        cr_assert_eq(command->n, 12);
        copy_word(command, 7, st);
        copy_word(command, 9, fold);
        cr_expect(command_is(command, 10, "7"));
        copy_word(command, 11, end);
    }
    commands_release(&commands);
    return reply_read(&arena, slice_of(scans ? open_set : closes));
}

static int64_t now_hour_s(void)
{
    return FOLD_NOW_S / HOUR * HOUR;
}

/* All is closed up to DAYS before now. */
static void setup(void)
{
    core = fold_core_make(1);
    session = (struct session){.core = core, .redis = stand_in_redis()};
    stand_in.answer = answer;
    closes = "1";
    n_asked = 0;
    pass = (struct pass){.core = core,
        .session = &session,
        .tag = core->partitions.tag[0],
        .leadership = &leadership,
        .level = LEVEL_HOUR};
    pass.view.known = true;
    pass.view.fold = (struct ver){.n = 4, .text = "f.17"};
    pass.view.state = rollup_state_initial(FOLD_NOW_S - DAYS * 24 * HOUR);
    pass.end_s = pass.view.state.readers_s[LEVEL_HOUR] + HOUR;
    strcpy(open_set, "['0', []]");
}

static void teardown(void)
{
    buffer_release(&pass.keys);
    buffer_release(&pass.args);
    buffer_release(&pass.out);
    arena_release(&arena);
    fold_core_drop(core);
}

TestSuite(rollup_skip, .init = setup, .fini = teardown, .timeout = 60);

/* A site has data in the bucket of @level that @at_s lies in. */
static void has_data(enum level level, int64_t at_s)
{
    struct key member;
    key_open_member(&member, SLICE("site"), bucket_at(zone_utc(), level, at_s));
    (void)snprintf(open_set, sizeof(open_set), "['0', ['%.*s']]", (int)member.n, member.p);
}

static void expect_closed_to(int64_t end_s)
{
    struct rollup_state is;
    cr_assert_eq(pass_skip(&pass, FOLD_NOW_S), PASS_DONE);
    cr_expect_eq(n_asked, 2);
    cr_expect_str_eq(fold, "f.17");
    cr_expect_eq(strtoll(end, NULL, 10), end_s);
    cr_assert(rollup_state_parse(slice_of(st), &is));
    cr_expect_eq(is.writers_s[pass.level], end_s);
    cr_expect_eq(is.readers_s[pass.level], end_s);
    struct partition_view view = core_view(core, 0);
    cr_expect_eq(view.state.readers_s[pass.level], end_s, "and all who plan know");
    cr_expect(view.ver.n > 0 && !ver_equal(&view.ver, &pass.view.fold));
}

static void expect_pass(unsigned asked)
{
    cr_assert_eq(pass_skip(&pass, FOLD_NOW_S), PASS_VOID);
    cr_expect_eq(n_asked, asked);
    cr_expect_eq(pass.view.state.readers_s[LEVEL_HOUR], pass.end_s - HOUR);
}

Test(rollup_skip, all_that_is_due_where_nothing_has_data)
{
    expect_closed_to(now_hour_s());
}

Test(rollup_skip, no_hour_within_its_grace)
{
    struct leadership patient = {
        .fencing_token = 7, .still_mine = still_mine, .grace_s = FOLD_NOW_S - now_hour_s() + 1};
    pass.leadership = &patient;
    expect_closed_to(now_hour_s() - HOUR);
}

Test(rollup_skip, up_to_the_first_one_with_data)
{
    int64_t at_s = now_hour_s() - 30 * HOUR;
    has_data(LEVEL_HOUR, at_s + 60);
    expect_closed_to(at_s);
}

Test(rollup_skip, data_of_another_level_is_none)
{
    has_data(LEVEL_DAY, FOLD_NOW_S - DAYS * 24 * HOUR);
    expect_closed_to(now_hour_s());
}

Test(rollup_skip, days_up_to_where_hours_are_closed)
{
    int64_t day_s = FOLD_NOW_S / (24 * HOUR) * 24 * HOUR;
    pass.level = LEVEL_DAY;
    pass.end_s = pass.view.state.readers_s[LEVEL_DAY] + 24 * HOUR;
    pass.view.state.writers_s[LEVEL_HOUR] = pass.view.state.readers_s[LEVEL_HOUR] = day_s - HOUR;
    has_data(LEVEL_HOUR, day_s + HOUR);
    expect_closed_to(day_s - 24 * HOUR);
}

Test(rollup_skip, nothing_where_the_bucket_has_data)
{
    has_data(LEVEL_HOUR, pass.end_s - 1);
    expect_pass(1);
}

Test(rollup_skip, nothing_where_an_older_one_was_left)
{
    has_data(LEVEL_HOUR, pass.end_s - 50 * HOUR);
    expect_pass(1);
}

Test(rollup_skip, nothing_where_not_all_is_seen)
{
    strcpy(open_set, "['17', []]");
    expect_pass(1);
}

Test(rollup_skip, nothing_where_a_member_cannot_be_read)
{
    strcpy(open_set, "['0', ['site:nonsense']]");
    expect_pass(1);
}

Test(rollup_skip, nothing_where_something_was_counted_meanwhile)
{
    closes = "0";
    expect_pass(2);
}

Test(rollup_skip, a_year_of_hours_at_a_time)
{
    pass.view.state = rollup_state_initial(FOLD_NOW_S - 3 * 366 * 24 * (int64_t)HOUR);
    pass.end_s = pass.view.state.readers_s[LEVEL_HOUR] + HOUR;
    int64_t end_s = pass.end_s + 10000 * HOUR;
    expect_closed_to(end_s);
}
