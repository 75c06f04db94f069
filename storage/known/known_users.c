#include "storage/known/known_users.h"

#include <stdlib.h>

#define WAYS 4

void known_users_release(struct known_users *users)
{
    free(users->slots);
    *users = (struct known_users){0};
}

static struct known_user *set_of(const struct known_users *users, const struct visitor_id *id)
{
    return &users->slots[visitor_id_hash(id) % (KNOWN_USERS_MAX / WAYS) * WAYS];
}

const struct known_user *known_users_find(
    const struct known_users *users, unsigned partition, const struct visitor_id *id)
{
    uint32_t era = users->partitions[partition].era;
    if (users->slots == NULL || era == 0) {
        return NULL;
    }
    const struct known_user *set = set_of(users, id);
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].era == era && memcmp(&set[i].id, id, sizeof(*id)) == 0) {
            return &set[i];
        }
    }
    return NULL;
}

static void forget(struct known_users *users, unsigned partition)
{
    users->partitions[partition].era = 0;
    users->partitions[partition].generation[0] = '\0';
}

void known_users_forget_all(struct known_users *users)
{
    for (unsigned p = 0; p < PARTITIONS_MAX; p++) {
        forget(users, p);
    }
}

void known_users_generation(struct known_users *users, unsigned partition, struct slice generation)
{
    char *known = users->partitions[partition].generation;
    if (slice_equal(generation, slice_of(known))) {
        return;
    }
    forget(users, partition);
    if (generation.n == 0 || generation.n > USERS_GENERATION) {
        return;
    }
    if (++users->eras == 0) { /* they begin again: no entry may look like one of the new ones */
        free(users->slots);
        users->slots = NULL;
        known_users_forget_all(users);
        users->eras = 1;
    }
    users->partitions[partition].era = users->eras;
    memcpy(known, generation.p, generation.n);
    known[generation.n] = '\0';
}

const char *known_users_relied_on(const struct known_users *users, unsigned partition)
{
    return users->partitions[partition].generation;
}

/* An entry of its own, an empty one, or the one whose turn it is. */
static struct known_user *place_for(struct known_users *users, const struct visitor_id *id)
{
    struct known_user *set = set_of(users, id);
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].era != 0 && memcmp(&set[i].id, id, sizeof(*id)) == 0) {
            return &set[i];
        }
    }
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].era == 0) {
            return &set[i];
        }
    }
    return &set[users->turn++ % WAYS];
}

void known_users_add(struct known_users *users, unsigned partition, const struct visitor_id *id,
    uint32_t index, int32_t active_day)
{
    uint32_t era = users->partitions[partition].era;
    if (users->slots == NULL) {
        users->slots = calloc(KNOWN_USERS_MAX, sizeof(*users->slots));
    }
    if (users->slots == NULL || era == 0) {
        return;
    }
    *place_for(users, id) =
        (struct known_user){.id = *id, .index = index, .era = era, .active_day = active_day};
}
