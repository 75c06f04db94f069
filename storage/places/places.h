/* places.h - which names have a place of their own in an hour, and which a cap puts together.
 *
 * Layer: storage, pure.  Belongs to the thread of a lane (fold/lanes.h).
 *
 * A sender can invent names without end: pages, named events, sources.  So each class of names of a
 * site (job/counted_name.h) has a number of places in each hour of the site's zone, and in each
 * partition.  A name that comes first gets a place while one is free, or if the name had one in the
 * hour before.  Names without a place are counted together, pages and named events with their
 * visitors and addresses.  Once a name was refused, no other name gets a free place in that hour.
 * So a name with a place in an hour has had the place since the name came first, and what is
 * counted for the name in that hour is all that came.
 *
 * Which names have a place stands in Redis, in a hash a site and hour (schema/key.h).  The hash is
 * read behind the WATCH of the partition's state, and written in the transaction that counts.  So
 * all processes, and all attempts of a transaction, come to the same places.  A name stands in the
 * hash as a keyed hash of 8 bytes: nobody can find two names with the same one.  The hash is kept
 * until 26 hours after the hour's end, and for 15 minutes behind that, or behind a name that came
 * later.
 *
 * An hour that ended so long ago, and is closed for readers (time/closed.h), needs no hash.  Its
 * counters have each name that was counted there, under a name of its own or among those that were
 * put together.  Most such hours have few names.  So all names of the hour get a place at first
 * (places_rest_on_counters()).  A fold reads the values of these counters anyway, and asks them for
 * their names, too: see merge_counts_write_questions().  Where the answers say that a cap may be
 * reached, the caller begins again, and has the counters of these hours read first
 * (`reads_counters`).
 *
 * An import writes to an hour or two for each page view, so a hash for each hour was a quarter of
 * its commands.
 *
 *     places_ask               each name that will come, with its hour
 *     places_write_questions   what Redis is asked
 *     places_take              what Redis answers
 *     places_has               has the name a place?  In the order in which names come
 *     places_write             the commands that keep the new places
 */
#ifndef STORAGE_PLACES_PLACES_H
#define STORAGE_PLACES_PLACES_H

#include "storage/base/buffer.h"
#include "storage/base/known_hashes.h"
#include "storage/core/core.h"
#include "storage/places/wanted.h"
#include "storage/redis/reply.h"

struct places;

struct places *places_new(const struct core *core) MUST_CHECK; /* NULL: out of memory */
void places_free(struct places *places);

/* Forget all names.  The next ones are of @partition; @known is what is known of its places.
 *
 * Most names come again and again, and need not be asked for each time.  A name that has a place is
 * known by a keyed hash of partition, site, hour and name.  A place is taken away only with its
 * site, so what is known stays true until the connection is lost or something was deleted.  Then
 * the caller forgets what is known, and begins again if the names relied on that.
 *
 * @view may be old: the caller begins again if other hours are closed (places_hours_are()). */
void places_begin(struct places *places, unsigned partition, const struct known_hashes *known,
    const struct places_view *view);

/* Note that the name will come.  False: out of memory. */
bool places_ask(struct places *places, const struct place_wanted *wanted) MUST_CHECK;

/* Was a name that will come known to have a place? */
bool places_rely_on_known(const struct places *places) MUST_CHECK;

/* Did names get a place that the counters of their hour may deny? */
bool places_rest_on_counters(const struct places *places) MUST_CHECK;

/* By @view, are those hours of the names closed that were closed by the one of places_begin()? */
bool places_hours_are(const struct places *places, const struct places_view *view) MUST_CHECK;

/* Append the questions to @out, and return how many they are.  @tag is the partition's.  If memory
 * is out, out->failed is set. */
size_t places_write_questions(struct places *places, const char *tag, struct buffer *out);

/* Take the answer to question @i.  False: @reply is none. */
bool places_take(struct places *places, size_t i, const struct reply *reply) MUST_CHECK;

/* The same for questions that rest on these answers.  There are some only if the counters of closed
 * hours are read first (`reads_counters`). */
size_t places_write_more(struct places *places, const char *tag, struct buffer *out);
bool places_take_more(struct places *places, size_t i, const struct reply *reply) MUST_CHECK;

/* All answers are there.  Forget what was decided before. */
void places_decide(struct places *places);

/* Has the name, which was asked for, a place?  It gets one if one is free. */
bool places_has(struct places *places, const struct place_wanted *wanted) MUST_CHECK;

/* Append the commands that keep the new places to @out, and return how many they are.  @now_ms:
 * Redis's clock, UTC.  If memory is out, out->failed is set. */
size_t places_write(
    const struct places *places, const char *tag, int64_t now_ms, struct buffer *out);

/* The commands were carried out: remember which names have places. */
void places_learn(const struct places *places, struct known_hashes *known);

#endif
