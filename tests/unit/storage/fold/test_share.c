#include "storage/fold/share.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"

/* What a partition's share decides by the state that it has read, and what it writes of it. */
TestSuite(share, .timeout = 60);

#define A         "00000000000000aa"
#define B         "00000000000000bb"
#define ROWS      7
#define NOW_MS    (FOLD_NOW_S * 1000)
#define MINUTE_MS INT64_C(60000)

static struct core *core;
static struct shared_memory shared;
static struct fold_memory memory = {.shared = &shared};
static struct batch batch;
static struct share *share;

/* What the process knows of the partition, from reading it before. */
static void know_view(bool known)
{
    struct partition_view view = {.known = known,
        .state = rollup_state_initial(FOLD_NOW_S),
        .retention = core->config.retention};
    core_set_view(core, 0, &view);
}

/* One partition, and the rows A1 A1 B7 B7 A3 A3 A3. */
static void setup(void)
{
    core = fold_core_make(1);
    know_view(true);
    shared_memory_init(&shared, 1);
    share = share_new(core, &memory);
    cr_assert_not_null(share);
    cr_assert_not_null(batch_add_log(&batch, A, 0));
    cr_assert(batch_add(&batch, fold_entry(A, 1, FOLD_NOW_S, 2)) &&
              batch_add(&batch, fold_entry(A, 2, FOLD_NOW_S + 1, 0)) &&
              batch_add(&batch, fold_entry(A, 3, FOLD_NOW_S + 2, 3)));
    cr_assert_not_null(batch_add_log(&batch, B, 6));
    cr_assert(batch_add(&batch, fold_entry(B, 7, FOLD_NOW_S + 1, 2)));
    cr_assert(batch_finish(&batch, core));
    cr_assert_eq(batch.n_rows, ROWS);
}

static void teardown(void)
{
    share_free(share);
    batch_release(&batch);
    fold_memory_forget(&memory);
    known_users_release(&memory.users);
    known_sketches_release(&memory.sketches);
    shared_memory_release(&shared);
    fold_core_drop(core);
}

/* What Redis has: fields of the partition's state. */
struct state {
    const char *cfg, *over, *users, *a, *b, *deleted, *deleting;
    const char *fold; /* NULL: "f" */
};

#define LOG_FIELDS_HERE (STATE_FIELDS + 3)

#define SITE_STRIPE 5 /* of all rows, for they are of one minute */

/* The share of all tasks begins. */
static void begin(void)
{
    struct cut cut = {.to = (uint32_t)batch.tasks[0].n, .end_stripe = LOG_STRIPES};
    cr_assert(share_begin(share, &batch, &cut));
}

/* The share of the tasks begins that are of the sites' stripe and of rows [from, to). */
static void begin_stripe(uint32_t from, uint32_t to)
{
    bool all = to == ROWS;
    struct cut cut = {
        .first_stripe = SITE_STRIPE, .end_stripe = SITE_STRIPE + all, .to_row = all ? 0 : to};
    for (; cut.to < batch.tasks[0].n; cut.to++) {
        uint32_t task = batch.tasks[0].tasks[cut.to];
        unsigned stripe = task_stripe(batch.rows, task);
        if (stripe > SITE_STRIPE || (stripe == SITE_STRIPE && task_row_number(task) >= to)) {
            break;
        }
        cut.from += stripe < SITE_STRIPE || task_row_number(task) < from;
    }
    cr_assert(share_begin(share, &batch, &cut));
}

static bool take_state(const struct state *state)
{
    char st[ROLLUP_STATE_TEXT];
    struct rollup_state closed = rollup_state_initial(FOLD_NOW_S);
    (void)rollup_state_print(&closed, st);
    struct reply fields[] = {fold_text(state->cfg), fold_text(st), fold_text("v"), fold_text(NULL),
        fold_text(state->over), fold_text(state->fold == NULL ? "f" : state->fold),
        fold_text(state->users), fold_text(state->deleted), fold_text(state->deleting),
        fold_text(state->a), fold_text(state->b)};
    struct reply reply = fold_array(fields, LOG_FIELDS_HERE + 2);
    return share_take(share, SHARE_STATE, 0, &reply);
}

/* Nobody was seen before: each question but the state gets nils, or 0. */
static void take_nothing(const struct command *question, size_t i)
{
    static struct reply items[1100] = {{.type = REPLY_NIL}};
    struct reply reply = {.type = REPLY_INTEGER, .integer = 0};
    if (command_is(question, 0, "HMGET") || command_is(question, 0, "ZMSCORE")) {
        cr_assert_leq(question->n, 1100u);
        reply = fold_array(items, question->n - 2);
    } else {
        cr_assert(command_is(question, 0, "EXISTS"));
    }
    cr_assert(share_take(share, SHARE_STATE, i, &reply));
}

/* Ask, and answer. */
static void look(const struct state *state)
{
    struct buffer out;
    struct commands questions;
    buffer_init(&out);
    size_t n = share_write(share, SHARE_STATE, &out);
    cr_assert(commands_read(&out, &questions));
    cr_assert_eq(questions.n, n);
    cr_assert_eq(questions.commands[0].n, 2u + LOG_FIELDS_HERE + 2);
    cr_assert(command_is(&questions.commands[0], 2 + LOG_FIELDS_HERE, A));
    cr_assert(take_state(state));
    for (size_t i = 1; i < n; i++) {
        take_nothing(&questions.commands[i], i);
    }
    commands_release(&questions);
    buffer_release(&out);
}

static enum share_look decide(const struct state *state, enum log_fate a, int64_t now_ms)
{
    enum log_fate fates[BATCH_LOGS] = {a, LOG_COUNTS};
    uint32_t log = BATCH_LOGS;
    look(state);
    enum share_look result = share_decide(share, fates, now_ms, &log);
    cr_expect_eq(log, result == SHARE_STALE ? 1u : BATCH_LOGS);
    return result;
}

/* The value that the share's commands give a field of the state; "" if none. */
static void written(const char *field, char ret[100])
{
    struct buffer out;
    struct commands commands;
    buffer_init(&out);
    size_t n = share_write_commands(share, &out);
    cr_assert(commands_read(&out, &commands));
    cr_assert_eq(commands.n, n);
    const struct command *first = &commands.commands[0];
    cr_assert(command_is(first, 0, "HSET") && first->n % 2 == 0);
    ret[0] = '\0';
    for (size_t i = 2; i < first->n; i += 2) {
        if (command_is(first, i, field)) {
            cr_assert_lt(first->words[i + 1].n, 100u);
            memcpy(ret, first->words[i + 1].p, first->words[i + 1].n);
            ret[first->words[i + 1].n] = '\0';
        }
    }
    commands_release(&commands);
    buffer_release(&out);
}

static void expect_written(const char *field, const char *value, const char *what)
{
    char is[100];
    written(field, is);
    cr_expect_str_eq(is, value, "%s of %s", field, what);
}

/* What the share adds to the figures. */
static struct storage_stats shown(void)
{
    struct storage_stats stats = {0};
    share_show(share, &stats);
    return stats;
}

/* ---- cursors ---- */

static const struct {
    const char *a, *b; /* cursors that were read */
    uint32_t from, to; /* rows of the share, in one stripe; to 0: the share has all tasks */
    enum share_look look;
    size_t events;             /* counted */
    const char *a_new, *b_new; /* cursors that are written; "": none */
} decisions[] = {
    {NULL, "6", 0, 0, SHARE_FOLDS, 7, "3", "7"},
    {"1", "6", 0, 0, SHARE_FOLDS, 5, "3", "7"},
    {"2", "6", 0, 0, SHARE_FOLDS, 5, "3", "7"},
    /* some events of an entry are counted */
    {"1:1", "6", 0, 0, SHARE_FOLDS, 6, "3", "7"},
    {"3:2", "6", 0, 0, SHARE_FOLDS, 3, "3", "7"},
    {"3:2", "7:1", 0, 0, SHARE_FOLDS, 2, "3", "7"},
    {"3", "7:1", 0, 0, SHARE_FOLDS, 1, "", "7"},
    {"3:3", "7", 0, 0, SHARE_FOLDS, 0, "3", ""},
    /* one log is counted, or all are, or more than the batch has */
    {"3", "6", 0, 0, SHARE_FOLDS, 2, "", "7"},
    {"3", "7", 0, 0, SHARE_NOTHING, 0, "", ""},
    {"9", "7:5", 0, 0, SHARE_FOLDS, 0, "", "7"},
    {"9:1", "12", 0, 0, SHARE_NOTHING, 0, "", ""},
    /* entries are missing */
    {NULL, NULL, 0, 0, SHARE_STALE, 0, "", ""},
    {NULL, "5", 0, 0, SHARE_STALE, 0, "", ""},
    {"3", "6:1", 0, 0, SHARE_STALE, 0, "", ""},
    {"3", "5", 0, 1, SHARE_STALE, 0, "", ""},
    /* the cut is within an entry, behind one, and of what is left of a stripe */
    {NULL, "6", 0, 1, SHARE_FOLDS, 1, "0*5,1:1,0*26", ""},
    {"1:1", "6", 0, 1, SHARE_NOTHING, 0, "", ""},
    {"0*5,1:1,0*26", "6", 1, 3, SHARE_FOLDS, 2, "0*5,2,0*26", "6*5,7:1,6*26"},
    {NULL, "6", 0, 2, SHARE_FOLDS, 2, "0*5,2,0*26", ""},
    {"2", "7:1", 3, 6, SHARE_FOLDS, 3, "2*5,3:2,2*26", "7:1*5,7,7:1*26"},
    {"3:2", "7", 6, 7, SHARE_FOLDS, 1, "3:2*5,3,3:2*26", ""},
    {"0*5,3:2,0*26", "7", 6, 7, SHARE_FOLDS, 1, "0*5,3,0*26", ""},
    /* one stripe is ahead of the others, or behind them */
    {"0*5,3,0*26", "6*5,7,6*26", 0, 0, SHARE_FOLDS, 0, "3", "7"},
    {"0*5,9,0*26", "6*5,7,6*26", 0, 0, SHARE_FOLDS, 0, "3*5,9,3*26", "7"},
    {"3*5,0,3*26", "7", 0, 0, SHARE_FOLDS, 5, "3", ""},
    {"3*5,1:1,3*26", "7*5,7:1,7*26", 0, 0, SHARE_FOLDS, 5, "3", "7"},
    {"3*5,0,3*26", "7", 0, 7, SHARE_FOLDS, 5, "3", ""},
    {"0*5,3,0*26", "6*5,7,6*26", 0, 7, SHARE_NOTHING, 0, "", ""},
    {"3", "7*5,5,7*26", 0, 0, SHARE_STALE, 0, "", ""},
    {"3", "5*5,7,5*26", 0, 7, SHARE_NOTHING, 0, "", ""},
};

Test(share, counts_what_no_cursor_says_is_counted, .init = setup, .fini = teardown)
{
    for (size_t i = 0; i < sizeof(decisions) / sizeof(decisions[0]); i++) {
        struct state state = {.cfg = FOLD_CFG, .a = decisions[i].a, .b = decisions[i].b};
        char what[40];
        (void)snprintf(what, sizeof(what), "case %zu", i);
        if (decisions[i].to == 0) {
            begin();
        } else {
            begin_stripe(decisions[i].from, decisions[i].to);
        }
        enum share_look result = decide(&state, LOG_COUNTS, NOW_MS);
        cr_expect_eq(result, decisions[i].look, "%s: %d", what, result);
        if (result == SHARE_FOLDS) {
            cr_expect_eq((size_t)shown().fold_events, decisions[i].events, "%s: %zu", what,
                (size_t)shown().fold_events);
            expect_written(A, decisions[i].a_new, what);
            expect_written(B, decisions[i].b_new, what);
        }
    }
}

Test(share, counts_nothing_of_a_log_without_a_head, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .b = "6"};
    begin();
    cr_expect_eq(decide(&state, LOG_GONE, NOW_MS), SHARE_FOLDS);
    cr_expect_eq((size_t)shown().fold_events, 2u);
    expect_written(A, "", "a log that is gone");
    expect_written(B, "7", "the other");
    state.b = "7";
    begin();
    cr_expect_eq(decide(&state, LOG_GONE, NOW_MS), SHARE_NOTHING);
}

/* ---- states ---- */

Test(share, refuses_a_state_that_is_not_ours, .init = setup, .fini = teardown)
{
    struct state state = {.b = "6"};
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_EMPTIED);
    state.cfg = "other settings";
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_CONFIG);
}

Test(share, takes_no_reply_that_is_none, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .a = "x", .b = "6"};
    struct reply error = {.type = REPLY_ERROR, .text = SLICE("ERR")};
    struct reply items[7] = {{.type = REPLY_NIL}};
    struct reply few = fold_array(items, 7);
    struct buffer out;
    buffer_init(&out);
    begin();
    cr_assert_gt(share_write(share, SHARE_STATE, &out), 1u);
    cr_expect_not(take_state(&state));
    cr_expect_not(share_take(share, SHARE_STATE, 0, &error));
    cr_expect_not(share_take(share, SHARE_STATE, 0, &few));
    buffer_release(&out);
}

/* An index that is known holds for one generation of users. */
Test(share, begins_again_when_a_user_was_forgotten, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    known_users_generation(&memory.users, 0, SLICE("g1"));
    known_users_add(&memory.users, 0, &batch.rows[0].visitor, 5, ACTIVE_DAY_NONE);
    cr_assert_eq(batch.rows[0].user.n, 3u);
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    state.users = "g2";
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_AGAIN);
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
}

/* Who is expected among the visits, and is not there, is asked for by name. */
Test(share, begins_again_when_a_user_was_expected_in_vain, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    struct buffer out;
    known_users_generation(&memory.users, 0, SLICE("g1"));
    cr_assert(batch.rows[0].user_is_visitor);
    int64_t slot = FOLD_NOW_S / (2 * core->config.visit_timeout_s);
    known_visitors_add(&shared.visitors, &batch.rows[0].user_id, slot);
    begin();
    buffer_init(&out);
    (void)share_write(share, SHARE_STATE, &out);
    cr_expect_null(memmem(out.p, out.n, "$3\r\nann\r\n", 9), "by name");
    buffer_release(&out);
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_AGAIN);
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    buffer_init(&out);
    cr_assert_gt(share_write_commands(share, &out), 1u);
    buffer_release(&out);
    cr_expect_eq(
        known_visitors_find(&shared.visitors, &batch.rows[0].user_id, slot), VISIT_ANYWHERE);
    share_learn(share);
    cr_expect_eq(
        known_visitors_find(&shared.visitors, &batch.rows[0].user_id, slot), VISIT_IN_SLOT);
    cr_expect_null(known_users_find(&memory.users, 0, &batch.rows[0].user_id), "once is enough");
}

/* So does a place of a name that is known, when a site was deleted: its places are gone. */
Test(share, begins_again_when_a_site_was_deleted, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    struct buffer out;
    buffer_init(&out);
    core->config.max_pages = 1000;
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    cr_assert_gt(share_write_commands(share, &out), 1u);
    share_learn(share);
    known_visitors_forget(&shared.visitors); /* take_nothing() knows no visits */
    memory.users.partitions[0].era = 0;      /* nor do the rows rely on users */
    state.deleted = "another 1 id\n";
    state.users = "g2"; /* deletion_mark.lua sets both */
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_AGAIN);
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    buffer_release(&out);
}

/* Decides and writes; returns how many members are added to `open` and `sites`. */
static size_t n_announced(const struct state *state)
{
    struct buffer out;
    struct commands commands;
    size_t n = 0;
    buffer_init(&out);
    begin();
    cr_expect_eq(decide(state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    (void)share_write_commands(share, &out);
    cr_assert(commands_read(&out, &commands));
    for (size_t i = 0; i < commands.n; i++) {
        n += command_is(&commands.commands[i], 0, "SADD") ? commands.commands[i].n - 2 : 0;
    }
    share_learn(share);
    known_visitors_forget(&shared.visitors); /* take_nothing() knows no visits */
    memory.users.partitions[0].era = 0;      /* nor do the rows rely on users */
    commands_release(&commands);
    buffer_release(&out);
    return n;
}

/* A site and its hour are announced once, and again when a site was deleted: the sets may lack
 * them. */
Test(share, announces_once, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    cr_expect_eq(n_announced(&state), 2u);
    cr_expect_eq(n_announced(&state), 0u);
    state.users = "g2"; /* deletion_mark.lua sets it */
    cr_expect_eq(n_announced(&state), 2u);
}

/* Asks and writes; returns how many questions and commands that were. */
static size_t fold_all(const struct state *state, size_t *ret_commands)
{
    struct buffer out;
    buffer_init(&out);
    begin();
    size_t n = share_write(share, SHARE_STATE, &out);
    begin();
    cr_expect_eq(decide(state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    *ret_commands = share_write_commands(share, &out);
    share_learn(share);
    known_visitors_forget(&shared.visitors); /* take_nothing() knows no visits */
    buffer_release(&out);
    return n;
}

/* Its keys are gone: what was known to be there is asked for again, and written. */
Test(share, knows_no_key_once_a_site_was_deleted, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    size_t first = 0;
    size_t second = 0;
    size_t after = 0;
    core->config.max_pages = 1000;
    size_t asked = fold_all(&state, &first);
    cr_expect_lt(fold_all(&state, &second), asked);
    cr_expect_lt(second, first);
    state.deleted = "another 1 id\n";
    state.users = "g2"; /* deletion_mark.lua sets both */
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_AGAIN);
    cr_expect_eq(fold_all(&state, &after), asked);
    cr_expect_eq(after, first);
}

/* What a fold writes then may be taken away again, and the end of the deletion tells nobody. */
Test(share, learns_nothing_while_a_deletion_sweeps, .init = setup, .fini = teardown)
{
    const struct state state = {.cfg = FOLD_CFG, .users = "g1", .deleting = "1", .b = "6"};
    size_t first = 0;
    size_t second = 0;
    core->config.max_pages = 1000;
    size_t asked = fold_all(&state, &first);
    cr_expect_eq(fold_all(&state, &second), asked);
    cr_expect_eq(second, first);
}

/* How many elements the share adds to sketches. */
static size_t elements_written(void)
{
    struct buffer out;
    struct commands commands;
    size_t n = 0;
    buffer_init(&out);
    cr_assert(share_write_commands(share, &out) > 0 && commands_read(&out, &commands));
    for (size_t i = 0; i < commands.n; i++) {
        bool adds = command_is(&commands.commands[i], 0, "PFADD");
        n += adds ? commands.commands[i].n - 2 : 0;
    }
    commands_release(&commands);
    buffer_release(&out);
    return n;
}

/* How many expiries the share sets. */
static size_t expiries_written(void)
{
    struct buffer out;
    struct commands commands;
    size_t n = 0;
    buffer_init(&out);
    cr_assert(share_write_commands(share, &out) > 0 && commands_read(&out, &commands));
    for (size_t i = 0; i < commands.n; i++) {
        n += command_is(&commands.commands[i], 0, "PEXPIREAT");
    }
    commands_release(&commands);
    buffer_release(&out);
    return n;
}

Test(share, knows_no_expiry_once_a_site_was_deleted, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g1", .a = "3", .b = "6"};
    struct log_entry *late = fold_entry(A, 4, FOLD_NOW_S - 3 * 3600, 1);
    core->config.retention.keep_s[LEVEL_MINUTE] = 48 * 3600;
    batch_clear(&batch);
    cr_assert(batch_add_log(&batch, A, 3) != NULL && batch_add(&batch, late));
    cr_assert(batch_add_log(&batch, B, 6) != NULL && batch_finish(&batch, core));
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    size_t all = expiries_written();
    share_learn(share);
    known_visitors_forget(&shared.visitors); /* take_nothing() knows no visits */
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    cr_expect_lt(expiries_written(), all, "of %zu", all);
    state.users = "g2";
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    cr_expect_eq(expiries_written(), all);
}

/* What a sketch is known to hold goes with the users: a deletion of pages changes the generation.
 */
Test(share, knows_no_sketch_once_pages_were_deleted, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g1", .b = "6"};
    struct log_entry *entry = fold_entry(A, 4, FOLD_NOW_S, 600);
    batch_clear(&batch);
    cr_assert(batch_add_log(&batch, A, 3) != NULL && batch_add(&batch, entry));
    cr_assert(batch_add_log(&batch, B, 6) != NULL && batch_finish(&batch, core));
    state.a = "3";
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    size_t all = elements_written();
    share_learn(share);
    known_visitors_forget(&shared.visitors); /* take_nothing() knows no visits */
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    cr_expect_lt(elements_written(), all / 2, "of %zu", all);
    state.users = "g2";
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    cr_expect_eq(elements_written(), all);
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
static size_t counters_set(const struct state *state, bool carried_out, char ret_fold[100])
{
    struct buffer out;
    struct buffer due;
    struct commands commands;
    size_t n_set = 0;
    begin();
    cr_expect_eq(decide(state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    buffer_init(&out);
    buffer_init(&due);
    size_t n = share_write_commands(share, &out);
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
        share_done(share, replies, &due);
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
Test(share, sets_counters_by_the_id_of_its_last_fold, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .b = "6"};
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
Test(share, sets_no_counter_while_a_deletion_sweeps, .init = setup, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .b = "6"};
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

/* ---- over ---- */

/* The instant that is written to `over`, and an id that never was there; -1: none. */
static long long new_over(const char *was, int64_t now_ms)
{
    static char last[100];
    struct state state = {.cfg = FOLD_CFG, .over = was, .b = "6"};
    char is[100];
    begin();
    cr_assert_eq(decide(&state, LOG_COUNTS, now_ms), SHARE_FOLDS);
    written("over", is);
    if (is[0] == '\0') {
        return -1;
    }
    cr_expect_str_neq(is, last);
    memcpy(last, is, sizeof(last));
    cr_expect_eq(is[11], ' ');
    return strtoll(is, NULL, 10);
}

Test(share, moves_over_on_or_gives_it_a_new_id, .init = setup, .fini = teardown)
{
    const int64_t minute_s = FOLD_NOW_S / 60 * 60; /* all events are in it */
    char was[40];
    cr_expect_eq(new_over(NULL, NOW_MS), minute_s - 60);
    (void)snprintf(was, sizeof(was), "%011lld x", (long long)minute_s - 60);
    cr_expect_eq(new_over(was, NOW_MS), -1, "it stays");
    cr_expect_eq(new_over(was, NOW_MS + MINUTE_MS), minute_s);
    (void)snprintf(was, sizeof(was), "%011lld x", (long long)minute_s);
    cr_expect_eq(new_over(was, NOW_MS), -1, "minutes that end by it are not written to");
    (void)snprintf(was, sizeof(was), "%011lld x", (long long)minute_s + 60);
    cr_expect_eq(new_over(was, NOW_MS), minute_s + 60, "one of them is");
    cr_expect_eq(new_over(was, NOW_MS + 5 * MINUTE_MS), minute_s + 4 * 60);
}

/* ---- sites that were deleted ---- */

/* How many commands beside that of the state, and the events that are done with. */
static void expect_counted(const char *deleted, bool counts, size_t events)
{
    struct state state = {.cfg = FOLD_CFG, .b = "6", .deleted = deleted};
    struct buffer out;
    buffer_init(&out);
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS, "the cursors move on");
    cr_expect_eq(share_write_commands(share, &out) > 1, counts, "%s", deleted);
    cr_expect_eq((size_t)shown().fold_events, events);
    buffer_release(&out);
}

Test(share, counts_nothing_of_a_site_that_is_deleted, .init = setup, .fini = teardown)
{
    char text[100];
    expect_counted(NULL, true, ROWS);
    expect_counted("shop 0 id\n", false, ROWS);
    expect_counted("other 0 id\n", true, ROWS);
    (void)snprintf(text, sizeof(text), "other 0 i\nshop %lld id\n", (long long)NOW_MS);
    expect_counted(text, true, ROWS); /* all arrived then or later */
    (void)snprintf(text, sizeof(text), "shop %lld id\n", (long long)NOW_MS + 2001);
    expect_counted(text, false, ROWS);
}

/* Each has a line for minutes after it is gone: as many as may be under way, and more. */
Test(share, counts_beside_many_sites_that_were_deleted, .init = setup, .fini = teardown)
{
    static char text[200 * 100];
    size_t n = 0;
    for (int i = 0; i < 200; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%064d 1 0123456789abcdef\n", i);
    }
    struct state state = {.cfg = FOLD_CFG, .b = "6", .deleted = text};
    struct buffer out;
    buffer_init(&out);
    core->config.max_pages = 1000;
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    cr_expect_gt(share_write_commands(share, &out), 1u);
    share_learn(share);
    buffer_release(&out);
    text[n - 2] = 'e'; /* another deletion of the last one */
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_AGAIN);
}

/* ---- where memory is full ---- */

Test(share, says_what_it_has_read, .init = setup, .fini = teardown)
{
    static const char *const expected[] = {"cfg", "=" FOLD_CFG, "ver", "=v", "kept", "-", "over",
        "-", "fold", "=f", "users", "=g", "deleted", "-", "deleting", "-", A, "-", B, "=6"};
    struct state state = {.cfg = FOLD_CFG, .users = "g", .b = "6"};
    struct buffer out;
    struct commands words;
    buffer_init(&out);
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    cr_assert_eq(share_write_expected(share, &out), 23u);
    struct buffer command;
    buffer_init(&command);
    buffer_append(&command, "*23\r\n", 5);
    buffer_append(&command, out.p, out.n);
    cr_assert(commands_read(&command, &words) && words.n == 1);
    cr_expect(command_is(&words.commands[0], 0, "11"));
    size_t at = 1;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i += 2) {
        at += command_is(&words.commands[0], at, "st") ? 2 : 0;
        cr_expect(command_is(&words.commands[0], at, expected[i]), "%s", expected[i]);
        cr_expect(command_is(&words.commands[0], at + 1, expected[i + 1]), "%s", expected[i]);
        at += 2;
    }
    commands_release(&words);
    buffer_release(&command);
    buffer_release(&out);
}

/* ---- which events were first ---- */

/* One row of a user who is known, at index 5, or whom the answers to the first questions tell. */
static void expect_first(bool known, bool is_set)
{
    static const uint8_t ticket[16] = {1};
    static const struct slice actions[] = {{"checkin", 7}};
    struct state state = {.cfg = FOLD_CFG, .users = "g", .b = "6"};
    enum log_fate fates[BATCH_LOGS] = {LOG_COUNTS, LOG_COUNTS};
    struct reply bit = {.type = REPLY_INTEGER, .integer = is_set};
    struct buffer out;
    struct commands questions;
    uint32_t log = 0;
    if (known) {
        known_users_generation(&memory.users, 0, SLICE("g"));
        known_users_add(&memory.users, 0, &batch.rows[0].user_id, 5, ACTIVE_DAY_NONE);
    }
    batch.rows[0].ticket = ticket;
    batch.rows[0].actions = actions;
    batch.rows[0].n_actions = 1;
    begin();
    cr_expect(share_asks_more(share));
    look(&state);
    buffer_init(&out);
    size_t n = share_write(share, SHARE_MORE, &out);
    cr_assert(commands_read(&out, &questions));
    cr_assert(questions.n == n && n == (known ? 1u : 0u), "who has no index has no bit");
    if (known) {
        cr_expect(command_is(&questions.commands[0], 0, "GETBIT"));
        cr_expect(command_is(&questions.commands[0], 2, "5"));
        cr_assert(share_take(share, SHARE_MORE, 0, &bit));
    }
    commands_release(&questions);
    buffer_release(&out);
    cr_assert_eq(share_decide(share, fates, NOW_MS, &log), SHARE_FOLDS);
    buffer_init(&out);
    (void)share_write_commands(share, &out);
    cr_expect_eq((size_t)shown().first_actions, is_set ? 0u : 1u);
    cr_expect_eq(memmem(out.p, out.n, "0 checkin\n", 10) != NULL, !is_set);
    cr_expect_eq(memmem(out.p, out.n, ":first:0100", 11) != NULL, !is_set);
    buffer_release(&out);
}

Test(share, notes_who_was_first, .init = setup, .fini = teardown)
{
    expect_first(true, true);
    expect_first(true, false);
    known_users_forget_all(&memory.users);
    expect_first(false, false);
}

Test(share, asks_nothing_more_where_nobody_asks, .init = setup, .fini = teardown)
{
    begin();
    cr_expect_not(share_asks_more(share));
}

/* The index is needed before the visits are answered, so where the visit is does not help. */
Test(share, asks_more_of_a_user_whose_visit_is_expected, .init = setup, .fini = teardown)
{
    static const uint8_t ticket[16] = {1};
    known_visitors_add(
        &shared.visitors, &batch.rows[0].user_id, FOLD_NOW_S / (2 * core->config.visit_timeout_s));
    batch.rows[0].ticket = ticket;
    begin();
    cr_expect(share_asks_more(share));
}

/* ---- what counters of old buckets have ---- */

/* Ask, and answer as if nothing were there but @n_names in each hour and day.  Returns how many
 * questions there were. */
static size_t answer_step(enum share_step step, int64_t n_names)
{
    struct buffer out;
    struct reply nil[ROWS] = {{.type = REPLY_NIL}};
    struct commands questions;
    buffer_init(&out);
    size_t n = share_write(share, step, &out);
    cr_assert(n == 0 || (commands_read(&out, &questions) && questions.n == n));
    for (size_t i = 0; i < n; i++) {
        const struct command *c = &questions.commands[i];
        struct reply size = {.type = REPLY_INTEGER, .integer = n_names};
        struct reply array = fold_array(nil, c->n - 2);
        cr_assert(share_take(share, step, i, command_is(c, 0, "ZCARD") ? &size : &array));
    }
    if (n > 0) {
        commands_release(&questions);
        cr_expect_not(share_take(share, step, n, &nil[0]), "one too many");
    }
    buffer_release(&out);
    return n;
}

/* The rows are of @age_s ago.  Returns how many questions there are once the share is decided. */
static size_t last_questions(int64_t age_s, const char *deleting)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g", .b = "6", .deleting = deleting};
    enum log_fate fates[BATCH_LOGS] = {LOG_COUNTS, LOG_COUNTS};
    struct buffer out;
    uint32_t log = 0;
    (void)redis_clock_seen(&core->clock, FOLD_NOW_S * 1000000);
    for (size_t i = 0; i < batch.n_rows; i++) {
        batch.rows[i].at_s -= age_s;
    }
    begin();
    cr_expect_eq(share_asks_last(share), age_s > 0);
    look(&state);
    cr_assert_eq(share_decide(share, fates, NOW_MS, &log), SHARE_FOLDS);
    size_t n = answer_step(SHARE_LAST, 0);
    cr_expect_eq(answer_step(SHARE_HOURS, 0), 0u, "their days have none of the names");
    cr_expect_eq(answer_step(SHARE_MINUTES, 0), 0u);
    cr_expect(share_fits(share));
    buffer_init(&out);
    (void)share_write_commands(share, &out);
    cr_expect_eq(memmem(out.p, out.n, "ZINCRBY", 7) != NULL, n == 0 && age_s > 0);
    buffer_release(&out);
    return n;
}

Test(share, asks_what_old_buckets_have, .init = setup, .fini = teardown)
{
    cr_expect_gt(last_questions(40 * 86400, NULL), 3u, "day and month of two tables");
}

Test(share, asks_nothing_of_recent_minutes, .init = setup, .fini = teardown)
{
    cr_expect_eq(last_questions(0, NULL), 0u);
}

/* A deletion takes counters away between the question and the transaction. */
Test(share, asks_nothing_while_a_deletion_sweeps, .init = setup, .fini = teardown)
{
    cr_expect_eq(last_questions(40 * 86400, "d"), 0u);
}

/* ---- names of closed hours ---- */

/* The rows are of 40 days ago, and a site's hour may have 20 pages. */
static void setup_capped(void)
{
    setup();
    core->config.max_pages = 20;
    (void)redis_clock_seen(&core->clock, FOLD_NOW_S * 1000000);
    for (size_t i = 0; i < batch.n_rows; i++) {
        batch.rows[i].at_s -= 40 * 86400;
    }
}

/* A look at hours that have @n_names: does the share go on? */
static bool fits(int64_t n_names, const char *deleting)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g", .b = "6", .deleting = deleting};
    cr_assert_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_FOLDS);
    (void)answer_step(SHARE_LAST, n_names);
    (void)answer_step(SHARE_HOURS, n_names);
    return share_fits(share);
}

/* How many commands of a kind the share's questions are. */
static size_t first_questions(const char *name)
{
    struct buffer out;
    struct commands questions;
    size_t n = 0;
    buffer_init(&out);
    (void)share_write(share, SHARE_STATE, &out);
    cr_assert(commands_read(&out, &questions));
    for (size_t i = 0; i < questions.n; i++) {
        n += command_is(&questions.commands[i], 0, name);
    }
    commands_release(&questions);
    buffer_release(&out);
    return n;
}

Test(share, names_of_closed_hours_fit_or_not, .init = setup_capped, .fini = teardown)
{
    struct state state = {.cfg = FOLD_CFG, .users = "g", .b = "6"};
    know_view(false);
    begin();
    cr_expect_eq(decide(&state, LOG_COUNTS, NOW_MS), SHARE_AGAIN, "no hour was known to be closed");
    begin();
    cr_expect(share_asks_last(share));
    cr_expect(fits(0, NULL));
    begin();
    cr_expect_eq(first_questions("ZCARD"), 0u);
    begin();
    cr_expect_not(fits(19, NULL));
    begin();
    cr_expect_gt(first_questions("ZCARD"), 0u, "the counters of closed hours come first");
}

Test(share, a_cap_that_was_near_is_looked_at_for_a_while, .init = setup_capped, .fini = teardown)
{
    size_t n = 0;
    begin();
    cr_expect_not(fits(19, NULL));
    do {
        begin();
        n++;
    } while (n < 100 && first_questions("ZCARD") > 0);
    cr_expect(n > 2 && n < 100);
    begin();
    cr_expect(fits(0, NULL));
}

/* The counters that a deletion takes away tell nothing. */
Test(share, names_of_closed_hours_while_a_deletion_sweeps, .init = setup_capped, .fini = teardown)
{
    begin();
    cr_expect_not(fits(0, "d"));
}
