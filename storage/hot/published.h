/* published.h - the hottest pages of one process as bytes, and many such lists as one.
 *
 * Layer: storage, pure.  Not thread-safe: a list of lists has one owner.
 *
 * Each process of a fleet counts its own part of the load.  So the rates of a page are added up
 * over the lists.  A page that a list does not have may have had up to the list's `absent` there;
 * that goes into the page's error.
 *
 * The bytes: 'h', '1', `absent`, and then for each page reads, writes and error, the length of the
 * site (1 byte) and of the page (2 bytes), site and page.  Rates are 8 bytes, little endian, in
 * millionths a second.
 *
 * Source: P. K. Agarwal et al., "Mergeable summaries", PODS 2012: errors of merged ones add up.
 */
#ifndef STORAGE_HOT_PUBLISHED_H
#define STORAGE_HOT_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/hot_page.h"

#define PUBLISHED_PAGES 256         /* pages in the list of one process */
#define PUBLISHED_BYTES (64 * 1024) /* bytes of a list: fewer pages fit if their names are long */

/* Append the list as bytes: the first pages as far as both bounds allow.  @absent: see
 * hot_pages_list(). */
void published_write(struct buffer *out, const struct hot_page *pages, size_t n, double absent);

struct published_part;

/* Lists that are to be merged.  Zeroed: there is none. */
struct published_lists {
    struct published_part *parts; /* owned */
    size_t n, capacity;
    double absent; /* of all lists together */
};

/* Add the list of this process, whose names must stay until published_merge() has returned.  False:
 * out of memory. */
bool published_add(struct published_lists *lists, const struct hot_page *pages, size_t n,
    double absent) MUST_CHECK;

/* Add a list of bytes, which must stay as long.  Bytes of another form are taken as far as they are
 * understood.  False: out of memory. */
bool published_add_bytes(struct published_lists *lists, struct slice bytes) MUST_CHECK;

/* The pages of all lists, in order; the lists are empty afterwards.  The caller frees *ret with
 * hot_pages_release().  False: out of memory. */
bool published_merge(
    struct published_lists *lists, struct hot_page **ret, size_t *ret_n) MUST_CHECK;

void published_release(struct published_lists *lists);

#endif
