/* unfolded.h - entries that are acknowledged, and not counted yet.
 *
 * Layer: storage.  Thread-safe.
 *
 * A process has one log, or, in a cluster, one in each place that it appends to.
 *
 * The appender puts each entry in when the entry is answered.  A fold takes references to the
 * entries that wait, and says which are folded.  What waits is bounded: while there is no room no
 * further entry is made.
 */
#ifndef STORAGE_LOG_UNFOLDED_H
#define STORAGE_LOG_UNFOLDED_H

#include <pthread.h>

#include "storage/job/stats.h"
#include "storage/log/entry.h"
#include "storage/schema/partition.h"

#define UNFOLDED_EVENTS_MAX 200000                     /* so many events may wait, about */
#define UNFOLDED_BYTES_MAX  ((size_t)16 * 1024 * 1024) /* so many bytes may wait, about */
#define UNFOLDED_STALL_MS   250 /* folds stall if none has got on for so long */

/* What waits of one log. */
struct unfolded_log {
    char id[LOG_ID_TEXT + 1];
    struct log_entry **entries; /* [first .. first + n), in order of number; owned references */
    size_t first, n, capacity;
    uint64_t last;        /* number of the last entry that was put in; 0: none was */
    uint64_t shown;       /* the highest number of unfolded_shows() */
    uint64_t kept_behind; /* `last` when unfolded_keep() was called */
};

struct unfolded {
    pthread_mutex_t lock;        /* a leaf; guards all below */
    struct storage_stats *stats; /* log_events and log_bytes: of all logs, changed under the lock */
    struct unfolded_log logs[LOG_PARTITIONS_MAX]; /* by place: see core_log_partition() */
    unsigned n_logs;                              /* places; set before any other use */
    _Atomic size_t limit; /* so many events may wait while folds get on; written under the lock */
    int64_t moved_ms;     /* when a fold last got on, CLOCK_MONOTONIC */
    bool was_full;        /* a writer was told that there is no room */
    bool keeps;           /* between unfolded_keep() and unfolded_end_keep() */
    bool has_told;        /* something may have been acknowledged since unfolded_keep() */
    bool is_kept;         /* a writer keeps entries until unfolded_end_keep() */
    pthread_cond_t put;   /* for unfolded_await_shown() */

    /* Called without the lock when an entry was put in; set before any other use.  NULL: nobody is
     * told. */
    void (*arrived)(void *data);
    void *arrived_data;
    void (*has_room)(void *data); /* called under the lock when there is room again */
    void *has_room_data;
};

/* @stats outlives @unfolded.  At first there is one place, and UNFOLDED_EVENTS_MAX may wait. */
void unfolded_init(struct unfolded *unfolded, struct storage_stats *stats);
void unfolded_release(struct unfolded *unfolded);

/* Log @id begins at @place: release the entries of the log before. */
void unfolded_begin(struct unfolded *unfolded, unsigned place, const char *id);

/* Put in a reference to an answered entry of the log at @place.  Its number is above those of all
 * entries before.  False: no memory.  The entry is then read from the stream. */
bool unfolded_put(struct unfolded *unfolded, unsigned place, struct log_entry *entry);

/* Entry @n of the log at @place, which has requests with a key, is about to be sent.  It may be in
 * Redis before it is put in here.  A client that repeats such a request is then told by the record
 * that the request was accepted.  So the request may be acknowledged before its entry is here. */
void unfolded_shows(struct unfolded *unfolded, unsigned place, uint64_t n);

/* Redis has no entry @n of the log at @place, and gets none before the entry is sent again. */
void unfolded_hides(struct unfolded *unfolded, unsigned place, uint64_t n);

/* The highest number of unfolded_shows(), or that of the last entry put in, if that is higher. */
uint64_t unfolded_shown(struct unfolded *unfolded, unsigned place);

/* Wait until all entries of all logs are put in that may have been acknowledged before this call,
 * at most until @deadline_us (CLOCK_MONOTONIC).  False: some are not put in; Redis may not have
 * them. */
bool unfolded_await_shown(struct unfolded *unfolded, int64_t deadline_us) MUST_CHECK;

/* A round of folds begins that questions wait for.  The round does not count what is acknowledged
 * while it goes on.  So a question that comes behind such an acknowledgement must wait for the next
 * round, too.  Until unfolded_end_keep() entries that can wait are kept from being acknowledged. */
void unfolded_keep(struct unfolded *unfolded);

/* Can nothing have been acknowledged since unfolded_keep(), as far as is known now? */
bool unfolded_keeps_all(struct unfolded *unfolded) MUST_CHECK;

/* The round has ended: entries that were kept may be acknowledged.  True: nothing can have been
 * acknowledged since unfolded_keep(), not even by the record of a key. */
bool unfolded_end_keep(struct unfolded *unfolded) MUST_CHECK;

/* Entries of the log at @place were put in, and the writer wants to acknowledge them.  Returns the
 * number up to which it may.  That is all of them, unless they @can_wait and a round of folds is
 * under way.  Then it is those that were put in before the round began, because the round counts
 * them; the writer keeps the others, and has_room() wakes it when the round has ended.  Where it
 * may acknowledge all, unfolded_end_keep() will say so. */
uint64_t unfolded_will_tell(struct unfolded *unfolded, unsigned place, bool can_wait) MUST_CHECK;

/* How many events there is room for, beside @under_way events that will be put in; 0: there is no
 * room.  Where there is none even without @under_way, has_room() is called when something is
 * folded.  When folds stall there is more room, and nobody says that: look again after a while. */
size_t unfolded_room(struct unfolded *unfolded, size_t under_way);

/* From now on @events may wait while folds get on: to acknowledge more would only make questions
 * wait.  When no fold gets on for UNFOLDED_STALL_MS, up to UNFOLDED_EVENTS_MAX may wait. */
void unfolded_limit(struct unfolded *unfolded, size_t events);

/* A fold has got on: a transaction, or in a cluster a batch, was counted. */
void unfolded_moves(struct unfolded *unfolded);

/* From now on call @has_room when there is room again; NULL: call nothing.  When this returns, the
 * function before is not called any more. */
void unfolded_on_room(struct unfolded *unfolded, void (*has_room)(void *data), void *data);

/* The number of the last entry of the log at @place that was put in; 0: none was.  @ret_id becomes
 * the log's id; "": there is no log. */
uint64_t unfolded_last(struct unfolded *unfolded, unsigned place, char ret_id[LOG_ID_TEXT + 1]);

/* Take references to entries of the log at @place with numbers above @after, with @max_events
 * events or a little more.  *ret becomes an array of *ret_n references, which the caller frees;
 * NULL: none wait, or memory is out.  @ret_id becomes the log's id.  Returns the number of the last
 * entry that was put in, whether it is taken or not. */
uint64_t unfolded_take(struct unfolded *unfolded, unsigned place, uint64_t after, size_t max_events,
    char ret_id[LOG_ID_TEXT + 1], struct log_entry ***ret, size_t *ret_n);

/* The entries of log @id at @place up to number @n are folded: release them. */
void unfolded_done(struct unfolded *unfolded, unsigned place, const char *id, uint64_t n);

/* Is @id one of this process's logs now? */
bool unfolded_is_own(struct unfolded *unfolded, const char *id) MUST_CHECK;

/* For how long the oldest entry of all logs has waited, ms; 0: none waits. */
int64_t unfolded_age_ms(struct unfolded *unfolded);

#endif
