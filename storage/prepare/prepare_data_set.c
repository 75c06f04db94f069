/* prepare_data_set.c - whose data is it?  The secret, and what each partition says of its set. */
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/prepare/prepare.h"
#include "storage/prepare/prepare_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* ---- before anything is written ---- */

/* The replies in their order: the secret, `made`, the last deletion's instant, then `cfg` of each
 * partition. */
enum { REPLY_OF_SECRET, REPLY_OF_MADE, REPLY_OF_OVER, FIXED_REPLIES };

struct looking {
    struct preparation *p;
    bool has_secret, knows; /* knows: which set it is to be */
    uint64_t expected;
};

static bool take_secret(struct looking *l, const struct reply *reply)
{
    struct preparation *p = l->p;
    const struct secret *known = atomic_load(&p->core->secret);
    l->has_secret = reply->type == REPLY_TEXT;
    if (l->has_secret && reply->text.n != SECRET_SIZE) {
        return preparation_refuse(p, "the secret is not one of ours");
    }
    if (l->has_secret && known != NULL && memcmp(known, reply->text.p, SECRET_SIZE) != 0) {
        return preparation_refuse_foreign(
            p, "this is the data of another installation: its secret is another one than before");
    }
    if (l->has_secret) {
        memcpy(p->secret.bytes, reply->text.p, SECRET_SIZE);
    } else if (known != NULL) {
        /* A Redis that has lost everything gets the secret back, so visitors stay the same. */
        p->secret = *known;
    }
    l->knows = l->has_secret || known != NULL;
    l->expected = l->knows ? identity_data_set(&p->secret) : 0;
    return true;
}

static bool take_set(struct looking *l, unsigned partition, const struct reply *reply)
{
    char text[192];
    uint64_t set;
    if (reply->type != REPLY_TEXT || !settings_set(reply->text, &set)) {
        return true; /* the state is empty, or learn_partitions() will refuse it */
    }
    if (!l->knows) {
        return preparation_refuse(l->p,
            "the data has lost its secret (t:{..}:secret): restore it from a backup, or start with "
            "an empty Redis or data directory");
    }
    if (set != l->expected) {
        (void)snprintf(text, sizeof(text),
            "partition %u has the data of another installation: set %016" PRIx64
            ", and the secret is that of set %016" PRIx64,
            partition, set, l->expected);
        return preparation_refuse_foreign(l->p, text);
    }
    return true;
}

static bool take_look(void *data, size_t i, const struct reply *reply)
{
    struct looking *l = data;
    if (reply->type == REPLY_ERROR) {
        return preparation_complain(l->p, reply->text.p);
    }
    if (i == REPLY_OF_SECRET) {
        return take_secret(l, reply);
    }
    if (i == REPLY_OF_MADE) {
        l->p->has_made = reply->type == REPLY_TEXT;
        l->p->is_made = l->p->core->is_spread && (l->p->has_made || l->p->known->has_made);
        return true;
    }
    if (i == REPLY_OF_OVER) {
        deletions_learn_over(&l->p->core->deletions, reply_integer(reply, 0));
        return true;
    }
    return take_set(l, l->p->asked[i - FIXED_REPLIES], reply);
}

/* May the start go on?  In a cluster the states are made once, on all servers.  And the states that
 * are made first must not be lost with a server that has no replica yet. */
static bool may_go_on(struct preparation *p, bool has_secret)
{
    bool is_made = p->core->is_spread ? p->is_made : has_secret;
    if (!is_made && p->few_replicas[0] != '\0') {
        char waiting[sizeof(p->few_replicas) + 64];
        (void)snprintf(
            waiting, sizeof(waiting), "the first start waits for replicas: %s", p->few_replicas);
        return preparation_complain(p, waiting);
    }
    if (is_made || p->n_away == 0) {
        return true;
    }
    char text[sizeof(p->why_away) + 96];
    (void)snprintf(text, sizeof(text),
        "%s: the first start makes the state of each partition, and needs all primaries",
        p->why_away);
    return preparation_complain(p, text);
}

static bool data_set_look(struct preparation *p)
{
    struct looking l = {.p = p};
    struct asks asks = asks_to(p->session);
    (void)asks_command(&asks, p->core, 0, "GET", "secret", 0);
    (void)asks_command(&asks, p->core, 0, "GET", "made", 0);
    deletions_ask_over(asks_begin(&asks, 0), p->core->partitions.tag[0]);
    for (unsigned i = 0; i < p->core->partitions.n; i++) {
        if (!part_set_has(&p->away, i)) {
            p->asked[asks.n - FIXED_REPLIES] = (uint16_t)i;
            resp_text(asks_command(&asks, p->core, i, "HGET", "state", 1), "cfg");
        }
    }
    bool ok = asks_run(&asks, p->deadline_ms, take_look, &l) == REDIS_OK_STATUS &&
              may_go_on(p, l.has_secret);
    if (ok && !l.knows) {
        randombytes_buf(p->secret.bytes, SECRET_SIZE);
    }
    return ok;
}

/* ---- meta and secret ---- */

/* Has partition 0's server lost `made`?  The key is put back before the secret, so that no start
 * takes the data for one whose first start has not ended. */
static bool lacks_made(const struct preparation *p)
{
    return p->is_made && !p->has_made;
}

static bool take_schema(void *data, size_t i, const struct reply *reply)
{
    struct preparation *p = data;
    if (i == 0 && lacks_made(p)) {
        return reply->type == REPLY_STATUS || preparation_not_ours(p, reply);
    }
    if (reply->type != REPLY_ARRAY || reply->n != 2) {
        return preparation_not_ours(p, reply);
    }
    if (!slice_equal(reply->items[0].text, slice_of(p->meta))) {
        return preparation_refuse_meta(p, reply->items[0].text, "the key meta is not one of ours");
    }
    if (reply->items[1].text.n != SECRET_SIZE) {
        return preparation_refuse(p, "the secret is not one of ours");
    }
    memcpy(p->secret.bytes, reply->items[1].text.p, SECRET_SIZE);
    return true;
}

/* Write meta and the secret where there are none, and read them: another process may be faster. */
static bool learn_schema(struct preparation *p)
{
    const char *tag = p->core->partitions.tag[0];
    struct asks asks = asks_to(p->session);
    if (lacks_made(p)) {
        preparation_put_made(p, &asks);
    }
    struct buffer *out = asks_begin(&asks, 0);
    script_head(out, &p->session->scripts, SCRIPT_SCHEMA, 2, 2);
    key_put(out, tag, "meta");
    key_put(out, tag, "secret");
    resp_text(out, p->meta);
    resp_word(out, p->secret.bytes, SECRET_SIZE);
    return preparation_ask(p, &asks, take_schema);
}

/* Publish the secret to all threads, after the settings name the data set.  Neither changes from
 * then on.  False: out of memory. */
static bool publish_secret(struct preparation *p)
{
    struct core *core = p->core;
    const struct secret *known = atomic_load(&core->secret);
    if (known != NULL && memcmp(known, &p->secret, sizeof(*known)) == 0) {
        return true;
    }
    if (known != NULL) {
        return preparation_refuse_foreign(
            p, "this is the data of another installation: its secret is another one than before");
    }
    struct secret *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return preparation_complain(p, "out of memory");
    }
    *copy = p->secret;
    core->data_set = identity_data_set(copy);
    settings_put_set(core->cfg, core->data_set);
    atomic_store(&core->secret, copy);
    return true;
}

bool prepare_data_set(struct preparation *p)
{
    return data_set_look(p) && learn_schema(p) && publish_secret(p);
}
