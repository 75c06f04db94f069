#include "storage/core/server_health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/redis/address.h"

#define NODE_WORDS 8 /* of a line of CLUSTER NODES, before a node's slots */

/* The text behind @name in a line of "name=value,name=value"; empty: it is not there. */
static struct slice value_of(struct slice line, const char *name)
{
    size_t n = strlen(name);
    const char *end = line.p + line.n;
    for (const char *at = line.p; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        if ((size_t)(stop - at) > n && memcmp(at, name, n) == 0 && at[n] == '=') {
            return (struct slice){at + n + 1, (size_t)(stop - at) - n - 1};
        }
        at = stop + 1;
    }
    return (struct slice){NULL, 0};
}

/* A number; @otherwise: it is none. */
static int64_t number_of(struct slice text, int64_t otherwise)
{
    char digits[24];
    if (text.n == 0 || text.n >= sizeof(digits)) {
        return otherwise;
    }
    memcpy(digits, text.p, text.n);
    digits[text.n] = '\0';
    char *end = NULL;
    long long value = strtoll(digits, &end, 10);
    return *end == '\0' ? value : otherwise;
}

static void take_replica(struct cluster_server *server, struct slice line, int64_t written)
{
    struct redis_address address = {.host = ""};
    int64_t port = number_of(value_of(line, "port"), 0);
    if (server->n_replicas == CLUSTER_REPLICAS_MAX || port <= 0 || port > UINT16_MAX ||
        !redis_address_set_host(&address, value_of(line, "ip"))) {
        return;
    }
    struct cluster_replica *replica = &server->replicas[server->n_replicas++];
    int64_t received = number_of(value_of(line, "offset"), 0);
    address.port = (int)port;
    redis_address_print(&address, replica->address, sizeof(replica->address));
    replica->is_online = slice_equal(value_of(line, "state"), SLICE("online"));
    replica->lag_bytes = written > received ? written - received : 0;
    replica->lag_s = number_of(value_of(line, "lag"), -1);
}

/* What comes before the next @end in *text; *text moves behind that.  False: there is nothing. */
static bool next_part(struct slice *text, char end, struct slice *ret)
{
    if (text->n == 0) {
        return false;
    }
    const char *at = memchr(text->p, end, text->n);
    size_t n = at != NULL ? (size_t)(at - text->p) : text->n;
    size_t used = at != NULL ? n + 1 : n;
    *ret = (struct slice){text->p, n};
    *text = (struct slice){text->p + used, text->n - used};
    return true;
}

/* The next line, without its end. */
static bool next_line(struct slice *text, struct slice *ret)
{
    bool is = next_part(text, '\n', ret);
    if (is && ret->n > 0 && ret->p[ret->n - 1] == '\r') {
        ret->n--;
    }
    return is;
}

static bool begins_with(struct slice line, struct slice word)
{
    return line.n >= word.n && memcmp(line.p, word.p, word.n) == 0;
}

/* What stands behind "name:" on a line of its own; empty: there is no such line. */
static struct slice field_of(struct slice text, struct slice name)
{
    struct slice line;
    while (next_line(&text, &line)) {
        if (begins_with(line, name)) {
            return (struct slice){line.p + name.n, line.n - name.n};
        }
    }
    return (struct slice){NULL, 0};
}

void server_health_take_replication(struct cluster_server *server, const struct reply *reply)
{
    if (reply->type != REPLY_TEXT) {
        return;
    }
    struct slice line;
    struct slice text = reply->text;
    int64_t written = number_of(field_of(text, SLICE("master_repl_offset:")), 0);
    while (next_line(&text, &line)) {
        const char *colon = memchr(line.p, ':', line.n);
        /* slave0:, slave1:..; slave_repl_offset: and the like have no port behind them */
        if (colon != NULL && begins_with(line, SLICE("slave"))) {
            size_t head = (size_t)(colon + 1 - line.p);
            take_replica(server, (struct slice){line.p + head, line.n - head}, written);
        }
    }
}

/* A word behind the head of a line of CLUSTER NODES: "5", "0-5460", "[93->-id]", "[77-<-id]". */
static void take_slots(struct cluster_server *server, struct slice word)
{
    char text[64];
    unsigned first = 0;
    unsigned last = 0;
    if (word.n >= sizeof(text)) {
        word.n = sizeof(text) - 1;
    }
    memcpy(text, word.p, word.n);
    text[word.n] = '\0';
    char *end = NULL;
    bool is_open = text[0] == '[';
    first = (unsigned)strtoul(text + is_open, &end, 10);
    if (is_open) {
        if (server->n_open < CLUSTER_LISTED_MAX && end[0] == '-') {
            server->open[server->n_open++] = (struct cluster_open_slot){first, end[1] == '>'};
        }
        return;
    }
    last = *end == '-' ? (unsigned)strtoul(end + 1, &end, 10) : first;
    server->n_slots += *end == '\0' && last >= first ? last - first + 1 : 0;
}

/* The head of a line about a node: id, address, flags, its primary's id or "-", and four more;
 * *line has the node's slots behind it. */
struct node_line {
    struct slice id, flags, primary;
};

static bool take_node_line(struct slice *line, struct node_line *ret)
{
    struct slice words[NODE_WORDS];
    for (size_t i = 0; i < NODE_WORDS; i++) {
        if (!next_part(line, ' ', &words[i])) {
            return false;
        }
    }
    *ret = (struct node_line){words[0], words[2], words[3]};
    return true;
}

/* Is @flag one of "myself,master,fail"? */
static bool has_flag(struct slice flags, struct slice flag)
{
    const char *end = flags.p + flags.n;
    for (const char *at = flags.p; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma != NULL ? comma : end;
        if (slice_equal((struct slice){at, (size_t)(stop - at)}, flag)) {
            return true;
        }
        at = stop + 1;
    }
    return false;
}

void server_health_take_nodes(struct cluster_server *server, const struct reply *reply)
{
    struct slice line;
    struct slice word;
    struct node_line node;
    struct slice text = reply->type == REPLY_TEXT ? reply->text : SLICE("");
    while (next_line(&text, &line)) {
        bool is_own = take_node_line(&line, &node) && has_flag(node.flags, SLICE("myself"));
        while (is_own && next_part(&line, ' ', &word)) {
            take_slots(server, word);
        }
    }
}

/* The id of the node that has answered; empty: it does not say. */
static struct slice own_id(struct slice text)
{
    struct slice line;
    struct node_line node;
    while (next_line(&text, &line)) {
        if (take_node_line(&line, &node) && has_flag(node.flags, SLICE("myself"))) {
            return node.id;
        }
    }
    return (struct slice){NULL, 0};
}

bool server_health_awaits_replica(const struct reply *reply)
{
    struct slice line;
    struct node_line node;
    struct slice text = reply->type == REPLY_TEXT ? reply->text : SLICE("");
    struct slice own = own_id(text);
    bool found = false;
    while (!found && own.n > 0 && next_line(&text, &line)) {
        if (take_node_line(&line, &node) && !has_flag(node.flags, SLICE("myself"))) {
            found = has_flag(node.flags, SLICE("slave"))
                        ? slice_equal(node.primary, own)
                        : has_flag(node.flags, SLICE("master")) && line.n == 0;
        }
    }
    return found;
}
