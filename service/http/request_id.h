/* request_id.h - names for requests whose client gave none.
 *
 * Layer: service.  Thread-safe after init.
 * An id is unique, not secret: eight random hex digits of this process, a dash, and a count.
 */
#ifndef SERVICE_HTTP_REQUEST_ID_H
#define SERVICE_HTTP_REQUEST_ID_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define REQUEST_ID_MAX 25 /* 8 + '-' + 16 */

struct request_ids {
    char prefix[9]; /* eight digits and the dash */
    _Atomic uint64_t next;
};

/* False if the system gives no random bytes. */
bool request_ids_init(struct request_ids *ids) __attribute__((warn_unused_result));

/* The next id, NUL-terminated. */
void request_ids_next(struct request_ids *ids, char ret[static REQUEST_ID_MAX + 1]);

#endif
