#include "storage/hot/space_saving.h"

#include <stdlib.h>

#define NAMED_AT 4 /* a name is copied at this count, if its counter was taken over */

static void forget_name(struct space_saving *s, struct space_saving_set *set, size_t way)
{
    struct space_saving_name *name = set->name[way];
    if (name != NULL) {
        s->name_bytes -= sizeof(*name) + name->site_n + name->page_n;
        free(name);
        set->name[way] = NULL;
    }
}

static void copy_name(struct space_saving *s, struct space_saving_set *set, size_t way,
    struct slice site, struct slice page)
{
    size_t n = sizeof(struct space_saving_name) + site.n + page.n;
    if (s->name_bytes + n > SPACE_SAVING_NAMES || site.n > UINT16_MAX || page.n > UINT16_MAX) {
        return;
    }
    struct space_saving_name *name = malloc(n);
    if (name == NULL) {
        return;
    }
    name->site_n = (uint16_t)site.n;
    name->page_n = (uint16_t)page.n;
    if (site.n > 0) {
        memcpy(name->text, site.p, site.n);
    }
    if (page.n > 0) {
        memcpy(name->text + site.n, page.p, page.n);
    }
    set->name[way] = name;
    s->name_bytes += n;
}

/* The counters of the set that have @hash, a bit for each.  No processor could predict branches. */
static inline unsigned ways_of(const struct space_saving_set *set, uint64_t hash)
{
    unsigned ways = 0;
    for (unsigned way = 0; way < SPACE_SAVING_WAYS; way++) {
        ways |= (unsigned)(set->hash[way] == hash) << way;
    }
    return ways;
}

static inline size_t least_of(const struct space_saving_set *set)
{
    uint64_t least = UINT64_MAX;
    for (uint64_t way = 0; way < SPACE_SAVING_WAYS; way++) {
        uint64_t count = (uint64_t)set->count[way] << 8 | way;
        least = count < least ? count : least;
    }
    return least & 0xff;
}

void space_saving_add(struct space_saving *s, uint64_t hash, struct slice site, struct slice page)
{
    struct space_saving_set *set = &s->sets[hash % SPACE_SAVING_SETS];
    unsigned ways = ways_of(set, hash);
    size_t way = ways != 0 ? (size_t)__builtin_ctz(ways) : least_of(set);
    if (ways == 0 || set->count[way] == 0) { /* a free counter has hash 0, which may be equal */
        set->over[way] = set->count[way];
        set->hash[way] = hash;
        if (set->name[way] != NULL) {
            forget_name(s, set, way);
        }
    }
    set->count[way] += set->count[way] < UINT32_MAX ? 1 : 0;
    if (set->name[way] == NULL &&
        (set->over[way] == 0 || set->count[way] - set->over[way] == NAMED_AT)) {
        copy_name(s, set, way, site, page);
    }
}

uint32_t space_saving_floor(const struct space_saving *s)
{
    uint32_t greatest = 0;
    for (size_t i = 0; i < SPACE_SAVING_SETS; i++) {
        uint32_t least = UINT32_MAX;
        for (size_t way = 0; way < SPACE_SAVING_WAYS; way++) {
            least = s->sets[i].count[way] < least ? s->sets[i].count[way] : least;
        }
        greatest = least > greatest ? least : greatest;
    }
    return greatest;
}

void space_saving_clear(struct space_saving *s)
{
    for (size_t i = 0; i < SPACE_SAVING_SETS; i++) {
        for (size_t way = 0; way < SPACE_SAVING_WAYS; way++) {
            free(s->sets[i].name[way]);
        }
    }
    memset(s, 0, sizeof(*s));
}
