/* What an operator is told of a start that fails.  The rest: integration/test_data_set.py. */
#include "storage/prepare/prepare.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "storage/schema/key.h"
#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(prepare, .timeout = 60);

static struct core *core;
static char stored_cfg[SETTINGS_TEXT];
static char state[ROLLUP_STATE_TEXT + 1];

static struct reply text_of(const char *text)
{
    return (struct reply){.type = REPLY_TEXT, .text = slice_of(text)};
}

static struct reply secret_of_core(void)
{
    const struct secret *secret = atomic_load(&core->secret);
    return (struct reply){
        .type = REPLY_TEXT, .text = {(const char *)secret->bytes, sizeof(secret->bytes)}};
}

/* Scripts are told apart by how many words call them. */
static struct reply answer_script(size_t n_words)
{
    enum { SCHEMA = 7, INIT = 8 };
    static char meta[64];
    static struct reply items[STATE_FIELDS + 1];
    (void)snprintf(meta, sizeof(meta), "schema=%d partitions=1", KEY_SCHEMA);
    items[0] = text_of(n_words == SCHEMA ? meta : stored_cfg);
    items[1] = n_words == SCHEMA ? secret_of_core() : text_of(state);
    items[2] = text_of("v1");
    return n_words == SCHEMA || n_words == INIT
               ? fold_array(items, n_words == SCHEMA ? 2 : STATE_FIELDS + 1)
               : (struct reply){.type = REPLY_ERROR, .text = SLICE("NOREPLICAS too few")};
}

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply, pair[2];
    struct commands commands;
    cr_assert(commands_read(out, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    bool is_cfg = command_is(command, 0, "HGET") && command_is(command, 2, "cfg");
    pair[0] = text_of("1000");
    pair[1] = text_of("always");
    reply = (struct reply){.type = REPLY_NIL};
    if (command_is(command, 0, "INFO")) {
        reply = text_of("redis_version:7.0.15\r\nmaxmemory_policy:noeviction\r\n");
    } else if (command_is(command, 0, "CONFIG") || command_is(command, 0, "TIME")) {
        reply = fold_array(pair, 2);
    } else if (command_is(command, 0, "EVALSHA")) {
        reply = answer_script(command->n);
    } else if (is_cfg) {
        reply = text_of(stored_cfg);
    } else if (i == 0 && command_is(command, 0, "GET")) {
        reply = secret_of_core();
    }
    commands_release(&commands);
    return &reply;
}

/* The settings of the data cannot be changed now. */
Test(prepare, why_settings_were_not_changed)
{
    struct session session = {.redis = stand_in_redis()};
    struct prepared_data known = {.n_away = 0};
    struct retention other = {.keep_s = {3600, 7200, KEEP_FOREVER, KEEP_FOREVER}};
    core = fold_core_make(1);
    core->data_set = identity_data_set(atomic_load(&core->secret));
    settings_print(1, &core->config.retention, 0, core->cfg);
    settings_put_set(core->cfg, core->data_set);
    settings_print(1, &other, 0, stored_cfg);
    settings_put_set(stored_cfg, core->data_set);
    struct rollup_state empty = rollup_state_initial(FOLD_NOW_S);
    state[rollup_state_print(&empty, state)] = '\0';
    stand_in.answer = answer;
    cr_expect_not(session_prepare(&session, core, &known, true, INT64_MAX));
    cr_expect_str_eq(session.why, "NOREPLICAS too few");
    fold_core_drop(core);
}
