#include "storage/fold/pass_by.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/commands.h"
#include "tests/lib/fake_streams.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

/* Which cursors a pass asks to be moved in which partitions, and what it makes of the answers.
 * test_closing.py tries the script by itself. */

#define PARTITIONS 4
#define OWN        "00000000000000aa"
#define HEADLESS   "00000000000000bb"
#define OTHER      "00000000000000cc"

static struct core *core;
static struct session session;
static struct batch batch;
static struct heads heads;

static struct {
    int64_t answers[PARTITIONS]; /* of the scripts, in order */
    const char *error;           /* the first answers so instead */
    bool lost;                   /* the second one does not come */
    unsigned n;
    char words[PARTITIONS][200]; /* what was asked, behind the digest, with a blank between */
} seen;

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply;
    struct commands commands;
    cr_assert(commands_read(out, &commands) && i < commands.n && i < PARTITIONS);
    const struct command *command = &commands.commands[i];
    cr_assert(command_is(command, 0, "EVALSHA"));
    for (size_t w = 2, n = 0; w < command->n; w++) {
        n += (size_t)snprintf(seen.words[i] + n, sizeof(seen.words[i]) - n, "%.*s ",
            (int)command->words[w].n, command->words[w].p);
        cr_assert_lt(n, sizeof(seen.words[i]));
    }
    seen.n++;
    commands_release(&commands);
    reply = (struct reply){.type = REPLY_INTEGER, .integer = seen.answers[i]};
    if (i == 0 && seen.error != NULL) {
        reply = (struct reply){.type = REPLY_ERROR, .text = slice_of(seen.error)};
    }
    return i == 1 && seen.lost ? NULL : &reply;
}

static void setup(void)
{
    core = fold_core_make(PARTITIONS);
    session = (struct session){.core = core, .redis = stand_in_redis()};
    stand_in.answer = answer;
    static const struct {
        const char *id;
        uint64_t from, to;
    } logs[] = {{HEADLESS, 1, 2}, {OWN, 3, 9}, {OTHER, 0, 1}};
    for (size_t i = 0; i < 3; i++) {
        struct batch_log *log = batch_add_log(&batch, logs[i].id, logs[i].from);
        cr_assert_not_null(log);
        log->to = logs[i].to;
    }
    (void)fake_streams_add(OWN, 9);
    (void)fake_streams_add(OTHER, 1);
    heads_clear(&heads);
    cr_assert_eq(heads_add(&heads, 0, fake_streams_heads()), STORAGE_OK);
    batch.tasks[2].n = 1; /* nobody looks which one */
}

static void teardown(void)
{
    heads_release(&heads);
    batch_release(&batch);
    fold_core_drop(core);
}

static void expect(enum fold_end end, enum storage_err err, const char *log)
{
    struct fold_result is = pass_by(core, &session, &batch, &heads, INT64_MAX);
    cr_expect_eq(is.end, end, "%d", (int)is.end);
    if (end == FOLD_STALE) {
        cr_expect_str_eq(batch.logs[is.log].id, log);
    } else if (end != FOLD_LOST) {
        cr_expect_eq(is.err, err, "%d", (int)is.err);
    }
}

TestSuite(pass_by, .init = setup, .fini = teardown);

Test(pass_by, cursors_of_logs_with_a_head_move_in_the_other_partitions)
{
    expect(FOLD_DONE, STORAGE_OK, NULL);
    cr_assert_eq(seen.n, PARTITIONS - 1);
    static const unsigned partitions[] = {0, 1, 3};
    for (size_t i = 0; i < 3; i++) {
        char wanted[200];
        (void)snprintf(wanted, sizeof(wanted), "1 t:{%s}:state " OWN " 3 9 " OTHER " 0 1 ",
            core->partitions.tag[partitions[i]]);
        cr_expect_str_eq(seen.words[i], wanted, "%s", seen.words[i]);
    }
}

Test(pass_by, nothing_is_asked_where_no_log_has_a_head)
{
    heads_clear(&heads);
    cr_assert_eq(heads_add(&heads, 0, &(struct reply){.type = REPLY_ARRAY}), STORAGE_OK);
    expect(FOLD_DONE, STORAGE_OK, NULL);
    cr_expect_eq(seen.n, 0u);
}

/* The number is that of the log in the batch, where one without a head comes before. */
Test(pass_by, a_partition_that_lacks_entries_is_told)
{
    seen.answers[1] = 2;
    expect(FOLD_STALE, STORAGE_OK, OTHER);
    seen.answers[1] = 1;
    expect(FOLD_STALE, STORAGE_OK, OWN);
}

Test(pass_by, a_number_of_no_log_is_nothing)
{
    seen.answers[0] = 3;
    expect(FOLD_DONE, STORAGE_OK, NULL);
}

Test(pass_by, a_partition_without_state_counts_nothing)
{
    core->is_spread = true;
    seen.answers[2] = -1;
    expect(FOLD_ERR, STORAGE_STATE_LOST, NULL);
    cr_expect_eq(atomic_load(&core->stats.partitions_without_state), 1);
    seen.answers[2] = 0;
    expect(FOLD_DONE, STORAGE_OK, NULL);
    cr_expect_eq(atomic_load(&core->stats.partitions_without_state), 0);
}

Test(pass_by, an_error_is_told)
{
    seen.error = "OOM command not allowed when used memory > 'maxmemory'.";
    expect(FOLD_ERR, STORAGE_OOM, NULL);
}

Test(pass_by, a_lost_connection)
{
    seen.lost = true;
    expect(FOLD_LOST, STORAGE_OK, NULL);
}
