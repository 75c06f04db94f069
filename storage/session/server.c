#include "storage/session/server.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "storage/base/clock.h"
#include "storage/cluster/asker.h"
#include "storage/cluster/redirect.h"
#include "storage/cluster/topology.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"

/* ---- life ---- */

bool servers_start(struct core *core, const char *url, const char **ret_error)
{
    *ret_error = redis_url_parse(url, &core->url);
    if (*ret_error != NULL) {
        return false;
    }
    core->is_spread = core->url.kind == REDIS_CLUSTER;
    core->n_logs =
        core->partitions.n < LOG_PARTITIONS_MAX ? core->partitions.n : LOG_PARTITIONS_MAX;
    *ret_error = "threads could not be started, or no memory";
    if (core->url.kind == REDIS_ONE) {
        return true;
    }
    core->asker = asker_new(&core->url, &core->partitions, &core->resolvers);
    if (core->asker == NULL) {
        return false;
    }
    core->hold_ms = core->config.log_hold_ms;
    core->topology = topology_new(&core->url, core->partitions.n, &asker_io, core->asker);
    return core->topology != NULL && topology_start(core->topology);
}

void servers_stop(struct core *core)
{
    if (core->topology != NULL) {
        topology_stop(core->topology);
    }
    topology_free(core->topology);
    asker_free(core->asker);
    core->topology = NULL;
    core->asker = NULL;
}

unsigned servers_changes(const struct core *core)
{
    return core->topology == NULL ? 0 : topology_changes(core->topology);
}

bool servers_watch(struct core *core, int fd)
{
    return core->topology == NULL || topology_watch(core->topology, fd);
}

void servers_unwatch(struct core *core, int fd)
{
    if (core->topology != NULL) {
        topology_unwatch(core->topology, fd);
    }
}

void servers_blame(struct core *core, char *detail, size_t detail_n)
{
    size_t n = strlen(detail);
    bool any = core->topology != NULL && topology_n_unserved(core->topology) > 0;
    for (unsigned p = 0; any && p < core->partitions.n; p++) {
        struct cluster_node owner;
        char name[ADDRESS_TEXT_SIZE] = "the server of some partitions";
        if (topology_unserved_since(core->topology, p) == 0) {
            continue;
        }
        if (topology_owner(core->topology, p, &owner)) {
            redis_address_print(&owner.address, name, sizeof(name));
        }
        (void)snprintf(detail + n, detail_n - n, "%s%s cannot be reached", n > 0 ? ": " : "", name);
        return;
    }
}

unsigned servers_number(struct core *core, uint16_t ret_server[PARTITIONS_MAX])
{
    uint16_t number[CLUSTER_NODES_MAX]; /* by node of the map: its number, from 1; 0: none yet */
    unsigned n = 0;
    if (!core->is_spread) {
        memset(ret_server, 0, core->partitions.n * sizeof(*ret_server));
        return 1;
    }
    memset(number, 0, sizeof(number));
    topology_owners(core->topology, ret_server);
    for (unsigned p = 0; p < core->partitions.n; p++) {
        if (ret_server[p] != SERVER_NOBODY) {
            uint16_t *of = &number[ret_server[p]];
            *of = *of == 0 ? (uint16_t)++n : *of;
            ret_server[p] = *of - 1;
        }
    }
    return n;
}

bool servers_each(struct core *core, struct part_set *ret)
{
    uint16_t server[PARTITIONS_MAX];
    unsigned n = servers_number(core, server);
    unsigned found = 0; /* servers are numbered in the order of their first partitions */
    bool all = true;
    *ret = (struct part_set){.words = {0}};
    for (unsigned p = 0; p < core->partitions.n; p++) {
        all = all && server[p] != SERVER_NOBODY;
        if (found < n && server[p] == found) {
            part_set_add(ret, p);
            found++;
        }
    }
    return all;
}

int64_t server_away_ms(struct core *core, unsigned partition, char *why, size_t why_n)
{
    char trouble[TROUBLE_SIZE];
    int64_t since_ms =
        core->topology == NULL ? 0 : topology_unserved_since(core->topology, partition);
    why[0] = '\0';
    if (since_ms == 0) {
        return 0;
    }
    topology_trouble(core->topology, trouble);
    (void)snprintf(why, why_n, "%s", trouble);
    int64_t away_ms = monotonic_ms() - since_ms;
    return away_ms > 0 ? away_ms : 1;
}

void server_name(struct core *core, unsigned partition, char *name, size_t name_n)
{
    struct cluster_node owner;
    name[0] = '\0';
    if (core->topology != NULL && topology_owner(core->topology, partition, &owner)) {
        redis_address_print(&owner.address, name, name_n);
    }
}

uint64_t server_hash(struct core *core, unsigned partition)
{
    struct cluster_node owner;
    if (core->topology == NULL || !topology_owner(core->topology, partition, &owner)) {
        return 0;
    }
    uint64_t seed = (uint64_t)owner.address.port;
    return XXH3_64bits_withSeed(owner.address.host, strlen(owner.address.host), seed);
}

/* ---- finding ---- */

bool server_find(struct core *core, struct server *server, struct redis_endpoint *ret_endpoint,
    char *error, size_t error_n)
{
    if (core->topology == NULL) {
        *ret_endpoint = redis_endpoint_of_server(&core->url, &core->url.seeds[0]);
        return true;
    }
    server->version = topology_version(core->topology); /* before the owner: it may change since */
    if (!server->is_named && !topology_owner(core->topology, server->partition, &server->node)) {
        char trouble[TROUBLE_SIZE];
        topology_trouble(core->topology, trouble);
        (void)snprintf(error, error_n, "%s",
            trouble[0] != '\0' ? trouble : "it is not known yet which server has the data");
        return false;
    }
    *ret_endpoint = redis_endpoint_of_server(&core->url, &server->node.address);
    return true;
}

/* ---- proving ---- */

struct proving {
    const struct server *server;
    bool is_cluster, proved;
    const char *why;
};

static bool take_identity(void *data, size_t i, const struct reply *reply)
{
    struct proving *p = data;
    struct role_view role = {.is_master = false};
    struct cluster_view view = {.ok = false};
    (void)i;
    if (p->is_cluster) {
        /* A node that a MOVED has named is known by its address alone. */
        p->proved = cluster_view_take_id(&view, reply) &&
                    (p->server->node.id[0] == '\0' || strcmp(view.id, p->server->node.id) == 0);
        p->why = "another node is there now";
    } else {
        p->proved = role_view_take_role(&role, reply) && role.is_master;
        p->why = "the server is not a master";
    }
    return true;
}

static void server_complain(
    const struct server *server, const char *why, char *error, size_t error_n)
{
    char name[ADDRESS_TEXT_SIZE];
    redis_address_print(&server->node.address, name, sizeof(name));
    (void)snprintf(error, error_n, "%s: %s", name, why);
}

bool server_prove(struct core *core, struct server *server, struct redis *redis,
    int64_t deadline_ms, char *error, size_t error_n)
{
    struct proving p = {
        .server = server, .is_cluster = core->is_spread, .why = "the connection was lost"};
    struct buffer out;
    if (core->topology == NULL) {
        return true;
    }
    buffer_init(&out);
    if (p.is_cluster) {
        resp_command(&out, "CLUSTER", "MYID", NULL);
    } else {
        resp_command(&out, "ROLE", NULL);
    }
    enum redis_status status = redis_ask_all(redis, &out, 1, deadline_ms, take_identity, &p);
    buffer_release(&out);
    if (status == REDIS_OK_STATUS && p.proved && server_is_current(core, server)) {
        return true;
    }
    server_complain(server, p.proved ? "another server has the data now" : p.why, error, error_n);
    return false;
}

/* ---- using ---- */

bool server_is_current(const struct core *core, struct server *server)
{
    struct cluster_node owner;
    if (core->topology == NULL) {
        return true;
    }
    unsigned version = topology_version(core->topology);
    if (version == server->version) {
        return true;
    }
    bool is_current = server->is_named
                          ? topology_owns(core->topology, &server->node)
                          : topology_owner(core->topology, server->partition, &owner) &&
                                cluster_node_equal(&owner, &server->node);
    if (!is_current) {
        return false;
    }
    server->version = version; /* only other partitions have changed */
    return true;
}

static void server_hint(struct core *core, const struct server *server, enum topology_hint what)
{
    if (core->topology != NULL && server->node.address.host[0] != '\0') {
        topology_hint(core->topology, what, server->partition, &server->node.address);
    }
}

void server_lost(struct core *core, const struct server *server)
{
    server_hint(core, server, HINT_LOST);
}

void server_silent(struct core *core, const struct server *server)
{
    server_hint(core, server, HINT_SILENT);
}

void server_stands(struct core *core, const struct server *server)
{
    server_hint(core, server, HINT_UP);
}

void server_refused(
    struct core *core, struct server *server, unsigned partition, const struct reply *reply)
{
    struct redis_address to;
    if (core->topology == NULL || reply->type != REPLY_ERROR) {
        return;
    }
    if (redirect_parse(reply->text, server->node.address.host, &to) == REDIRECT_MOVED) {
        topology_hint(core->topology, HINT_MOVED, partition, &to);
        server->was_refused = true;
    } else if (reply_is_error(reply, "CLUSTERDOWN")) {
        server_hint(core, server, HINT_DOWN);
    } else if (reply_is_error(reply, "READONLY") || reply_is_error(reply, "MASTERDOWN")) {
        server_hint(core, server, HINT_READONLY);
    }
}
