/* What a server says of itself when it is looked at: how much it may forget. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "storage/prepare/prepare.h"
#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(prepare_server, .timeout = 60);

static struct core *core;
static struct session session;

static struct {
    const char *fsync;
    bool is_node; /* of a cluster */
    bool has_aof;
} server;

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply, pair[2];
    static char info[200];
    struct commands commands;
    cr_assert(commands_read(out, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    reply = (struct reply){.type = REPLY_NIL};
    if (command_is(command, 0, "INFO")) {
        (void)snprintf(info, sizeof(info),
            "redis_version:7.2.4\r\nmaxmemory_policy:noeviction\r\ncluster_enabled:%d\r\n"
            "aof_enabled:%d\r\n",
            server.is_node, server.has_aof);
        reply = fold_text(info);
    } else if (command_is(command, 0, "CONFIG")) {
        pair[0] = fold_text("appendfsync");
        pair[1] = fold_text(server.fsync);
        reply = fold_array(pair, 2);
    } else {
        cr_assert(command_is(command, 0, "TIME") || command_is(command, 0, "HGET"));
    }
    commands_release(&commands);
    return &reply;
}

/* A server is looked at that syncs by @fsync, and is fit. */
static void look(const char *fsync, int64_t go_back_ms)
{
    server.fsync = fsync;
    cr_expect(session_check(&session, core, INT64_MAX), "%s", session.why);
    cr_expect_eq(atomic_load(&core->go_back_ms), go_back_ms);
}

static void setup(void)
{
    core = fold_core_make(1);
    session = (struct session){.core = core, .redis = stand_in_redis()};
    stand_in.answer = answer;
    server.has_aof = true;
    atomic_store(&core->go_back_ms, 0);
}

static void teardown(void)
{
    fold_core_drop(core);
}

/* A setting that was changed holds from the next connection on. */
Test(prepare_server, one_redis_forgets_what_it_says, .init = setup, .fini = teardown)
{
    look("always", 0);
    look("everysec", 2000);
    look("always", 0);
}

/* An entry may have been counted on any of them. */
Test(prepare_server, a_cluster_forgets_what_the_worst_of_its_servers_does, .init = setup,
    .fini = teardown)
{
    core->is_spread = server.is_node = true;
    look("always", 0);
    look("everysec", 2000);
    look("always", 2000);
}

Test(prepare_server, a_server_of_another_kind_is_refused, .init = setup, .fini = teardown)
{
    server.fsync = "always";
    server.is_node = true;
    cr_expect_not(session_check(&session, core, INT64_MAX));
    cr_expect(atomic_load(&core->settings_differ));
    atomic_store(&core->settings_differ, false);
    core->is_spread = true;
    server.is_node = false;
    cr_expect_not(session_check(&session, core, INT64_MAX));
    cr_expect(atomic_load(&core->settings_differ));
}
