/* routes.h - the table of all endpoints about counts.  Read routes.c first.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_ROUTES_H
#define HANDLERS_ROUTES_H

#include "handlers/http/http.h"

extern const struct route api_routes[];
extern const size_t n_api_routes;

#endif
