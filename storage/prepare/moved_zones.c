#include "storage/prepare/moved_zones.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

void zone_moves_release(struct zone_moves *moves)
{
    free(moves->moves);
    *moves = (struct zone_moves){0};
}

/* The data of add_move(), while two lists are compared. */
struct comparison {
    struct zone_moves *moves;
    const struct core *core;
    unsigned partition;
};

static bool copy_name(char *to, size_t room, struct slice from)
{
    if (from.n >= room) {
        return false;
    }
    memcpy(to, from.p, from.n);
    to[from.n] = '\0';
    return true;
}

static bool add_move(void *data, struct slice site, struct slice theirs, struct slice ours)
{
    const struct comparison *c = data;
    struct zone_moves *moves = c->moves;
    struct zone_move move = {.partition = c->partition};
    if (!copy_name(move.site, sizeof(move.site), site) ||
        !copy_name(move.theirs, sizeof(move.theirs), theirs) ||
        !copy_name(move.ours, sizeof(move.ours), ours)) {
        return false;
    }
    if (partition_of(&c->core->partitions, page_hash(site, SLICE(""))) != c->partition) {
        return true;
    }
    if (!array_reserve(&moves->moves, &moves->capacity, moves->n, sizeof(*moves->moves))) {
        return false;
    }
    moves->moves[moves->n++] = move;
    return true;
}

bool zone_moves_add(
    struct zone_moves *moves, const struct core *core, unsigned partition, struct slice stored)
{
    struct comparison comparison = {moves, core, partition};
    return site_zones_compare(&core->sites, stored, add_move, &comparison);
}

void zone_moves_ask(const struct zone_moves *moves, const struct core *core, struct asks *asks)
{
    for (size_t i = 0; i < moves->n; i++) {
        const struct zone_move *move = &moves->moves[i];
        resp_text(asks_command(asks, core, move->partition, "SISMEMBER", "sites", 1), move->site);
    }
}

size_t zone_moves_put(const struct zone_moves *moves, unsigned partition, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < moves->n; i++) {
        if (moves->moves[i].partition == partition) {
            resp_text(out, moves->moves[i].site);
            n++;
        }
    }
    return n;
}
