#include "storage/session/dispatcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/index.h"
#include "storage/cluster/redirect.h"
#include "storage/cluster/topology.h"
#include "storage/redis/resp.h"
#include "storage/session/pauses.h"

#define REDIRECTS_MAX 5 /* so many go without a pause; then epochs may still be settling */
#define BYTES_KEPT    ((size_t)256 * 1024)

struct dispatcher_group {
    unsigned partition;
    enum dispatcher_kind kind;
    size_t at, n_bytes; /* in dispatcher->bytes */
    size_t n_replies, n_taken;
    struct server_link *link; /* the group was sent there; NULL: not sent yet */
};

/* ---- life ---- */

void dispatcher_init(struct dispatcher *d, struct core *core, const struct redis_look *look)
{
    *d = (struct dispatcher){.core = core};
    server_links_init(&d->links, core, look);
}

void dispatcher_release(struct dispatcher *d)
{
    server_links_release(&d->links);
    free(d->groups);
    buffer_release(&d->bytes);
    *d = (struct dispatcher){.core = NULL};
}

/* ---- groups ---- */

struct buffer *dispatcher_begin(struct dispatcher *d, unsigned partition, enum dispatcher_kind kind)
{
    if (array_reserve(&d->groups, &d->capacity, d->n, sizeof(*d->groups))) {
        d->groups[d->n] =
            (struct dispatcher_group){.partition = partition, .kind = kind, .at = d->bytes.n};
    } else {
        d->bytes.failed = true;
    }
    return &d->bytes;
}

bool dispatcher_end(struct dispatcher *d, size_t n_replies)
{
    if (d->bytes.failed) {
        return false;
    }
    struct dispatcher_group *group = &d->groups[d->n++];
    group->n_bytes = d->bytes.n - group->at;
    group->n_replies = n_replies;
    return true;
}

static struct slice bytes_of(const struct dispatcher *d, const struct dispatcher_group *group)
{
    return (struct slice){d->bytes.p + group->at, group->n_bytes};
}

/* Free the memory of the groups once all are answered. */
static void dispatcher_tidy(struct dispatcher *d)
{
    if (d->first == d->n) {
        d->first = d->n = d->seen = 0;
        buffer_clear(&d->bytes, BYTES_KEPT);
    }
}

void dispatcher_forget(struct dispatcher *d)
{
    for (struct server_link *link = d->links.first; link != NULL; link = link->next) {
        if (link->is_aside && link->n_awaited > 0) {
            server_link_leave(link);
        }
        link->n_skipped += link->n_awaited;
        link->n_awaited = 0;
    }
    d->first = d->n;
    dispatcher_tidy(d);
}

void dispatcher_close_dead(struct dispatcher *d)
{
    for (struct server_link *link = d->links.first; link != NULL; link = link->next) {
        if (link->n_awaited == 0) {
            session_close_if_dead(&link->session);
            link->n_skipped = link->session.redis == NULL ? 0 : link->n_skipped;
        }
    }
}

/* ---- sending ---- */

/* Find the links of the groups that are not sent. */
static void find_links(struct dispatcher *d, int64_t deadline_ms)
{
    server_links_note_owners(&d->links);
    for (size_t i = d->seen; i < d->n; i++) {
        d->groups[i].link = server_links_of(&d->links, d->groups[i].partition, deadline_ms);
    }
}

static void send_over_links(struct dispatcher *d)
{
    for (; d->seen < d->n; d->seen++) {
        const struct dispatcher_group *group = &d->groups[d->seen];
        struct slice bytes = bytes_of(d, group);
        if (group->link != NULL) {
            buffer_append(&group->link->out, bytes.p, bytes.n);
            group->link->n_awaited += group->n_replies;
        }
    }
    for (struct server_link *link = d->links.first; link != NULL; link = link->next) {
        if (link->out.n > 0 || link->out.failed) {
            (void)server_link_flush(link); /* dispatcher_await() meets the same failure */
        }
    }
}

void dispatcher_send(struct dispatcher *d, int64_t deadline_ms)
{
    find_links(d, deadline_ms);
    send_over_links(d);
}

bool dispatcher_send_unchanged(struct dispatcher *d, uint64_t changes, int64_t deadline_ms)
{
    find_links(d, deadline_ms);
    bool unchanged = d->links.changes == changes;
    if (unchanged) {
        send_over_links(d);
    } else {
        dispatcher_forget(d);
    }
    return unchanged;
}

/* ---- what a reply means ---- */

enum verdict {
    VERDICT_ANSWER,
    VERDICT_MOVED, /* another server has the partition: the topology knows which */
    VERDICT_ASK,   /* the group goes to *ret_ask, this once */
    VERDICT_LATER,
    VERDICT_RECONNECT, /* the group goes over another connection */
};

/* Must the group wait until its slot is moved?  Of several readings one may find its key at the old
 * owner of the slot, and another at the new one: behind ASKING the first would find nothing. */
static bool must_stay(const struct dispatcher_group *group)
{
    return group->kind == DISPATCH_READS && group->n_replies > 1;
}

static enum verdict dispatcher_judge(struct dispatcher *d, const struct dispatcher_group *group,
    struct server_link *link, const struct reply *reply, struct redis_address *ret_ask)
{
    if (reply->type != REPLY_ERROR) {
        return VERDICT_ANSWER;
    }
    server_refused(d->core, &link->session.server, group->partition, reply);
    switch (redirect_parse(reply->text, link->session.server.node.address.host, ret_ask)) {
    case REDIRECT_MOVED:
        return VERDICT_MOVED;
    case REDIRECT_ASK:
        return ret_ask->host[0] == '\0' || must_stay(group) ? VERDICT_LATER : VERDICT_ASK;
    case REDIRECT_NONE:
        break;
    }
    if (reply_is_error(reply, "NOSCRIPT")) {
        return VERDICT_RECONNECT;
    }
    return redirect_is_later(reply) ? VERDICT_LATER : VERDICT_ANSWER;
}

/* ---- taking ---- */

/* Keep the first error of several replies; of a MULTI it says more than EXEC's. */
static void keep_error(struct dispatcher *d, const struct reply *reply)
{
    if (d->error_reply.text.p == NULL && reply->type == REPLY_ERROR) {
        (void)snprintf(d->error, sizeof(d->error), "%s", reply->text.p);
        d->error_reply = (struct reply){.type = REPLY_ERROR, .text = {d->error, strlen(d->error)}};
    }
}

/* Take @n replies of a group.  *ret: the last one, EXEC's, or an array of all. */
static enum redis_status take_all(struct dispatcher *d, const struct dispatcher_group *group,
    size_t n, struct redis *redis, int64_t deadline_ms, const struct reply **ret)
{
    bool reads = group->kind == DISPATCH_READS;
    enum redis_status status =
        reads ? redis_await_all(redis, n, deadline_ms, ret) : REDIS_OK_STATUS;
    for (size_t i = 0; status == REDIS_OK_STATUS && i < n; i++) {
        status = reads ? status : redis_await(redis, deadline_ms, ret);
        if (status == REDIS_OK_STATUS) {
            keep_error(d, reads ? &(*ret)->items[i] : *ret);
        }
    }
    return status;
}

/* Take the reply to a group, or to the next command of a DISPATCH_ORDERED. */
static enum redis_status dispatcher_take(struct dispatcher *d, struct dispatcher_group *group,
    struct server_link *link, int64_t deadline_ms, const struct reply **ret)
{
    struct redis *redis = link->session.redis;
    bool several = group->kind == DISPATCH_MULTI || group->kind == DISPATCH_READS;
    size_t n = several ? group->n_replies : 1;
    enum redis_status status = REDIS_OK_STATUS;
    d->error_reply = (struct reply){.type = REPLY_ERROR};
    for (; status == REDIS_OK_STATUS && link->n_skipped > 0; link->n_skipped--) {
        status = redis_await(redis, deadline_ms, ret);
    }
    if (status == REDIS_OK_STATUS) {
        status = take_all(d, group, n, redis, deadline_ms, ret);
    }
    if (status != REDIS_OK_STATUS) {
        return status;
    }
    link->n_awaited -= n;
    group->n_taken += n;
    if (several && d->error_reply.text.p != NULL) {
        *ret = &d->error_reply;
    }
    return REDIS_OK_STATUS;
}

/* ---- who has answered ---- */

void dispatcher_record(struct dispatcher *d)
{
    d->records = true;
    d->has_recorded = d->has_strayed = false;
    memset(d->answered, 0, sizeof(d->answered));
}

void dispatcher_recorded(struct dispatcher *d)
{
    d->records = false;
    d->has_recorded = true;
    d->recorded_us = monotonic_us();
}

static void note_answer(struct dispatcher *d, unsigned partition, struct server_link *link)
{
    const struct server_link *before = d->answered[partition];
    if (d->records) {
        d->answered[partition] = link;
        return;
    }
    bool is_same = before == NULL || before == link ||
                   redis_address_equal(
                       &before->session.server.node.address, &link->session.server.node.address);
    d->has_strayed = d->has_strayed || !is_same || link->session.opened_us > d->recorded_us;
}

/* ---- a group that goes elsewhere ---- */

/* Try the group once over @link, a connection that is aside, behind ASKING if @asking. */
static enum redis_status try_aside(struct dispatcher *d, struct dispatcher_group *group,
    struct server_link *link, bool asking, int64_t deadline_ms, const struct reply **ret)
{
    struct slice bytes = bytes_of(d, group);
    if (asking) {
        resp_command(&link->out, "ASKING", NULL);
    }
    buffer_append(&link->out, bytes.p, bytes.n);
    link->n_skipped = asking;
    link->n_awaited = group->n_replies;
    return server_link_flush(link) ? dispatcher_take(d, group, link, deadline_ms, ret) : REDIS_LOST;
}

/* Have the group carried out wherever its partition is, until @deadline_ms.  @verdict is what the
 * first server said; nothing was done there. */
static enum redis_status go_elsewhere(struct dispatcher *d, struct dispatcher_group *group,
    enum verdict verdict, struct redis_address ask, int64_t deadline_ms, const struct reply **ret)
{
    struct pauses pauses = {.redirects = 0};
    d->links.changes++;
    if (verdict == VERDICT_MOVED) {
        server_links_note_change(&d->links);
    }
    while (verdict != VERDICT_ANSWER) {
        struct cluster_node node = {.address = ask};
        bool asking = verdict == VERDICT_ASK;
        if ((verdict == VERDICT_LATER || ++pauses.redirects > REDIRECTS_MAX) &&
            !pauses_make(&pauses, &d->links.look, deadline_ms)) {
            d->is_refused = true; /* the group was refused each time, or never sent */
            return REDIS_TIMEOUT;
        }
        bool known = asking || topology_owner(d->core->topology, group->partition, &node);
        struct server_link *link =
            known ? server_links_to(&d->links, &node, true, deadline_ms) : NULL;
        if (link == NULL) {
            verdict = VERDICT_LATER;
            continue;
        }
        enum redis_status status = try_aside(d, group, link, asking, deadline_ms, ret);
        if (status != REDIS_OK_STATUS) {
            server_link_leave(link);
            return status;
        }
        verdict = dispatcher_judge(d, group, link, *ret, &ask);
        if (verdict == VERDICT_MOVED) {
            server_links_note_change(&d->links);
        }
        if (verdict == VERDICT_ANSWER && !asking) {
            note_answer(d, group->partition, link);
        }
        if (verdict == VERDICT_RECONNECT) {
            server_link_leave(link);
        }
    }
    return REDIS_OK_STATUS;
}

/* ---- awaiting ---- */

/* Wait for the reply to @group, the first one that is not answered. */
static enum redis_status await_group(struct dispatcher *d, struct dispatcher_group *group,
    int64_t deadline_ms, const struct reply **ret)
{
    struct redis_address ask = {.host = ""};
    struct server_link *link = group->link;
    enum verdict verdict = VERDICT_LATER;
    if (link != NULL) {
        enum redis_status status = link->session.redis == NULL
                                       ? REDIS_LOST
                                       : dispatcher_take(d, group, link, deadline_ms, ret);
        if (status != REDIS_OK_STATUS) {
            server_link_leave(link);
            return status;
        }
        verdict = dispatcher_judge(d, group, link, *ret, &ask);
        link->is_spent = link->is_spent || verdict == VERDICT_RECONNECT;
    }
    if (verdict == VERDICT_ANSWER) {
        note_answer(d, group->partition, link);
        return REDIS_OK_STATUS;
    }
    if (group->kind == DISPATCH_ORDERED) {
        return REDIS_LOST;
    }
    return go_elsewhere(d, group, verdict, ask, deadline_ms, ret);
}

enum redis_status dispatcher_await(
    struct dispatcher *d, int64_t deadline_ms, const struct reply **ret)
{
    if (d->first == d->n) {
        return REDIS_LOST; /* no group waits for a reply */
    }
    struct dispatcher_group *group = &d->groups[d->first];
    d->is_refused = false;
    enum redis_status status = await_group(d, group, deadline_ms, ret);
    if (status != REDIS_OK_STATUS) {
        dispatcher_forget(d);
        return status;
    }
    if (group->kind != DISPATCH_ORDERED || group->n_taken == group->n_replies) {
        d->first++;
        dispatcher_tidy(d);
    }
    return REDIS_OK_STATUS;
}
