/* row_sites.h - the sites of rows that tests make.
 *
 * Tests only.  One thread. */
#ifndef TESTS_LIB_ROW_SITES_H
#define TESTS_LIB_ROW_SITES_H

#include "storage/schema/hashed_event.h"

/* The site of that name and zone, once for each of both; the name is not copied.  With a @hash_mask
 * other than UINT64_MAX sites have the same hash. */
const struct row_site *row_site_make(const char *name, const struct zone *zone, uint64_t hash_mask);

/* The same in UTC. */
const struct row_site *row_site_of(const char *name);

#endif
