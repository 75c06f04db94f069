/* rollup.h - GET /rollup: who leads, and how far it is; POST /rollup: the same, after a pass.
 *
 * Layer: handlers.
 * {"leader","holder","fencing_token","watermarks":{"hour","day","month"},"lag_s":{..}}: every
 * bucket of a level that ends at or before its watermark is complete in all partitions.
 */
#ifndef HANDLERS_COUNTS_ROLLUP_H
#define HANDLERS_COUNTS_ROLLUP_H

#include "handlers/http/http.h"

enum handler_result rollup_get_start(struct http_exchange *exchange);
enum handler_result rollup_post_start(struct http_exchange *exchange);
void rollup_finish(struct http_exchange *exchange);

#endif
