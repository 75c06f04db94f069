/* prepare_server.c - is a server fit to have the data, and is its data ours? */
#include <stdio.h>
#include <stdlib.h>

#include "storage/prepare/durability.h"
#include "storage/prepare/prepare_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

bool preparation_complain(struct preparation *p, const char *text)
{
    (void)snprintf(p->session->why, sizeof(p->session->why), "%s", text);
    return false;
}

bool preparation_not_ours(struct preparation *p, const struct reply *reply)
{
    return preparation_complain(p, reply_complaint(reply));
}

bool preparation_refuse(struct preparation *p, const char *text)
{
    atomic_store(&p->core->settings_differ, true);
    return preparation_complain(p, text);
}

bool preparation_refuse_foreign(struct preparation *p, const char *text)
{
    atomic_store(&p->core->is_foreign, true);
    return preparation_refuse(p, text);
}

bool preparation_refuse_meta(struct preparation *p, struct slice theirs, const char *what)
{
    char text[320];
    static const char before[] = "schema=";
    char *end = NULL;
    bool is_ours = theirs.n > sizeof(before) && strncmp(theirs.p, before, sizeof(before) - 1) == 0;
    long schema = is_ours ? strtol(theirs.p + sizeof(before) - 1, &end, 10) : 0;
    if (!is_ours || schema < 1 || schema > 999 || *end != ' ') {
        (void)snprintf(text, sizeof(text), "%s", what);
        return preparation_refuse(p, text);
    }
    if (schema == KEY_SCHEMA) {
        (void)snprintf(text, sizeof(text),
            "the data has another number of partitions (%.*s): start with that --partitions, or "
            "with an empty Redis or data directory",
            (int)theirs.n, theirs.p);
    } else {
        (void)snprintf(text, sizeof(text),
            "the data has schema %ld, and this version reads and writes schema %d only: start with "
            "an empty Redis or data directory, or run the version that made the data",
            schema, KEY_SCHEMA);
    }
    return preparation_refuse(p, text);
}

/* Note how much Redis may forget.  Operators are told when the warning is another one than last. */
static void note_durability(struct preparation *p, const struct reply *config)
{
    struct core *core = p->core;
    struct durability is = durability_of(p->has_aof, config);
    if (!core->is_spread ||
        is.go_back_ms > atomic_load(&core->go_back_ms)) { /* most of all servers */
        atomic_store(&core->go_back_ms, is.go_back_ms);
    }
    const char *told = atomic_exchange(&core->durability_warning, is.warning);
    if (is.warning != NULL && is.warning != told) {
        core_notice(core, STORAGE_MAY_FORGET, is.warning);
    }
}

/* Are the settings @cfg ours?  They begin as meta does. */
static bool check_cfg(struct preparation *p, struct slice cfg)
{
    size_t n = strlen(p->meta);
    if (cfg.n > n && memcmp(cfg.p, p->meta, n) == 0 && cfg.p[n] == ' ') {
        return true;
    }
    const char *keep = strstr(cfg.p, " keep=");
    struct slice meta = {cfg.p, keep != NULL ? (size_t)(keep - cfg.p) : cfg.n};
    return preparation_refuse_meta(p, meta, "the settings of the data are not ours");
}

enum { REPLY_OF_INFO, REPLY_OF_CONFIG, REPLY_OF_TIME, REPLY_OF_CFG };

static bool take_server(void *data, size_t i, const struct reply *reply)
{
    struct preparation *p = data;
    if (i == REPLY_OF_CONFIG) {
        note_durability(p, reply); /* also an error: then the setting may not be read */
        return true;
    }
    if (reply->type == REPLY_ERROR) {
        return preparation_complain(p, reply->text.p);
    }
    if (i == REPLY_OF_INFO) {
        struct slice version = reply_field(reply, "redis_version:");
        struct slice policy = reply_field(reply, "maxmemory_policy:");
        if (version.n < 2 || (version.p[0] < '7' && version.p[1] == '.')) {
            return preparation_refuse(p, "Redis 7.0 or newer is needed");
        }
        if (!slice_equal(policy, SLICE("noeviction"))) {
            return preparation_refuse(
                p, "maxmemory-policy must be noeviction: eviction would take counts away");
        }
        if (slice_equal(reply_field(reply, "cluster_enabled:"), SLICE("1")) != p->core->is_spread) {
            return preparation_refuse(p,
                p->core->is_spread ? "this Redis is no node of a cluster"
                                   : "this Redis is a node of a cluster, and the URL is that of a "
                                     "single Redis: use redis-cluster://");
        }
        p->has_aof = !slice_equal(reply_field(reply, "aof_enabled:"), SLICE("0"));
        atomic_store(&p->core->has_aof, p->has_aof);
        return true;
    }
    if (i == REPLY_OF_TIME) {
        core_time_seen(p->core, reply_time_us(reply));
    }
    return i != REPLY_OF_CFG || reply->type != REPLY_TEXT || check_cfg(p, reply->text);
}

/* Ask for the settings in the state of the partition that has PARTITION_TAG_ALWAYS. */
static void ask_cfg(struct asks *asks, unsigned partition)
{
    struct buffer *out = asks_begin(asks, partition);
    key_command(out, "HGET", PARTITION_TAG_ALWAYS, "state", 1);
    resp_text(out, "cfg");
}

/* Where meta lies depends on the number of partitions.  So the settings are looked for in the
 * partition that has PARTITION_TAG_ALWAYS, whatever the number. */
bool prepare_server(struct preparation *p)
{
    struct asks asks = asks_to(p->session);
    resp_command(asks_begin(&asks, 0), "INFO", "everything", NULL);
    resp_command(asks_begin(&asks, 0), "CONFIG", "GET", "appendfsync", NULL);
    if (!p->core->is_spread) {
        resp_command(asks_begin(&asks, 0), "TIME", NULL);
        ask_cfg(&asks, 0);
    }
    return preparation_ask(p, &asks, take_server);
}

static bool take_cluster(void *data, size_t i, const struct reply *reply)
{
    return take_server(data, REPLY_OF_TIME + i, reply);
}

bool prepare_cluster(struct preparation *p)
{
    unsigned partition = 0;
    while (strcmp(p->core->partitions.tag[partition], PARTITION_TAG_ALWAYS) != 0) {
        partition++;
    }
    struct asks asks = asks_to(p->session);
    resp_command(asks_begin(&asks, 0), "TIME", NULL);
    if (!part_set_has(&p->away, partition)) { /* else there is no server to ask */
        ask_cfg(&asks, partition);
    }
    return preparation_ask(p, &asks, take_cluster);
}
