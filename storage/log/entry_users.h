/* entry_users.h - which users may have events in an entry: a Bloom filter that is made when it is
 * asked for the first time.
 *
 * Layer: storage.  Thread-safe.
 *
 * A question that looks at what waits in memory (log/waiting.h) looks for one user in entries that
 * may have thousands of others.  To read an entry's events takes some 50 ns each; to look at two
 * bits takes as much as one of them.
 */
#ifndef STORAGE_LOG_ENTRY_USERS_H
#define STORAGE_LOG_ENTRY_USERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

struct log_entry;

/* 16 bits an event, 512 at least, and two of them set: 1.4 of 100 other users pass. */
struct entry_users {
    uint64_t n_bits; /* a power of two */
    uint64_t words[];
};

/* May the user of the site have an event in the entry?  True also if memory is out.  Several
 * threads may ask at a time: each makes the filter, and one of these equal filters is kept. */
bool entry_may_have(struct log_entry *entry, struct slice site, struct slice user) MUST_CHECK;

/* Called for the events of an entry. */
struct chunk_event;
typedef void entry_event_fn(void *data, const struct chunk_event *event);

/* Call @take for each event of the chunks that have @text anywhere.  False: out of memory. */
bool entry_each_near(
    const struct log_entry *entry, struct slice text, entry_event_fn *take, void *data) MUST_CHECK;

#endif
