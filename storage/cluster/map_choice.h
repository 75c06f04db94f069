/* map_choice.h - decides which node's view of a cluster is believed.
 *
 * Layer: storage, pure.  Not thread-safe.
 *
 * Nodes do not always agree: a deposed primary that wakes up has an old map, and a node that has
 * just heard of an election has the new epoch with the old map.  The rules:
 *
 *     a view counts       if the node says cluster_state:ok, knows a node of the map in place, and
 *                         has an epoch that is not below that of the map in place
 *     is preferred        if it has the highest current epoch, then the highest epoch of its own
 *                         (the winner of an election has both), then the most partitions owned
 *     needs a second one  if it has fewer partitions with owners than the map in place; or if it
 *                         differs at the same current epoch and has a lower epoch of its own, or a
 *                         MOVED has corrected the map in place since
 *
 * A view that needs a second one is taken when another node says the same, in this round or within
 * five seconds.  When no view has counted for ten seconds, views of strangers and of lower epochs
 * count, too, and need a second one.  Otherwise a cluster that was made anew would never be found.
 */
#ifndef STORAGE_CLUSTER_MAP_CHOICE_H
#define STORAGE_CLUSTER_MAP_CHOICE_H

#include "storage/cluster/view.h"

#define CHOICE_SECOND_MS  5000
#define CHOICE_UNHEARD_MS 10000

/* A zeroed choice knows nothing. */
struct map_choice {
    bool known;                      /* there is a map in place */
    int64_t current_epoch, my_epoch; /* of the view that the map in place came from */
    bool corrected;                  /* a MOVED has corrected the map in place since */
    int64_t unheard_ms;              /* since when no view has counted; 0: the last round had one */

    char pending_id[CLUSTER_ID_SIZE]; /* the node whose view needs a second one; "": none */
    struct slot_map pending;          /* owned */
    int64_t pending_ms;
};

/* Choose among the @n views of one round, at @now_ms by the topology's clock.  @map is the map in
 * place.  Returns the view whose map is to take its place; NULL: none.  The choice may take the map
 * of another view for itself. */
struct cluster_view *map_choice_make(struct map_choice *choice, const struct slot_map *map,
    struct cluster_view *const *views, size_t n, int64_t now_ms) MUST_CHECK;

/* Has the last round left something open: no view that counts, or one that needs a second one? */
bool map_choice_is_open(const struct map_choice *choice);

void map_choice_release(struct map_choice *choice);

#endif
