#include "storage/session/data_set.h"

#include <inttypes.h>
#include <stdio.h>

#include "storage/cluster/topology.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

struct proving {
    struct core *core;
    uint64_t found;
    enum storage_err err;
    char *error;
    size_t error_n;
};

static bool take_cfg(void *data, size_t i, const struct reply *reply)
{
    struct proving *p = data;
    (void)i;
    if (reply_is_error(reply, "ERR")) { /* as with too many clients: the server closes then */
        (void)snprintf(p->error, p->error_n, "%s", reply->text.p);
        return false;
    }
    /* Another error (MOVED, LOADING) will also come as the answer to the next command. */
    if (reply->type == REPLY_TEXT && settings_set(reply->text, &p->found)) {
        p->err =
            p->found == p->core->data_set ? STORAGE_OK : core_other_settings(p->core, reply->text);
    }
    return true;
}

/* A partition that @server has.  False: the server has none, as far as is known. */
static bool find_partition(struct core *core, const struct server *server, unsigned *ret)
{
    struct cluster_node owner;
    *ret = server->partition;
    if (core->topology == NULL || !server->is_named) {
        return true;
    }
    for (unsigned p = 0; p < core->partitions.n; p++) {
        if (topology_owner(core->topology, p, &owner) &&
            redis_address_equal(&owner.address, &server->node.address)) {
            *ret = p;
            return true;
        }
    }
    return false;
}

bool data_set_prove(struct core *core, const struct server *server, struct redis *redis,
    int64_t deadline_ms, char *error, size_t error_n)
{
    struct proving p = {.core = core, .err = STORAGE_OK, .error = error, .error_n = error_n};
    unsigned partition;
    struct buffer out;
    if (atomic_load(&core->secret) == NULL || !find_partition(core, server, &partition)) {
        return true;
    }
    buffer_init(&out);
    key_command(&out, "HGET", core->partitions.tag[partition], "state", 1);
    resp_text(&out, "cfg");
    error[0] = '\0';
    enum redis_status status = redis_ask_all(redis, &out, 1, deadline_ms, take_cfg, &p);
    buffer_release(&out);
    if (status != REDIS_OK_STATUS) {
        if (error[0] == '\0') {
            (void)snprintf(error, error_n, "%s", redis_status_text(status));
        }
        return false;
    }
    if (p.err != STORAGE_OK) {
        (void)snprintf(error, error_n,
            "partition %u has the data of another installation: set %016" PRIx64
            ", and this process began with set %016" PRIx64,
            partition, p.found, core->data_set);
    }
    return p.err == STORAGE_OK;
}
