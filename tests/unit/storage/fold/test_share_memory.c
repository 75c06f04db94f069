#include "storage/fold/share.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/commands.h"
#include "tests/lib/share_fixture.h"

/* What a share remembers of a partition, and when that holds no longer. */
TestSuite(share_memory, .init = fixture_setup, .fini = fixture_teardown, .timeout = 60);

/* ---- users ---- */

/* An index that is known holds for one generation of users. */
Test(share_memory, begins_again_when_a_user_was_forgotten)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    known_users_generation(&fixture.memory.users, 0, SLICE("g1"));
    known_users_add(&fixture.memory.users, 0, &fixture.batch.rows[0].visitor, 5, ACTIVE_DAY_NONE);
    cr_assert_eq(fixture.batch.rows[0].user.n, 3u);
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    state.users = "g2";
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_AGAIN);
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
}

/* Who is expected among the visits, and is not there, is asked for by name. */
Test(share_memory, begins_again_when_a_user_was_expected_in_vain)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    struct buffer out;
    known_users_generation(&fixture.memory.users, 0, SLICE("g1"));
    cr_assert(fixture.batch.rows[0].user_is_visitor);
    int64_t slot = FOLD_NOW_S / (2 * fixture.core->config.visit_timeout_s);
    known_visitors_add(&fixture.shared.visitors, &fixture.batch.rows[0].user_id, slot);
    fixture_begin();
    buffer_init(&out);
    (void)share_write(fixture.share, SHARE_STATE, &out);
    cr_expect_null(memmem(out.p, out.n, "$3\r\nann\r\n", 9), "by name");
    buffer_release(&out);
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_AGAIN);
    fixture_begin();
    cr_expect_eq(fixture_decide(&state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    buffer_init(&out);
    cr_assert_gt(share_write_commands(fixture.share, &out), 1u);
    buffer_release(&out);
    cr_expect_eq(
        known_visitors_find(&fixture.shared.visitors, &fixture.batch.rows[0].user_id, slot),
        VISIT_ANYWHERE);
    share_learn(fixture.share);
    cr_expect_eq(
        known_visitors_find(&fixture.shared.visitors, &fixture.batch.rows[0].user_id, slot),
        VISIT_IN_SLOT);
    cr_expect_null(known_users_find(&fixture.memory.users, 0, &fixture.batch.rows[0].user_id),
        "once is enough");
}

/* ---- what counters are known to have ---- */

/* What Redis has of the counters, and what each fold of all rows adds. */
#define COUNTERS_MAX 32
static struct {
    char name[120]; /* the key, a blank, the field */
    long long value, added;
} counters[COUNTERS_MAX];
static size_t n_counters;

static size_t counter_of(const struct command *c, size_t field)
{
    char name[sizeof(counters[0].name)];
    size_t i = 0;
    (void)snprintf(name, sizeof(name), "%.*s %.*s", (int)c->words[1].n, c->words[1].p,
        (int)c->words[field].n, c->words[field].p);
    while (i < n_counters && strcmp(counters[i].name, name) != 0) {
        i++;
    }
    if (i == n_counters) {
        cr_assert_lt(n_counters++, (size_t)COUNTERS_MAX);
        memcpy(counters[i].name, name, sizeof(name));
        counters[i].value = 1000 * (long long)i; /* each counter has another value */
    }
    return i;
}

/* Carries out a command on counters, as Redis would; returns how many it sets. */
static size_t run_command(const struct command *c, struct reply *ret)
{
    struct slice key = c->n > 1 ? c->words[1] : SLICE("");
    size_t n_set = 0;
    *ret = (struct reply){.type = REPLY_INTEGER};
    if (key.n < 8 || (memcmp(key.p, "t:{0}:pv", 8) != 0 && memcmp(key.p, "t:{0}:vv", 8) != 0)) {
        return 0;
    }
    if (command_is(c, 0, "HINCRBY")) {
        size_t i = counter_of(c, 2);
        counters[i].added = command_number(c, 3);
        ret->integer = counters[i].value += counters[i].added;
        return 0;
    }
    for (size_t f = 2; command_is(c, 0, "HSET") && f < c->n; f += 2, n_set++) {
        size_t i = counter_of(c, f);
        counters[i].value += counters[i].added;
        cr_expect_eq(command_number(c, f + 1), counters[i].value, "%s", counters[i].name);
    }
    return n_set;
}

/* Folds all rows; returns how many counters were set.  *ret_fold: the new id of the last fold. */
static size_t counters_set(
    const struct share_state_fields *state, bool carried_out, char ret_fold[100])
{
    struct buffer out;
    struct buffer due;
    struct commands commands;
    size_t n_set = 0;
    fixture_begin();
    cr_expect_eq(fixture_decide(state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    buffer_init(&out);
    buffer_init(&due);
    size_t n = share_write_commands(fixture.share, &out);
    cr_assert(commands_read(&out, &commands) && commands.n == n);
    struct reply *replies = calloc(n, sizeof(*replies));
    cr_assert_not_null(replies);
    for (size_t i = 0; i < n; i++) {
        n_set += run_command(&commands.commands[i], &replies[i]);
    }
    for (size_t i = 2; i < commands.commands[0].n; i += 2) {
        if (command_is(&commands.commands[0], i, "fold")) {
            struct slice id = commands.commands[0].words[i + 1];
            (void)snprintf(ret_fold, 100, "%.*s", (int)id.n, id.p);
        }
    }
    if (carried_out) {
        share_done(fixture.share, replies, &due);
    }
    for (size_t i = 0; !carried_out && i < n_counters; i++) {
        counters[i].value -= counters[i].added;
    }
    free(replies);
    commands_release(&commands);
    buffer_release(&out);
    buffer_release(&due);
    return n_set;
}

/* What is known holds for the id that the state got with it, and for no other one. */
Test(share_memory, sets_counters_by_the_id_of_its_last_fold)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .b = "6"};
    char first[100];
    char lost[100];
    char second[100];
    cr_expect_eq(counters_set(&state, true, first), 0u);
    state.fold = first;
    size_t all = counters_set(&state, false, lost);
    cr_expect_gt(all, 4u, "%zu", all);
    cr_expect_eq(counters_set(&state, false, lost), all, "the one before was not carried out");
    state.fold = lost;
    cr_expect_eq(counters_set(&state, true, first), 0u, "or it was: nobody knows of what");
    state.fold = first;
    cr_expect_eq(counters_set(&state, true, second), all);
    cr_expect_eq(counters_set(&state, false, lost), 0u, "Redis has gone back");
    state.fold = "f";
    cr_expect_eq(counters_set(&state, false, lost), 0u, "somebody else has folded");
}

/* A deletion takes counters away, and gives the state no new id each time. */
Test(share_memory, sets_no_counter_while_a_deletion_sweeps)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .b = "6"};
    char before[100];
    char during[100];
    cr_expect_eq(counters_set(&state, true, before), 0u);
    state.fold = before;
    state.deleting = "1";
    cr_expect_eq(counters_set(&state, true, during), 0u);
    state.fold = during;
    cr_expect_eq(counters_set(&state, true, during), 0u, "nor was anything learnt");
    state.deleting = NULL;
    cr_expect_eq(counters_set(&state, true, during), 0u, "nor is it, with the sweep's last id");
}

/* ---- announcements ---- */

/* Decides and writes; returns how many members are added to `open` and `sites`. */
static size_t n_announced(const struct share_state_fields *state)
{
    struct buffer out;
    struct commands commands;
    size_t n = 0;
    buffer_init(&out);
    fixture_begin();
    cr_expect_eq(fixture_decide(state, LOG_COUNTS, SHARE_NOW_MS), SHARE_FOLDS);
    (void)share_write_commands(fixture.share, &out);
    cr_assert(commands_read(&out, &commands));
    for (size_t i = 0; i < commands.n; i++) {
        n += command_is(&commands.commands[i], 0, "SADD") ? commands.commands[i].n - 2 : 0;
    }
    share_learn(fixture.share);
    known_visitors_forget(&fixture.shared.visitors); /* the fixture answers as if nobody was seen */
    fixture.memory.users.partitions[0].era = 0;      /* nor do the rows rely on users */
    commands_release(&commands);
    buffer_release(&out);
    return n;
}

/* A site and its hour are announced once, and again when a site was deleted: the sets may lack
 * them. */
Test(share_memory, announces_once)
{
    struct share_state_fields state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    cr_expect_eq(n_announced(&state), 2u);
    cr_expect_eq(n_announced(&state), 0u);
    state.users = "g2"; /* deletion_mark.lua sets it */
    cr_expect_eq(n_announced(&state), 2u);
}
