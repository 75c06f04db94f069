/* What servers say of their replicas and slots, in the words of Redis 7.0.15. */
#include "storage/session/server_health.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/buffer.h"

TestSuite(server_health, .timeout = 60);

static struct reply text_reply(const char *text, size_t n)
{
    return (struct reply){.type = REPLY_TEXT, .text = {text, n}};
}

static const char replication[] = "# Replication\r\nrole:master\r\nconnected_slaves:3\r\n"
                                  "slave0:ip=10.0.0.4,port=6379,state=online,offset=900,lag=0\r\n"
                                  "slave1:ip=::1,port=6380,state=wait_bgsave,offset=0,lag=12\r\n"
                                  "slave2:ip=10.0.0.9,port=x,state=online,offset=900,lag=0\r\n"
                                  "slave_repl_offset:7\r\nmaster_repl_offset:1000\r\n";

Test(server_health, replicas)
{
    struct cluster_server server = {.n_replicas = 0};
    struct reply reply = text_reply(replication, sizeof(replication) - 1);
    server_health_take_replication(&server, &reply);
    cr_assert_eq(server.n_replicas, 2, "one without a port is left out");
    cr_expect_str_eq(server.replicas[0].address, "10.0.0.4:6379");
    cr_expect(server.replicas[0].is_online);
    cr_expect_eq(server.replicas[0].lag_bytes, 100);
    cr_expect_eq(server.replicas[0].lag_s, 0);
    cr_expect_str_eq(server.replicas[1].address, "[::1]:6380");
    cr_expect_not(server.replicas[1].is_online);
    cr_expect_eq(server.replicas[1].lag_bytes, 1000);
    cr_expect_eq(server.replicas[1].lag_s, 12);
}

static const char nodes[] =
    "aaaa 10.0.0.1:6379@16379,host myself,master - 0 0 1 connected 0-99 200 [93->-bbbb] "
    "[77-<-cccc]\n"
    "bbbb 10.0.0.2:6379@16379 master - 0 1 2 connected 100-199 [5->-aaaa]\n";

Test(server_health, its_own_slots)
{
    struct cluster_server server = {.n_slots = 0};
    struct reply reply = text_reply(nodes, sizeof(nodes) - 1);
    server_health_take_nodes(&server, &reply);
    cr_expect_eq(server.n_slots, 101);
    cr_assert_eq(server.n_open, 2, "those of other nodes are theirs");
    cr_expect_eq(server.open[0].slot, 93);
    cr_expect(server.open[0].leaves);
    cr_expect_eq(server.open[1].slot, 77);
    cr_expect_not(server.open[1].leaves);
}

/* Cut anywhere, and copied so that a byte too many is found. */
Test(server_health, whatever_comes)
{
    static const char *const texts[] = {replication, nodes, "slave0:", "slave9",
        "\n\n \r\n:::", "slave0:ip=,port=1", "a b myself d e f g h [",
        "a b myself d e f g h 9999999999999999999-"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (size_t n = 0; n <= strlen(texts[i]); n++) {
            struct cluster_server server = {.n_replicas = 0};
            char *copy = malloc(n + 1);
            cr_assert_not_null(copy);
            memcpy(copy, texts[i], n);
            copy[n] = '\0';
            struct reply reply = text_reply(copy, n);
            server_health_take_replication(&server, &reply);
            server_health_take_nodes(&server, &reply);
            (void)server_health_awaits_replica(&reply);
            cr_expect(server.n_replicas <= CLUSTER_REPLICAS_MAX);
            cr_expect(server.n_open <= CLUSTER_LISTED_MAX);
            free(copy);
        }
    }
    struct cluster_server server = {.n_replicas = 0};
    struct reply error = {.type = REPLY_ERROR, .text = SLICE("ERR no")};
    server_health_take_replication(&server, &error);
    server_health_take_nodes(&server, &error);
    cr_expect_eq(server.n_replicas + server.n_open + server.n_slots, 0);
}

static bool awaits_replica(const char *text)
{
    struct reply reply = text_reply(text, strlen(text));
    return server_health_awaits_replica(&reply);
}

#define OWN   "aaaa 10.0.0.1:1@2 myself,master - 0 0 1 connected 0-99\n"
#define OTHER "bbbb 10.0.0.2:1@2 master - 0 1 2 connected 100-199\n"

Test(server_health, who_may_follow_it_yet)
{
    cr_expect_not(awaits_replica(OWN OTHER), "all others have slots of their own");
    cr_expect(awaits_replica(OWN "cccc 10.0.0.3:1@2 slave aaaa 0 1 1 connected\n" OTHER));
    cr_expect(awaits_replica("cccc 10.0.0.3:1@2 slave,fail aaaa 9 1 1 disconnected\n" OWN), "away");
    cr_expect_not(awaits_replica(OWN "cccc 10.0.0.3:1@2 slave bbbb 0 1 1 connected\n" OTHER),
        "another one's");
    cr_expect(awaits_replica(OWN "cccc 10.0.0.3:1@2 master,fail - 9 1 1 disconnected\n"),
        "an old primary that was replaced");
    cr_expect_not(awaits_replica(OWN "cccc 10.0.0.3:1@2 handshake - 0 0 0 disconnected\n"));
    cr_expect_not(awaits_replica("cccc 10.0.0.3:1@2 slave aaaa 0 1 1 connected\n"), "whose?");
    cr_expect_not(awaits_replica(""));
}

/* A replica's figure may be newer than the primary's: then the replica lags by nothing. */
Test(server_health, a_replica_that_is_ahead)
{
    static const char ahead[] = "slave0:ip=10.0.0.4,port=6379,state=online,offset=1200,lag=0\r\n"
                                "master_repl_offset:1000\r\n";
    struct cluster_server server = {.n_replicas = 0};
    struct reply reply = text_reply(ahead, sizeof(ahead) - 1);
    server_health_take_replication(&server, &reply);
    cr_assert_eq(server.n_replicas, 1);
    cr_expect_eq(server.replicas[0].lag_bytes, 0);
}

Test(server_health, more_open_slots_than_are_listed)
{
    struct buffer text;
    buffer_init(&text);
    buffer_text(&text, "aaaa 10.0.0.1:1@2 myself,master - 0 0 1 connected");
    for (int i = 0; i < CLUSTER_LISTED_MAX + 9; i++) {
        buffer_text(&text, " [93->-bbbb]");
    }
    struct cluster_server server = {.n_slots = 0};
    struct reply reply = text_reply(text.p, text.n);
    server_health_take_nodes(&server, &reply);
    cr_expect_eq(server.n_open, CLUSTER_LISTED_MAX);
    cr_expect_eq(server.n_slots, 0);
    buffer_release(&text);
}
