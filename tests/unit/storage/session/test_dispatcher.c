/* What becomes of groups that cannot be sent.  Real servers: integration/test_dispatcher.py. */
#include "storage/session/dispatcher.h"

#include <criterion/criterion.h>
#include <string.h>

#include "storage/redis/resp.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"
#include "tests/unit/storage/cluster/fake_cluster.h"

static struct core *core;
static struct dispatcher dispatcher;
static unsigned n_connects;
static void (*while_connecting)(void);

/* The first connection stands, of the others none. */
static bool connect_once(void)
{
    if (while_connecting != NULL) {
        while_connecting();
    }
    return n_connects++ == 0;
}

static void setup(void)
{
    static const struct redis_look look = {NULL, NULL, 0};
    fake_start(3, "redis-cluster://n0:6379");
    fake_run(1000);
    core = fold_core_make(FAKE_PARTITIONS);
    core->topology = fake.topology;
    core->is_spread = true;
    stand_in.connect = connect_once;
    dispatcher_init(&dispatcher, core, &look);
}

static void teardown(void)
{
    dispatcher_release(&dispatcher);
    core->topology = NULL;
    fold_core_drop(core);
    fake_stop();
}

TestSuite(dispatcher, .init = setup, .fini = teardown, .timeout = 60);

static void begin(unsigned partition)
{
    resp_command(dispatcher_begin(&dispatcher, partition, DISPATCH_SINGLE), "PING", NULL);
    cr_assert(dispatcher_end(&dispatcher, 1));
}

static void expect_lost(void)
{
    const struct reply *reply = NULL;
    cr_expect_eq(dispatcher_await(&dispatcher, INT64_MAX, &reply), REDIS_LOST);
}

/* Nothing was sent: a reply is never to come, so nobody waits for one. */
Test(dispatcher, without_memory_nothing_is_awaited)
{
    struct server_link *link = server_links_of(&dispatcher.links, 0, INT64_MAX);
    cr_assert_not_null(link);
    begin(0);
    link->out.failed = true;
    dispatcher_send(&dispatcher, INT64_MAX);
    cr_expect_null(link->session.redis, "whoever asks next would get the reply to something else");
    expect_lost();
    cr_expect_not(link->out.failed, "the next group is sent");
    cr_expect_eq(link->n_awaited + link->n_skipped, 0u);
}

static void replace_node(void)
{
    if (n_connects == 1) {
        memset(fake.nodes[0].id, 'f', CLUSTER_ID_SIZE - 1);
        fake_run(30000);
    }
}

/* The first group has its link already when the servers of the others are sought. */
Test(dispatcher, a_link_may_be_lost_while_others_are_made)
{
    while_connecting = replace_node;
    begin(0);
    begin(2);
    begin(1);
    dispatcher_send(&dispatcher, INT64_MAX);
    expect_lost();
}
