#include "storage/inspect.h"

#include <limits.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/random_id.h"
#include "storage/cluster/topology.h"
#include "storage/read/operation.h" /* cluster_status_run() */
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/asks.h"
#include "storage/session/server.h"

#define FIRST_PARTITIONS 16 /* partitions to ask how many there are; one has PARTITION_TAG_ALWAYS */
#define SILENCE_MS       1000 /* a server that is silent for longer is taken for dead */
#define LOOK_MS          10   /* time between two looks whether the servers are found */

/* The parts of a storage that are needed to ask servers. */
struct inspection {
    struct core core;
    struct reader reader;
    int64_t deadline_ms;
    char *error;
    size_t error_n;
};

/* Set the error to @text.  Returns false. */
static bool inspection_complain(struct inspection *in, const char *text)
{
    (void)snprintf(in->error, in->error_n, "%s", text);
    return false;
}

static void inspection_end(struct inspection *in)
{
    session_close(&in->reader.session);
    if (in->reader.session.dispatcher != NULL) {
        dispatcher_release(&in->reader.dispatcher);
    }
    servers_stop(&in->core);
    core_release(&in->core);
    free(in);
}

/* Wait until the servers of all partitions are found, or half of the time has passed and some
 * are. */
static bool find_servers(struct inspection *in)
{
    struct topology *topology = in->core.topology;
    int64_t enough_ms = monotonic_ms() + (in->deadline_ms - monotonic_ms()) / 2;
    while (topology != NULL && topology_n_unserved(topology) > 0 && monotonic_ms() < enough_ms) {
        (void)poll(NULL, 0, LOOK_MS);
    }
    if (topology != NULL && topology_n_unserved(topology) == in->core.partitions.n) {
        char trouble[TROUBLE_SIZE];
        topology_trouble(topology, trouble);
        return inspection_complain(
            in, trouble[0] != '\0' ? trouble : "no server with the data is found");
    }
    return true;
}

/* Connect to the servers of @url, whose data is cut into @partitions.  NULL: @error says why. */
static struct inspection *inspection_begin(
    const char *url, unsigned partitions, int64_t deadline_ms, char *error, size_t error_n)
{
    const char *why = NULL;
    struct inspection *in = calloc(1, sizeof(*in));
    if (in == NULL) {
        (void)snprintf(error, error_n, "out of memory");
        return NULL;
    }
    in->deadline_ms = deadline_ms;
    in->error = error;
    in->error_n = error_n;
    core_init(&in->core);
    in->reader.core = &in->core;
    partitions_make(partitions, &in->core.partitions);
    bool ok = servers_start(&in->core, url, &why) ? find_servers(in) : inspection_complain(in, why);
    if (ok && in->core.is_spread) {
        dispatcher_init(
            &in->reader.dispatcher, &in->core, &(struct redis_look){.silence_ms = SILENCE_MS});
        in->reader.session.dispatcher = &in->reader.dispatcher;
    } else {
        ok = ok && (session_open(&in->reader.session, &in->core, deadline_ms) ||
                       inspection_complain(in, in->reader.session.why));
    }
    if (!ok) {
        inspection_end(in);
        return NULL;
    }
    return in;
}

/* ---- the data's settings ---- */

/* The fields cfg and zones of a partition's state. */
struct settings_text {
    char cfg[SETTINGS_TEXT], zones[4096];
};

/* Take a partition's settings, unless an earlier partition has told them. */
static bool take_settings(void *data, size_t i, const struct reply *reply)
{
    struct settings_text *ret = data;
    (void)i;
    if (reply->type != REPLY_ARRAY || reply->n != 2 || reply->items[0].type != REPLY_TEXT ||
        ret->cfg[0] != '\0' || reply->items[0].text.n >= sizeof(ret->cfg) ||
        reply->items[1].text.n >= sizeof(ret->zones)) {
        return true;
    }
    (void)snprintf(ret->cfg, sizeof(ret->cfg), "%s", reply->items[0].text.p);
    if (reply->items[1].type == REPLY_TEXT) {
        (void)snprintf(ret->zones, sizeof(ret->zones), "%s", reply->items[1].text.p);
    }
    return true;
}

static void put_settings(const struct inspection *in, struct asks *asks, unsigned partition)
{
    struct buffer *out = asks_command(asks, &in->core, partition, "HMGET", "state", 2);
    resp_text(out, "cfg");
    resp_text(out, "zones");
}

/* Read the settings of the first partition that has any; @except is left out.  False: there is
 * none, or a server does not answer. */
static bool read_settings(struct inspection *in, unsigned except, struct settings_text *ret)
{
    struct asks asks = asks_to(&in->reader.session);
    ret->cfg[0] = ret->zones[0] = '\0';
    for (unsigned p = 0; p < in->core.partitions.n; p++) {
        if (p != except &&
            (in->core.topology == NULL || topology_unserved_since(in->core.topology, p) == 0)) {
            put_settings(in, &asks, p);
        }
    }
    enum redis_status status = asks_run(&asks, in->deadline_ms, take_settings, ret);
    return status == REDIS_OK_STATUS
               ? ret->cfg[0] != '\0' || inspection_complain(in, "there is no data yet")
               : inspection_complain(in, "a server does not answer");
}

/* Connect to the servers of @url, with as many partitions as their data has.  NULL: @error says
 * why. */
static struct inspection *inspection_of_data(
    const char *url, int64_t deadline_ms, char *error, size_t error_n)
{
    static const char word[] = " partitions=";
    struct settings_text settings;
    struct inspection *in = inspection_begin(url, FIRST_PARTITIONS, deadline_ms, error, error_n);
    if (in == NULL || !read_settings(in, UINT_MAX, &settings)) {
        if (in != NULL) {
            inspection_end(in);
        }
        return NULL;
    }
    inspection_end(in);
    const char *found = strstr(settings.cfg, word);
    unsigned long n = found != NULL ? strtoul(found + sizeof(word) - 1, NULL, 10) : 0;
    if (n < 1 || n > PARTITIONS_MAX) {
        (void)snprintf(error, error_n, "the data's settings cannot be read: %s", settings.cfg);
        return NULL;
    }
    return inspection_begin(url, (unsigned)n, deadline_ms, error, error_n);
}

bool storage_inspect(
    const char *url, int64_t deadline_ms, struct storage_job *ret, char *error, size_t error_n)
{
    bool lost = false;
    struct inspection *in = inspection_of_data(url, deadline_ms, error, error_n);
    if (in == NULL) {
        return false;
    }
    *ret = (struct storage_job){.op = STORAGE_CLUSTER, .deadline_ms = deadline_ms};
    bool ok = cluster_status_run(&in->reader, ret, &lost) == STORAGE_OK ||
              inspection_complain(in, "out of memory");
    if (!ok) {
        storage_job_release(ret);
    }
    inspection_end(in);
    return ok;
}

/* ---- a partition without a state ---- */

/* Is @key one of those that are written also where a partition has no state?  These are the keys of
 * logs, which wait to be counted, of rate limits and of running processes, and in partition 0 the
 * keys of the data as a whole. */
static bool needs_no_state(struct slice key, const char *tag)
{
    static const char *const names[] = {"heads", "log:", "key:", "rl:", "hot", "hot:", "probe",
        "meta", "secret", "secret:", "late", "made", "lock", "fence", "wish", "wish:", "deletions",
        "rewritten"};
    struct key head;
    bool found = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t n = strlen(names[i]);
        key_fixed(&head, tag, names[i], SLICE(""));
        bool fits = names[i][n - 1] == ':' ? key.n > head.n : key.n == head.n;
        found = found || (fits && memcmp(key.p, head.p, head.n) == 0);
    }
    return found;
}

/* What the servers of a cluster tell about the keys of one slot. */
struct slot_keys {
    size_t own_at;   /* the number of the answer that the slot's own server gives */
    bool has_others; /* another server has keys of the slot */
    int64_t own;     /* how many keys of the slot its own server has */
    const char *tag; /* the hash tag of the partition */
    char first[96];  /* the first key that needs a state; empty: there is none */
    bool failed;     /* a reply had another form */
};

static bool take_number(void *data, size_t i, const struct reply *reply)
{
    struct slot_keys *ret = data;
    ret->failed = ret->failed || reply->type != REPLY_INTEGER;
    if (i == ret->own_at) {
        ret->own = reply->integer;
    } else {
        ret->has_others = ret->has_others || reply->integer > 0;
    }
    return true;
}

static bool take_names(void *data, size_t i, const struct reply *reply)
{
    struct slot_keys *ret = data;
    (void)i;
    ret->failed = reply->type != REPLY_ARRAY;
    for (size_t k = 0; !ret->failed && k < reply->n && ret->first[0] == '\0'; k++) {
        struct slice key = reply->items[k].text;
        if (!needs_no_state(key, ret->tag)) {
            (void)snprintf(ret->first, sizeof(ret->first), "%.*s", (int)key.n, key.p);
        }
    }
    return true;
}

/* Ask every server how many keys of @slot it has.  False: not all servers answer. */
static bool count_keys(
    struct inspection *in, unsigned partition, const char *slot, struct slot_keys *ret)
{
    uint16_t server[PARTITIONS_MAX];
    struct part_set servers;
    if (servers_number(&in->core, server) == 0 || !servers_each(&in->core, &servers)) {
        return inspection_complain(in,
            "some partition has no server: another one may have this partition's "
            "data, so nothing is done");
    }
    struct asks asks = asks_to(&in->reader.session);
    size_t n = 0;
    for (unsigned p = 0; p < in->core.partitions.n; p++) {
        if (part_set_has(&servers, p)) {
            ret->own_at = server[p] == server[partition] ? n : ret->own_at;
            resp_command(asks_begin(&asks, p), "CLUSTER", "COUNTKEYSINSLOT", slot, NULL);
            n++;
        }
    }
    enum redis_status status = asks_run(&asks, in->deadline_ms, take_number, ret);
    return (status == REDIS_OK_STATUS && !ret->failed) ||
           inspection_complain(in, "a server does not answer");
}

/* Ask the server of @slot for the slot's keys.  False: the server does not answer. */
static bool name_keys(
    struct inspection *in, unsigned partition, const char *slot, struct slot_keys *ret)
{
    char most[24];
    struct asks asks = asks_to(&in->reader.session);
    (void)snprintf(most, sizeof(most), "%lld", (long long)ret->own);
    resp_command(asks_begin(&asks, partition), "CLUSTER", "GETKEYSINSLOT", slot, most, NULL);
    enum redis_status status = asks_run(&asks, in->deadline_ms, take_names, ret);
    return (status == REDIS_OK_STATUS && !ret->failed) ||
           inspection_complain(in, "a server does not answer");
}

/* Is there on no server a key of the partition's slot that needs a state?  Counts without a state
 * are of no use, but an operator should look at them before they are deleted. */
static bool slot_has_no_data(struct inspection *in, unsigned partition)
{
    char slot[16];
    struct slot_keys keys = {.tag = in->core.partitions.tag[partition]};
    if (!in->core.is_spread) {
        return true;
    }
    (void)snprintf(slot, sizeof(slot), "%u", partition_slot(&in->core.partitions, partition));
    if (!count_keys(in, partition, slot, &keys) ||
        (keys.own > 0 && !name_keys(in, partition, slot, &keys))) {
        return false;
    }
    if (keys.has_others) {
        (void)snprintf(in->error, in->error_n,
            "slot %s is not empty on other servers: it is torn, repair the cluster first "
            "(redis-cli --cluster fix)",
            slot);
    } else if (keys.first[0] != '\0') {
        (void)snprintf(in->error, in->error_n,
            "slot %s is not empty: it has %s, which is of no use without the lost state; look at "
            "what is left, and delete it first",
            slot, keys.first);
    }
    return !keys.has_others && keys.first[0] == '\0';
}

/* Have the partition's own server run init.lua, which makes a state only if there is none. */
static bool make_state(
    struct inspection *in, unsigned partition, const struct settings_text *settings)
{
    struct session session = {.server = {.partition = partition}};
    const struct reply *reply = NULL;
    char ver[33];
    char st[ROLLUP_STATE_TEXT];
    struct buffer b;
    if (!session_open(&session, &in->core, in->deadline_ms)) {
        return inspection_complain(in, session.why);
    }
    buffer_init(&b);
    resp_command(&b, "TIME", NULL);
    bool ok = redis_ask(session.redis, &b, in->deadline_ms, &reply) == REDIS_OK_STATUS;
    int64_t now_s = ok ? reply_time_us(reply) / 1000000 : 0;
    struct rollup_state empty = rollup_state_initial(now_s);
    size_t st_n = rollup_state_print(&empty, st);
    random_id(ver, sizeof(ver));
    buffer_clear(&b, SIZE_MAX);
    script_head(&b, &session.scripts, SCRIPT_INIT, 1, 4);
    key_put(&b, in->core.partitions.tag[partition], "state");
    resp_text(&b, settings->cfg);
    resp_word(&b, st, st_n);
    resp_text(&b, ver);
    resp_text(&b, settings->zones);
    ok =
        ok && now_s > 0 && redis_ask(session.redis, &b, in->deadline_ms, &reply) == REDIS_OK_STATUS;
    if (ok && reply->type == REPLY_ERROR) {
        ok = inspection_complain(in, reply->text.p);
    } else if (!ok) {
        (void)inspection_complain(
            in, "the server did not answer: ask for the status whether it was done");
    }
    buffer_release(&b);
    session_close(&session);
    return ok;
}

/* False: the partition has a state, or its server does not answer. */
static bool has_no_state(struct inspection *in, unsigned partition)
{
    struct settings_text own = {.cfg = ""};
    struct asks asks = asks_to(&in->reader.session);
    put_settings(in, &asks, partition);
    bool answered = asks_run(&asks, in->deadline_ms, take_settings, &own) == REDIS_OK_STATUS;
    if (!answered) {
        return inspection_complain(in, "the partition's server does not answer");
    }
    return own.cfg[0] == '\0' ||
           inspection_complain(in, "the partition has its state: nothing is done");
}

bool storage_reset_partition(
    const char *url, unsigned partition, int64_t deadline_ms, char *error, size_t error_n)
{
    struct settings_text settings;
    struct inspection *in =
        sodium_init() < 0 ? NULL : inspection_of_data(url, deadline_ms, error, error_n);
    if (in == NULL) {
        return false;
    }
    bool ok =
        partition < in->core.partitions.n || inspection_complain(in, "there is no such partition");
    ok = ok && has_no_state(in, partition) && slot_has_no_data(in, partition) &&
         read_settings(in, partition, &settings) && make_state(in, partition, &settings);
    inspection_end(in);
    return ok;
}
