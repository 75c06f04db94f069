/* request_id.h - make an id for a request whose client gave none.
 *
 * Layer: service.  Thread-safe after request_ids_init().
 * An id is unique, not secret: eight random hex digits of this process, a dash, and a count.
 */
#ifndef SERVICE_HTTP_REQUEST_ID_H
#define SERVICE_HTTP_REQUEST_ID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"

#define REQUEST_ID_MAX 25 /* 8 + '-' + 16 */

struct request_ids {
    char prefix[9]; /* eight digits and the dash */
    _Atomic uint64_t next;
};

/* False: the system gives no random bytes. */
bool request_ids_init(struct request_ids *ids) MUST_CHECK;

/* Write the next id to @ret, NUL-terminated. */
void request_ids_next(struct request_ids *ids, char ret[static REQUEST_ID_MAX + 1]);

#endif
