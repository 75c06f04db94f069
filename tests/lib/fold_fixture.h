/* fold_fixture.h - a core and entries for tests of folds.
 */
#ifndef TESTS_LIB_FOLD_FIXTURE_H
#define TESTS_LIB_FOLD_FIXTURE_H

#include "storage/core/core.h"
#include "storage/fold/pace.h"
#include "storage/log/entry.h"

#define FOLD_NOW_S INT64_C(1795187834)
#define FOLD_CFG   "settings"

extern const struct pace fold_no_pace; /* nothing is known */

/* A core whose Redis clock shows FOLD_NOW_S, with a secret and data that is kept for ever. */
struct core *fold_core_make(unsigned partitions);
void fold_core_drop(struct core *core);

/* Entry @n of log @id with @events events: pages "/0", "/1" and so on; every third one has the user
 * "ann", the others have none. */
struct log_entry *fold_entry(const char *id, uint64_t n, int64_t arrival_s, size_t events);

/* The same of @n events, which must stay. */
struct log_entry *fold_entry_of(
    const char *id, uint64_t number, int64_t arrival_s, const struct event *events, size_t n);

/* Replies that point to the texts. */
struct reply fold_text(const char *text); /* NULL: nil */
struct reply fold_array(struct reply *items, size_t n);

#endif
