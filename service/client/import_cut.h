/* import_cut.h - how many events go into one request, so that a grown file is cut as it was before.
 *
 * Layer: service/client, pure.  Thread-safe.
 *
 * What a batch holds decides where the batch ends.  But the last batch ends where the file does,
 * and the next import may find more there.  So that batch is cut like a number in binary: 700
 * events go as 512, 128, 32, 16, 8 and 4, each piece at a multiple of its size (a buddy system:
 * Knowlton 1965).
 *
 * The key of a request tells where the request begins, not how long it is (import_key.h).  A client
 * that offers 1024 events under a key for 512 is told so, and offers half, until the number is the
 * one that was counted.  The rest is cut by the same rule.  So each piece of earlier imports is
 * found, with few requests more than there are pieces.
 */
#ifndef SERVICE_CLIENT_IMPORT_CUT_H
#define SERVICE_CLIENT_IMPORT_CUT_H

#include <stdbool.h>
#include <stddef.h>

/* The most events that may go into one request, from event @first < @count of a batch with @count.
 * @closed: the batch ends there, whatever else the file will hold. */
size_t import_cut(size_t first, size_t count, bool closed);

/* The next smaller number of events to offer; 0 below 1. */
size_t import_cut_smaller(size_t n);

#endif
