#include "tests/lib/share_fixture.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/lib/commands.h"

struct share_fixture fixture;

void fixture_know_view(bool known)
{
    struct partition_view view = {.known = known,
        .state = rollup_state_initial(FOLD_NOW_S),
        .retention = fixture.core->config.retention};
    core_set_view(fixture.core, 0, &view);
}

void fixture_setup(void)
{
    fixture.core = fold_core_make(1);
    fixture.memory.shared = &fixture.shared;
    fixture_know_view(true);
    shared_memory_init(&fixture.shared, 1);
    fixture.share = share_new(fixture.core, &fixture.memory);
    cr_assert_not_null(fixture.share);
    cr_assert_not_null(batch_add_log(&fixture.batch, SHARE_LOG_A, 0));
    cr_assert(batch_add(&fixture.batch, fold_entry(SHARE_LOG_A, 1, FOLD_NOW_S, 2)) &&
              batch_add(&fixture.batch, fold_entry(SHARE_LOG_A, 2, FOLD_NOW_S + 1, 0)) &&
              batch_add(&fixture.batch, fold_entry(SHARE_LOG_A, 3, FOLD_NOW_S + 2, 3)));
    cr_assert_not_null(batch_add_log(&fixture.batch, SHARE_LOG_B, 6));
    cr_assert(batch_add(&fixture.batch, fold_entry(SHARE_LOG_B, 7, FOLD_NOW_S + 1, 2)));
    cr_assert(batch_finish(&fixture.batch, fixture.core));
    cr_assert_eq(fixture.batch.n_rows, SHARE_ROWS);
}

void fixture_teardown(void)
{
    share_free(fixture.share);
    batch_release(&fixture.batch);
    fold_memory_forget(&fixture.memory);
    known_users_release(&fixture.memory.users);
    known_sketches_release(&fixture.memory.sketches);
    shared_memory_release(&fixture.shared);
    fold_core_drop(fixture.core);
}

#define SITE_STRIPE 5 /* of all rows, for they are of one minute */

void fixture_begin(void)
{
    struct cut cut = {.to = (uint32_t)fixture.batch.tasks[0].n, .end_stripe = LOG_STRIPES};
    cr_assert(share_begin(fixture.share, &fixture.batch, &cut));
}

void fixture_begin_stripe(uint32_t from, uint32_t to)
{
    bool all = to == SHARE_ROWS;
    struct cut cut = {
        .first_stripe = SITE_STRIPE, .end_stripe = SITE_STRIPE + all, .to_row = all ? 0 : to};
    for (; cut.to < fixture.batch.tasks[0].n; cut.to++) {
        uint32_t task = fixture.batch.tasks[0].tasks[cut.to];
        unsigned stripe = task_stripe(fixture.batch.rows, task);
        if (stripe > SITE_STRIPE || (stripe == SITE_STRIPE && task_row_number(task) >= to)) {
            break;
        }
        cut.from += stripe < SITE_STRIPE || task_row_number(task) < from;
    }
    cr_assert(share_begin(fixture.share, &fixture.batch, &cut));
}

bool fixture_take_state(const struct share_state_fields *state)
{
    char st[ROLLUP_STATE_TEXT];
    struct rollup_state closed = rollup_state_initial(FOLD_NOW_S);
    (void)rollup_state_print(&closed, st);
    struct reply fields[] = {fold_text(state->cfg), fold_text(st), fold_text("v"), fold_text(NULL),
        fold_text(state->over), fold_text(state->fold == NULL ? "f" : state->fold),
        fold_text(state->users), fold_text(state->deleted), fold_text(state->deleting),
        fold_text(state->a), fold_text(state->b)};
    struct reply reply = fold_array(fields, SHARE_FIELDS + 2);
    return share_take(fixture.share, SHARE_STATE, 0, &reply);
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
    cr_assert(share_take(fixture.share, SHARE_STATE, i, &reply));
}

void fixture_look(const struct share_state_fields *state)
{
    struct buffer out;
    struct commands questions;
    buffer_init(&out);
    size_t n = share_write(fixture.share, SHARE_STATE, &out);
    cr_assert(commands_read(&out, &questions));
    cr_assert_eq(questions.n, n);
    cr_assert_eq(questions.commands[0].n, 2u + SHARE_FIELDS + 2);
    cr_assert(command_is(&questions.commands[0], 2 + SHARE_FIELDS, SHARE_LOG_A));
    cr_assert(fixture_take_state(state));
    for (size_t i = 1; i < n; i++) {
        take_nothing(&questions.commands[i], i);
    }
    commands_release(&questions);
    buffer_release(&out);
}

enum share_look fixture_decide(
    const struct share_state_fields *state, enum log_fate a, int64_t now_ms)
{
    enum log_fate fates[BATCH_LOGS] = {a, LOG_COUNTS};
    uint32_t log = BATCH_LOGS;
    fixture_look(state);
    enum share_look result = share_decide(fixture.share, fates, now_ms, &log);
    cr_expect_eq(log, result == SHARE_STALE ? 1u : BATCH_LOGS);
    return result;
}

void fixture_written(const char *field, char ret[100])
{
    struct buffer out;
    struct commands commands;
    buffer_init(&out);
    size_t n = share_write_commands(fixture.share, &out);
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

void fixture_expect_written(const char *field, const char *value, const char *what)
{
    char is[100];
    fixture_written(field, is);
    cr_expect_str_eq(is, value, "%s of %s", field, what);
}

struct storage_stats fixture_shown(void)
{
    struct storage_stats stats = {0};
    share_show(fixture.share, &stats);
    return stats;
}
