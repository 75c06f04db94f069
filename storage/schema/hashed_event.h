/* hashed_event.h - an event as the write path carries it: names hashed, partitions known.
 *
 * Layer: storage.  Made on the submitting thread (hashing runs there, in parallel), merged by the
 * writer. Slices point into the request until the writer has copied them into its flush.
 */
#ifndef STORAGE_SCHEMA_HASHED_EVENT_H
#define STORAGE_SCHEMA_HASHED_EVENT_H

#include "storage/schema/identity.h"
#include "storage/schema/partition.h"
#include "storage/time/site_zones.h"

struct row {
    int64_t at_s;
    uint64_t page_hash, site_hash; /* of (site, page) and of (site, "") */
    struct slice site, page;
    struct slice user;           /* empty: none */
    const struct slice *actions; /* n_actions of them */
    const struct zone *zone;     /* the site's */
    struct visitor_id visitor;
    struct address_id address;
    bool has_visitor, has_address;
    uint8_t page_partition, site_partition, visitor_partition;
    uint8_t n_actions;
    uint32_t unit; /* of its flush (see unit.h), from 1; 0: of a request without a key */
};

/* Fill @ret from a validated event. */
void row_make(const struct event *event, const struct secret *secret, enum rotation rotation,
    const struct partitions *partitions, const struct site_zones *zones, struct row *ret);

/* The partition of a visitor. */
unsigned visitor_partition(const struct partitions *partitions, const struct visitor_id *visitor);

/* The partitions this row touches, as bits. */
static inline uint64_t row_partitions(const struct row *row)
{
    uint64_t bits = (uint64_t)1 << row->page_partition | (uint64_t)1 << row->site_partition;
    return row->has_visitor ? bits | (uint64_t)1 << row->visitor_partition : bits;
}

#endif
