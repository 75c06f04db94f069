/* fuzz_slot_map.c - libFuzzer target: any reply taken for each of those that a cluster or a
 * Sentinel gives, and any error taken for a redirection.
 *
 * The input is a reply in the notation of tests/lib/reply_notation.h.  The seeds are replies of
 * Redis 7.0.15 and Valkey 8.0.1.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "storage/cluster/redirect.h"
#include "storage/cluster/slot_map.h"
#include "storage/cluster/view.h"
#include "tests/lib/reply_notation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_address(const struct redis_address *address)
{
    require(address->port >= 1 && address->port <= 65535);
    require(memchr(address->host, '\0', sizeof(address->host)) != NULL);
}

static void check_map(const struct reply *reply)
{
    static const uint16_t slots[] = {0, 1, 5460, 5461, 10922, 16383};
    const unsigned n = sizeof(slots) / sizeof(slots[0]);
    struct slot_map map;
    unsigned n_owned = 0;

    if (!slot_map_parse(reply, "asked", slots, n, &map)) {
        return;
    }
    require(map.n_partitions == n && map.n_nodes <= CLUSTER_NODES_MAX);
    for (size_t i = 0; i < map.n_nodes; i++) {
        check_address(&map.nodes[i].address);
        require(strlen(map.nodes[i].id) < CLUSTER_ID_SIZE);
    }
    for (unsigned p = 0; p < n; p++) {
        const struct cluster_node *owner = slot_map_owner(&map, p);
        n_owned += owner != NULL;
        require(owner == NULL || owner->address.host[0] != '\0');
    }
    require(n_owned == map.n_owned && slot_map_equal(&map, &map));
    slot_map_release(&map);
}

static void check_views(const struct reply *reply)
{
    struct cluster_view node = {.ok = false};
    struct role_view role = {.is_master = false};
    struct sentinel_view sentinel = {.known = false};

    if (cluster_view_take_info(&node, reply)) {
        require(node.current_epoch >= 0 && node.my_epoch >= 0);
    }
    require(!cluster_view_take_id(&node, reply) || node.id[0] != '\0');
    require(!role_view_take_info(&role, reply) || role.run_id[0] != '\0');
    (void)!role_view_take_role(&role, reply);
    if (sentinel_view_take_master(&sentinel, reply) && sentinel.known) {
        check_address(&sentinel.master);
    }
    sentinel_view_take_others(&sentinel, reply);
    require(sentinel.n_others <= REDIS_SEEDS_MAX);
    for (size_t i = 0; i < sentinel.n_others; i++) {
        check_address(&sentinel.others[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct redis_address redirect;
    struct slice text = {(const char *)data, size};
    const struct reply *reply = reply_read(&arena, text);

    if (reply != NULL) {
        check_map(reply);
        check_views(reply);
        if (reply->type == REPLY_ERROR) {
            text = reply->text;
        }
    }
    if (redirect_parse(text, "asked", &redirect) != REDIRECT_NONE) {
        check_address(&redirect);
    }
    arena_release(&arena);
    return 0;
}
