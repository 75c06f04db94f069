/* import_cut.h - how many events go into one request, so that a file that has grown is cut again
 * where it was cut before.
 *
 * Layer: service/client, pure.  Not thread-safe.
 *
 * Where a batch ends is decided by what it holds; but the last one ends where the file does, and
 * the next import finds more there.  So it is cut like a number in binary: 700 events go as 512,
 * 128, 32, 16, 8 and 4, each piece at a multiple of its size (a buddy system: Knowlton 1965).  A
 * request's key tells where it begins, not how long it is (import_key.h): who offers 1024 events
 * under a key that stands for 512 is told so, and offers half, until it is what was counted.  What
 * follows is cut by the same rule, so each piece of the earlier runs is found, with few requests
 * more than there are pieces.
 */
#ifndef SERVICE_CLIENT_IMPORT_CUT_H
#define SERVICE_CLIENT_IMPORT_CUT_H

#include <stdbool.h>
#include <stddef.h>

/* The most events that may go in one request from event @first of a batch with @count on; @closed:
 * whatever else the file will hold, the batch ends there.  @first < @count. */
size_t import_cut(size_t first, size_t count, bool closed);

/* The next smaller number; 0 below 1. */
size_t import_cut_smaller(size_t n);

#endif
