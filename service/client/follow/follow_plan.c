#include "service/client/follow/follow_plan.h"

#include <string.h>

/* The arguments of follow_plan(), and which entries are used already. */
struct planner {
    const struct follow_state *state;
    const struct follow_listing *listing;
    struct follow_plan *plan;
    bool is_used[FOLLOW_ENTRIES];
};

static struct slice head_of(const struct follow_entry *entry)
{
    return (struct slice){entry->head, entry->head_n};
}

/* Is @entry the file itself, with all that was read? */
static bool is_same(const struct follow_file *file, const struct follow_entry *entry)
{
    if (entry->inode != file->inode || entry->size < file->place.offset) {
        return false;
    }
    return entry->kind == FOLLOW_UNREADABLE || /* its bytes cannot be compared */
           (entry->kind == FOLLOW_PLAIN && follow_head_fits(&file->head, head_of(entry)));
}

static bool has_inode(const struct planner *planner, uint64_t inode)
{
    for (size_t e = 0; e < planner->listing->n; e++) {
        if (planner->listing->entries[e].inode == inode) {
            return true;
        }
    }
    return false;
}

/* An entry of @kind, not used yet, that begins as @file does. */
static size_t find_alike(
    const struct planner *planner, const struct follow_file *file, enum follow_kind kind)
{
    for (size_t e = 0; e < planner->listing->n && file->head.n > 0; e++) {
        const struct follow_entry *entry = &planner->listing->entries[e];
        if (!planner->is_used[e] && !entry->is_log && entry->has_rotated_name &&
            entry->kind == kind && follow_head_fits(&file->head, head_of(entry))) {
            return e;
        }
    }
    return FOLLOW_NONE;
}

static void use(struct planner *planner, size_t file, size_t entry)
{
    planner->plan->entries[file] = entry;
    planner->is_used[entry] = true;
}

static void find_same(struct planner *planner)
{
    for (size_t f = 0; f < planner->state->n; f++) {
        planner->plan->entries[f] = planner->plan->packed[f] = FOLLOW_NONE;
        planner->plan->is_copy[f] = false;
        for (size_t e = 0; e < planner->listing->n; e++) {
            if (!planner->is_used[e] &&
                is_same(&planner->state->files[f], &planner->listing->entries[e])) {
                use(planner, f, e);
                break;
            }
        }
    }
}

/* Find copies and gzipped files.  The newest file comes first: of files that begin alike, that one
 * was copied last. */
static void find_copies(struct planner *planner)
{
    for (size_t f = planner->state->n; f-- > 0;) {
        const struct follow_file *file = &planner->state->files[f];
        if (planner->plan->entries[f] != FOLLOW_NONE) {
            continue;
        }
        size_t copy =
            has_inode(planner, file->inode) ? find_alike(planner, file, FOLLOW_PLAIN) : FOLLOW_NONE;
        if (copy != FOLLOW_NONE) {
            use(planner, f, copy);
            planner->plan->is_copy[f] = true;
            continue;
        }
        planner->plan->packed[f] = find_alike(planner, file, FOLLOW_GZIP);
        if (planner->plan->packed[f] != FOLLOW_NONE) {
            planner->is_used[planner->plan->packed[f]] = true;
        }
    }
}

/* Put @entry into @list, which has *n entries in the order of their times. */
static void insert(const struct planner *planner, size_t *list, size_t *n, size_t entry)
{
    const struct follow_entry *entries = planner->listing->entries;
    size_t at = *n;
    for (; at > 0 && entries[list[at - 1]].mtime_ns > entries[entry].mtime_ns; at--) {
        list[at] = list[at - 1];
    }
    list[at] = entry;
    ++*n;
}

/* Rotated files that no look has found yet were written at these times, or later: plain files, and
 * others. */
struct since {
    int64_t plain_ns, other_ns;
};

#define SINCE_EVER ((struct since){INT64_MIN, INT64_MIN})

/* @at_ns, or the time at which @entry was written, if that is earlier. */
static int64_t earlier(const struct planner *planner, int64_t at_ns, size_t entry)
{
    return entry != FOLLOW_NONE && planner->listing->entries[entry].mtime_ns < at_ns
               ? planner->listing->entries[entry].mtime_ns
               : at_ns;
}

/* No later file was written before the newest remembered one, unless the clock was set back.  In
 * that case the newest remembered file, if it was written once more, or the log has an earlier time
 * than the newest file had.  How far the clock was set back is not known.  But a file that was
 * found before and is not remembered is older than all remembered files, and all plain files are
 * remembered until some were forgotten. */
static struct since last_look(const struct planner *planner)
{
    const struct follow_state *state = planner->state;
    size_t last = state->n - 1;
    int64_t last_ns = state->files[last].mtime_ns, oldest_ns = state->files[0].mtime_ns;
    int64_t written_ns = earlier(planner, last_ns, planner->plan->entries[last]);
    written_ns = earlier(planner, written_ns, planner->plan->packed[last]);
    size_t log = planner->listing->n > 0 && planner->listing->entries[0].is_log ? 0 : FOLLOW_NONE;
    if (written_ns == last_ns && earlier(planner, last_ns, log) == last_ns) {
        return (struct since){last_ns, last_ns};
    }
    int64_t since_ns = oldest_ns < written_ns ? oldest_ns : written_ns;
    return (struct since){state->n < FOLLOW_FILES_KEPT ? INT64_MIN : since_ns, since_ns};
}

/* Find rotated files that are not remembered, and were written @since. */
static void find_rotated(struct planner *planner, struct since since)
{
    struct follow_plan *plan = planner->plan;
    for (size_t e = 0; e < planner->listing->n; e++) {
        const struct follow_entry *entry = &planner->listing->entries[e];
        if (planner->is_used[e] || entry->is_log || !entry->has_rotated_name || entry->size == 0) {
            continue;
        }
        if (entry->kind != FOLLOW_PLAIN && entry->mtime_ns >= since.other_ns) {
            insert(planner, plan->unread, &plan->n_unread, e);
        } else if (entry->kind == FOLLOW_PLAIN && entry->mtime_ns >= since.plain_ns) {
            insert(planner, plan->new_entries, &plan->n_new, e);
        }
    }
}

/* Is the newest remembered file still the one that is written? */
static bool log_stays(const struct planner *planner)
{
    size_t entry = planner->plan->entries[planner->state->n - 1];
    return entry != FOLLOW_NONE && planner->listing->entries[entry].is_log;
}

/* May @entry be a copy of what @log has now, perhaps one that is still being made? */
static bool may_be_copy(const struct follow_entry *entry, const struct follow_entry *log)
{
    size_t n = entry->head_n < log->head_n ? entry->head_n : log->head_n;
    return entry->size <= log->size && memcmp(entry->head, log->head, n) == 0;
}

/* The log was seen only empty.  Rotated files that are newer, and no copies of the log's present
 * bytes, have bytes that the log held before it was truncated.  The oldest of them takes the place
 * of the remembered file, and the log is new. */
static void find_first_copies(struct planner *planner)
{
    struct follow_plan *plan = planner->plan;
    size_t last = planner->state->n - 1, log = plan->entries[last], n = 0;
    find_rotated(planner, last_look(planner));
    for (size_t i = 0; i < plan->n_new; i++) {
        if (!may_be_copy(&planner->listing->entries[plan->new_entries[i]],
                &planner->listing->entries[log])) {
            plan->new_entries[n++] = plan->new_entries[i];
        }
    }
    plan->n_new = n;
    plan->n_unread = 0;
    if (n == 0) {
        return;
    }
    planner->is_used[log] = false;
    plan->is_copy[last] = true;
    use(planner, last, plan->new_entries[0]);
    plan->n_new--;
    memmove(plan->new_entries, plan->new_entries + 1, plan->n_new * sizeof(plan->new_entries[0]));
}

void follow_plan(const struct follow_state *state, bool is_first,
    const struct follow_listing *listing, struct follow_plan *ret)
{
    struct planner planner = {.state = state, .listing = listing, .plan = ret};
    ret->n_new = ret->n_unread = 0;
    find_same(&planner);
    find_copies(&planner);
    if (is_first) {
        find_rotated(&planner, SINCE_EVER);
        ret->n_unread = 0;
    } else if (state->n == 0) {
        find_rotated(&planner, SINCE_EVER);
    } else if (!log_stays(&planner)) {
        find_rotated(&planner, last_look(&planner));
    } else if (state->files[state->n - 1].head.n == 0) {
        find_first_copies(&planner);
    }
    for (size_t e = 0; e < listing->n; e++) {
        if (listing->entries[e].is_log && !planner.is_used[e] &&
            listing->entries[e].kind == FOLLOW_PLAIN) {
            ret->new_entries[ret->n_new++] = e;
        }
    }
}
