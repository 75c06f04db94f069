/* hashed_event.h - an event ready to be counted: names hashed, partitions known.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * A fold makes rows of the events in entries (fold/batch.h), and merges them.  The slices of a row
 * point into the entry.
 */
#ifndef STORAGE_SCHEMA_HASHED_EVENT_H
#define STORAGE_SCHEMA_HASHED_EVENT_H

#include "storage/schema/identity.h"
#include "storage/schema/partition.h"
#include "storage/time/site_zones.h"

/* What page views are counted for beside page and site: a value of a dimension, or a section. */
struct counted_value {
    struct slice name;  /* see job/counted_name.h */
    uint64_t hash;      /* of the name alone, without the site */
    bool with_visitors; /* its visitors are counted, too */
};

/* The site of some rows.  A batch has each site once. */
struct row_site {
    struct slice name;
    uint64_t hash;           /* of (site, "") */
    const struct zone *zone; /* the site's hours, days and months are cut in this zone */
};

/* One event of a batch.  Tens of thousands of rows are in memory at once. */
struct row {
    int64_t at_s;
    const struct row_site *site;
    struct slice page;           /* see job/event.h */
    uint64_t page_hash;          /* of (site, page) */
    struct slice user;           /* empty: none */
    const struct slice *actions; /* n_actions of them */
    const uint32_t *values;      /* n_values of them: numbers of the batch's values */
    struct visitor_id visitor;
    struct visitor_id user_id; /* of the user; without a user it is not set */
    struct address_id address;
    /* Of an event that asks which of its actions were first: the ticket, 16 bytes (NULL: it does
     * not ask), the number in the request, and whether the request has a key. */
    const uint8_t *ticket;
    uint32_t index;
    bool has_key;
    bool is_old; /* the event was old when it arrived; see fold/batch_tasks.h */
    bool is_view;
    bool has_visitor, has_address;
    bool user_is_visitor; /* the user is counted as the visitor, in the same partition */
    uint8_t n_actions;
    uint8_t n_values;
    uint32_t entry; /* number of the row's entry in the batch */
};

/* The partition in which the data of a visitor, or of a user, lies. */
unsigned visitor_partition(const struct partitions *partitions, const struct visitor_id *visitor);

#endif
