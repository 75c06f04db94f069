/* What nodes and Sentinels say, in the words of Redis 7.0.15 and Valkey 8.0.1. */
#include "storage/cluster/view.h"

#include <criterion/criterion.h>

#include "storage/base/buffer.h"
#include "tests/lib/reply_notation.h"

TestSuite(view, .timeout = 60);

static struct arena arena;

static const struct reply *reply_of(const char *text)
{
    const struct reply *reply = reply_read(&arena, slice_of(text));
    cr_assert(reply != NULL, "the test is wrong: %s", text);
    return reply;
}

static void clear_arena(void)
{
    arena_release(&arena);
}

/* ---- a node of a cluster ---- */

Test(view, cluster_info, .fini = clear_arena)
{
    struct cluster_view view = {.ok = false};
    cr_assert(cluster_view_take_info(&view,
        reply_of("'cluster_state_of_mind:fail\r\ncluster_state:ok\r\ncluster_slots_ok:16384\r\n"
                 "cluster_current_epoch:7\r\ncluster_my_epoch:3\r\n'")));
    cr_expect(view.ok);
    cr_expect_eq(view.current_epoch, 7);
    cr_expect_eq(view.my_epoch, 3);
    cr_assert(cluster_view_take_info(
        &view, reply_of("'cluster_my_epoch:0\ncluster_current_epoch:0\ncluster_state:fail'")));
    cr_expect_not(view.ok);
    cr_expect_eq(view.current_epoch, 0);
    cr_assert(cluster_view_take_id(&view, reply_of("'3f660ed44a50808f8140fee0117cc6cfa99b738e'")));
    cr_expect_str_eq(view.id, "3f660ed44a50808f8140fee0117cc6cfa99b738e");
}

Test(view, not_cluster_info, .fini = clear_arena)
{
    static const char *const bad[] = {"null", "''",
        "!'ERR This instance has cluster support disabled'", "'cluster_state:ok\r\n'",
        "'xcluster_state:ok\ncluster_current_epoch:7\ncluster_my_epoch:3'",
        "'cluster_state:ok\ncluster_current_epoch:x\ncluster_my_epoch:3'",
        "'cluster_state:ok\ncluster_current_epoch:7\ncluster_my_epoch'"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct cluster_view view;
        cr_expect_not(cluster_view_take_info(&view, reply_of(bad[i])), "%s", bad[i]);
    }
    struct cluster_view view;
    cr_expect_not(cluster_view_take_id(&view, reply_of("''")));
    cr_expect_not(cluster_view_take_id(&view, reply_of("!'ERR'")));
    cr_expect_not(
        cluster_view_take_id(&view, reply_of("'3f660ed44a50808f8140fee0117cc6cfa99b738ex'")));
}

/* ---- a server that may be the master ---- */

Test(view, role, .fini = clear_arena)
{
    struct role_view view = {.is_master = false};
    cr_assert(role_view_take_role(&view,
        reply_of("['master', 3129659, [['127.0.0.1', '9001', '3129242'], ['h', '9002', '3']]]")));
    cr_expect(view.is_master);
    cr_assert(role_view_take_role(&view, reply_of("['slave', '127.0.0.1', 9000, 'connected', 3]")));
    cr_expect(!view.is_master);
    cr_expect_not(role_view_take_role(&view, reply_of("!'NOPERM no'")));
    cr_expect_not(role_view_take_role(&view, reply_of("['sentinel', ['mymaster']]")));
    cr_expect_not(role_view_take_role(&view, reply_of("[1, 2, 3]")));
    cr_assert(role_view_take_info(
        &view, reply_of("'# Server\r\nredis_version:7.0.15\r\n"
                        "run_id:3f660ed44a50808f8140fee0117cc6cfa99b738e\r\ntcp_port:1\r\n'")));
    cr_expect_str_eq(view.run_id, "3f660ed44a50808f8140fee0117cc6cfa99b738e");
    cr_expect_not(role_view_take_info(&view, reply_of("'# Server\r\nrun_id:\r\n'")));
    cr_expect_not(role_view_take_info(&view, reply_of("'# Server\r\n'")));
}

/* ---- a Sentinel ---- */

Test(view, sentinel_master, .fini = clear_arena)
{
    struct sentinel_view view = {.known = false};
    cr_assert(sentinel_view_take_master(
        &view, reply_of("['name', 'mymaster', 'ip', '127.0.0.1', 'port', '17680', 'runid', '', "
                        " 'flags', 'master', 'config-epoch', '4', 'num-slaves', '1']")));
    cr_expect(view.known && view.config_epoch == 4 && view.master.port == 17680);
    cr_expect_str_eq(view.master.host, "127.0.0.1");
    cr_assert(sentinel_view_take_master(&view, reply_of("!'ERR No such master with that name'")));
    cr_expect_not(view.known);
    static const char *const bad[] = {"null", "[]", "!'NOAUTH Authentication required.'",
        "['ip', 'h', 'port', '1']", "['ip', 'h', 'config-epoch', '1']",
        "['port', '1', 'config-epoch', '1']", "['ip', 'h', 'port', '0', 'config-epoch', '1']",
        "['ip', '', 'port', '1', 'config-epoch', '1']", "['ip', 'h', 'port', '1', 'config-epoch']"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_not(sentinel_view_take_master(&view, reply_of(bad[i])), "%s", bad[i]);
        cr_expect_not(view.known, "%s", bad[i]);
    }
}

Test(view, other_sentinels, .fini = clear_arena)
{
    struct sentinel_view view = {.n_others = 9};
    sentinel_view_take_others(
        &view, reply_of("[['name', 'x', 'ip', '10.0.0.1', 'port', '26379'], ['ip', 'x'], 7,"
                        " ['ip', 's2.example', 'port', '26380', 'flags', 's_down,sentinel']]"));
    cr_assert_eq(view.n_others, 2);
    cr_expect_str_eq(view.others[0].host, "10.0.0.1");
    cr_expect_str_eq(view.others[1].host, "s2.example");
    cr_expect_eq(view.others[1].port, 26380);
    sentinel_view_take_others(&view, reply_of("!'ERR No such master with that name'"));
    cr_expect_eq(view.n_others, 0);
    struct buffer many;
    buffer_init(&many);
    buffer_text(&many, "[");
    for (int i = 0; i < 20; i++) {
        buffer_text(&many, i == 0 ? "" : ",");
        buffer_text(&many, "['ip', 'h', 'port', '1']");
    }
    buffer_append(&many, "]", 2);
    sentinel_view_take_others(&view, reply_of(many.p));
    cr_expect_eq(view.n_others, REDIS_SEEDS_MAX, "no more than there is room for");
    buffer_release(&many);
}
