#include "storage/cluster/map_choice.h"

#include <string.h>

/* Do the map and the view have a node in common?  A node of which only the address is known does
 * not tell. */
static bool is_related(const struct slot_map *map, const struct cluster_view *view)
{
    bool ids = false;
    for (size_t i = 0; i < map->n_nodes; i++) {
        ids = ids || map->nodes[i].id[0] != '\0';
        if (slot_map_find(&view->map, map->nodes[i].id) != NULL) {
            return true;
        }
    }
    return !ids;
}

/* Does the view count by the strict rules, which hold until no view has counted for ten seconds? */
static bool choice_counts(
    const struct map_choice *choice, const struct slot_map *map, const struct cluster_view *view)
{
    return !choice->known ||
           (view->current_epoch >= choice->current_epoch && is_related(map, view));
}

static bool is_better(const struct cluster_view *a, const struct cluster_view *b)
{
    return a->current_epoch != b->current_epoch ? a->current_epoch > b->current_epoch
           : a->my_epoch != b->my_epoch         ? a->my_epoch > b->my_epoch
                                                : a->map.n_owned > b->map.n_owned;
}

/* The best of the views that say cluster_state:ok and, if @strict, count.  NULL: none. */
static struct cluster_view *find_best(const struct map_choice *choice, const struct slot_map *map,
    struct cluster_view *const *views, size_t n, bool strict)
{
    struct cluster_view *best = NULL;
    for (size_t i = 0; i < n; i++) {
        if (views[i]->ok && (!strict || choice_counts(choice, map, views[i])) &&
            (best == NULL || is_better(views[i], best))) {
            best = views[i];
        }
    }
    return best;
}

static bool needs_second(
    const struct map_choice *choice, const struct slot_map *map, const struct cluster_view *view)
{
    bool lesser = view->map.n_owned < map->n_owned;
    bool older = view->current_epoch == choice->current_epoch &&
                 (choice->corrected || view->my_epoch < choice->my_epoch);
    return lesser || older || !choice_counts(choice, map, view);
}

static bool has_second(const struct map_choice *choice, struct cluster_view *const *views, size_t n,
    const struct cluster_view *view, int64_t now_ms)
{
    for (size_t i = 0; i < n; i++) {
        if (views[i]->ok && strcmp(views[i]->id, view->id) != 0 &&
            slot_map_equal(&views[i]->map, &view->map)) {
            return true;
        }
    }
    return choice->pending_id[0] != '\0' && now_ms - choice->pending_ms <= CHOICE_SECOND_MS &&
           strcmp(choice->pending_id, view->id) != 0 &&
           slot_map_equal(&choice->pending, &view->map);
}

static void choice_take(struct map_choice *choice, const struct cluster_view *view)
{
    slot_map_release(&choice->pending);
    choice->pending_id[0] = '\0';
    choice->known = true;
    choice->corrected = false;
    choice->current_epoch = view->current_epoch;
    choice->my_epoch = view->my_epoch;
}

static void choice_keep_pending(
    struct map_choice *choice, struct cluster_view *view, int64_t now_ms)
{
    slot_map_release(&choice->pending);
    choice->pending = view->map;
    view->map = (struct slot_map){.nodes = NULL};
    memcpy(choice->pending_id, view->id, sizeof(choice->pending_id));
    choice->pending_ms = now_ms;
}

struct cluster_view *map_choice_make(struct map_choice *choice, const struct slot_map *map,
    struct cluster_view *const *views, size_t n, int64_t now_ms)
{
    struct cluster_view *best = find_best(choice, map, views, n, true);
    if (best != NULL) {
        choice->unheard_ms = 0;
    } else if (choice->unheard_ms == 0) {
        choice->unheard_ms = now_ms;
    } else if (now_ms - choice->unheard_ms >= CHOICE_UNHEARD_MS) {
        best = find_best(choice, map, views, n, false);
    }
    if (best == NULL) {
        return NULL;
    }
    /* A view that agrees with the map needs no second one, and brings the nodes' addresses. */
    bool agrees = choice->known && slot_map_equal(map, &best->map);
    if (agrees && best->current_epoch == choice->current_epoch) {
        best->my_epoch = best->my_epoch > choice->my_epoch ? best->my_epoch : choice->my_epoch;
    }
    if (choice->known && !agrees && needs_second(choice, map, best) &&
        !has_second(choice, views, n, best, now_ms)) {
        choice_keep_pending(choice, best, now_ms);
        return NULL;
    }
    choice->unheard_ms = 0;
    choice_take(choice, best);
    return best;
}

bool map_choice_is_open(const struct map_choice *choice)
{
    return choice->unheard_ms != 0 || choice->pending_id[0] != '\0';
}

void map_choice_release(struct map_choice *choice)
{
    slot_map_release(&choice->pending);
}
