/* unfolded.h - entries that are acknowledged, and not counted yet.
 *
 * Layer: storage.  Thread-safe.
 *
 * A process has one log, or, in a cluster, one in each place that it appends to.
 *
 * The appender puts each entry in when it is answered.  A fold takes references to what waits, and
 * says what is folded.  What waits is bounded: while there is no room no further entry is made.
 */
#ifndef STORAGE_LOG_UNFOLDED_H
#define STORAGE_LOG_UNFOLDED_H

#include <pthread.h>

#include "storage/job/stats.h"
#include "storage/log/entry.h"
#include "storage/schema/partition.h"

#define UNFOLDED_EVENTS_MAX 200000
#define UNFOLDED_BYTES_MAX  ((size_t)16 * 1024 * 1024)
#define UNFOLDED_STALL_MS   250

/* Of one log. */
struct unfolded_log {
    char id[LOG_ID_TEXT + 1];
    struct log_entry **entries; /* [first .. first + n), in order of number; owned references */
    size_t first, n, capacity;
    uint64_t last;        /* number of the last entry that was put in; 0: none of this log */
    uint64_t shown;       /* see unfolded_shows() */
    uint64_t kept_behind; /* see unfolded_will_tell() */
};

struct unfolded {
    pthread_mutex_t lock;        /* a leaf; guards all below */
    struct storage_stats *stats; /* log_events and log_bytes: of all logs, changed under the lock */
    struct unfolded_log logs[LOG_PARTITIONS_MAX]; /* by place: see core_log_partition() */
    unsigned n_logs;                              /* places; set before any other use */
    _Atomic size_t limit; /* of events, while folds get on; written under the lock */
    int64_t moved_ms;     /* CLOCK_MONOTONIC: when one last did */
    bool was_full;        /* somebody was told that there is no room */
    bool keeps;           /* see unfolded_keep().. */
    bool has_told;        /* ..something was acknowledged since.. */
    bool is_kept;         /* ..and something waits to be */
    pthread_cond_t put;   /* for unfolded_await_shown() */

    void (*arrived)(
        void *data); /* called, without the lock, when an entry was put in; NULL: nobody */
    void *arrived_data;
    void (*has_room)(void *data); /* called under the lock when there is room again */
    void *has_room_data;
};

void unfolded_init(struct unfolded *unfolded, struct storage_stats *stats);
void unfolded_release(struct unfolded *unfolded);

/* Another log begins at @place: what waits of the old one is let go. */
void unfolded_begin(struct unfolded *unfolded, unsigned place, const char *id);

/* Put in a reference to an answered entry of the log at @place, whose number is higher than that of
 * all before.  False: no memory.  The entry is then read from the stream. */
bool unfolded_put(struct unfolded *unfolded, unsigned place, struct log_entry *entry);

/* Entries of the log at @place up to @n may be in Redis before they are put in, and have requests
 * with a key.  Whoever repeats such a request is told by its record that it was accepted.  So it
 * may be acknowledged although its entry is not here yet.  Called before the entry is sent. */
void unfolded_shows(struct unfolded *unfolded, unsigned place, uint64_t n);

/* Redis has no entry @n, and will have none before it is sent again. */
void unfolded_hides(struct unfolded *unfolded, unsigned place, uint64_t n);

/* The highest number that was told so, or of the last entry that was put in. */
uint64_t unfolded_shown(struct unfolded *unfolded, unsigned place);

/* Wait until all entries are put in that may have been acknowledged before this call, of all logs;
 * until @deadline_us (CLOCK_MONOTONIC).  False: some are not, or never were in Redis. */
bool unfolded_await_shown(struct unfolded *unfolded, int64_t deadline_us) MUST_CHECK;

/* A round of folds begins that questions wait for.  The round does not count what is acknowledged
 * while it goes on.  So a question that comes behind such an acknowledgement must wait for the next
 * round, too.  Until unfolded_end_keep() entries that can wait are kept from being acknowledged. */
void unfolded_keep(struct unfolded *unfolded);

/* Was nothing acknowledged since?  Else there is no use in looking further. */
bool unfolded_keeps_all(struct unfolded *unfolded) MUST_CHECK;

/* End that: what was kept may be acknowledged.  True: nothing can have been acknowledged since
 * unfolded_keep(), not even by the record of a key. */
bool unfolded_end_keep(struct unfolded *unfolded) MUST_CHECK;

/* Entries of the log at @place were put in, and are about to be acknowledged: up to which number?
 * All, unless they @can_wait and a round is under way: then those that were put in before it began,
 * for the round counts them.  A round learns of the others that they were acknowledged.  The writer
 * is woken, as by has_room(), when what is kept may be. */
uint64_t unfolded_will_tell(struct unfolded *unfolded, unsigned place, bool can_wait) MUST_CHECK;

/* How many events there is room for beside @under_way, which will be put in; 0: it is full.  Where
 * it is full without them, has_room() is called when something is folded.  Nobody says when folds
 * stall: look again after a while. */
size_t unfolded_room(struct unfolded *unfolded, size_t under_way);

/* From now on @events may wait while folds get on: to acknowledge more would only make questions
 * wait.  When no fold gets on for UNFOLDED_STALL_MS, up to UNFOLDED_EVENTS_MAX may wait. */
void unfolded_limit(struct unfolded *unfolded, size_t events);

/* A fold gets on. */
void unfolded_moves(struct unfolded *unfolded);

/* Call @has_room when there is room again; NULL: no longer.  When this returns, an earlier one is
 * not called any more. */
void unfolded_on_room(struct unfolded *unfolded, void (*has_room)(void *data), void *data);

/* The number of the last entry of the log at @place that was put in.  @ret_id: of the log; "":
 * there is none. */
uint64_t unfolded_last(struct unfolded *unfolded, unsigned place, char ret_id[LOG_ID_TEXT + 1]);

/* Take references to entries of the log at @place with numbers above @after, at most about
 * @max_events of them, in an array that the caller frees: *ret has *ret_n.  @ret_id: of the log.
 * Returns the number of the last entry that was put in, taken or not.  *ret is NULL where none
 * wait, or memory is out. */
uint64_t unfolded_take(struct unfolded *unfolded, unsigned place, uint64_t after, size_t max_events,
    char ret_id[LOG_ID_TEXT + 1], struct log_entry ***ret, size_t *ret_n);

/* All entries of log @id, at @place, up to @n are folded. */
void unfolded_done(struct unfolded *unfolded, unsigned place, const char *id, uint64_t n);

/* Is the log @id one of this process's, now? */
bool unfolded_is_own(struct unfolded *unfolded, const char *id) MUST_CHECK;

/* For how long the oldest one has waited, ms; 0: none waits. */
int64_t unfolded_age_ms(struct unfolded *unfolded);

#endif
