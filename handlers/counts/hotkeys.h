/* hotkeys.h - GET /hotkeys: the pages that are written and read most.
 *
 * Layer: handlers.  Answers at once, from this process's memory.
 */
#ifndef HANDLERS_COUNTS_HOTKEYS_H
#define HANDLERS_COUNTS_HOTKEYS_H

#include "handlers/http/http.h"

#define HOTKEYS_DEFAULT 10
#define HOTKEYS_MAX     1000

enum handler_result hotkeys_start(struct http_exchange *exchange);

#endif
