#include "storage/session/server_health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/buffer.h"
#include "storage/redis/address.h"

#define NODE_WORDS 8 /* of a line of CLUSTER NODES, before a node's slots */

/* The value behind @name, such as "name=", in "name=value,name=value"; empty: there is none. */
static struct slice value_of(struct slice line, struct slice name)
{
    while (line.n > 0) {
        struct slice part = slice_until(&line, ',');
        if (slice_begins(part, name)) {
            return (struct slice){part.p + name.n, part.n - name.n};
        }
    }
    return (struct slice){NULL, 0};
}

static void take_replica(struct cluster_server *server, struct slice line, int64_t written)
{
    struct redis_address address = {.host = ""};
    int64_t port = decimal_parse(value_of(line, SLICE("port=")), 0);
    if (server->n_replicas == CLUSTER_REPLICAS_MAX || port <= 0 || port > UINT16_MAX ||
        !redis_address_set_host(&address, value_of(line, SLICE("ip=")))) {
        return;
    }
    struct cluster_replica *replica = &server->replicas[server->n_replicas++];
    int64_t received = decimal_parse(value_of(line, SLICE("offset=")), 0);
    address.port = (int)port;
    redis_address_print(&address, replica->address, sizeof(replica->address));
    replica->is_online = slice_equal(value_of(line, SLICE("state=")), SLICE("online"));
    replica->lag_bytes = written > received ? written - received : 0;
    replica->lag_s = decimal_parse(value_of(line, SLICE("lag=")), -1);
}

/* Take the next line off *text, without its end.  False: there is no more line. */
static bool next_line(struct slice *text, struct slice *ret)
{
    if (text->n == 0) {
        return false;
    }
    *ret = slice_until(text, '\n');
    ret->n -= ret->n > 0 && ret->p[ret->n - 1] == '\r';
    return true;
}

void server_health_take_replication(struct cluster_server *server, const struct reply *reply)
{
    if (reply->type != REPLY_TEXT) {
        return;
    }
    struct slice line;
    struct slice text = reply->text;
    int64_t written = decimal_parse(reply_field(reply, "master_repl_offset:"), 0);
    while (next_line(&text, &line)) {
        /* A replica's line begins with slave0:, slave1: and so on.  Others, such as
         * slave_repl_offset:, have no port. */
        if (slice_begins(slice_until(&line, ':'), SLICE("slave"))) {
            take_replica(server, line, written);
        }
    }
}

/* Take a word behind the head of a line of CLUSTER NODES: "5", "0-5460", "[93->-id]", "[77-<-id]".
 */
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

/* The head of a line about a node: id, address, flags, its primary's id or "-", and four more
 * words.  Behind the head stand the node's slots. */
struct node_line {
    struct slice id, flags, primary;
};

static bool take_node_line(struct slice *line, struct node_line *ret)
{
    struct slice words[NODE_WORDS] = {{NULL, 0}};
    for (size_t i = 0; i < NODE_WORDS; i++) {
        if (line->n == 0) {
            return false;
        }
        words[i] = slice_until(line, ' ');
    }
    *ret = (struct node_line){words[0], words[2], words[3]};
    return true;
}

/* Is @flag one of @flags, such as "myself,master,fail"? */
static bool has_flag(struct slice flags, struct slice flag)
{
    while (flags.n > 0) {
        if (slice_equal(slice_until(&flags, ','), flag)) {
            return true;
        }
    }
    return false;
}

void server_health_take_nodes(struct cluster_server *server, const struct reply *reply)
{
    struct slice line;
    struct node_line node;
    struct slice text = reply->type == REPLY_TEXT ? reply->text : SLICE("");
    while (next_line(&text, &line)) {
        bool is_own = take_node_line(&line, &node) && has_flag(node.flags, SLICE("myself"));
        while (is_own && line.n > 0) {
            take_slots(server, slice_until(&line, ' '));
        }
    }
}

/* The id of the node that has answered, from its own line; empty: no line is its own. */
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
