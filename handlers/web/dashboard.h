/* dashboard.h - GET / and GET /web/{file}: the page that people look at.
 *
 * Layer: handlers.
 * The files of handlers/web/ and Chart.js (as Debian has it) are built in.  They are the same for
 * everybody and hold no figures, so they need no token: the page asks the plain API, and for a
 * token where that wants one.  Each has a strong ETag, made of its bytes by the build, and is asked
 * about every time, so that page and scripts are of one version.  The Content-Security-Policy
 * allows nothing but them.
 */
#ifndef HANDLERS_WEB_DASHBOARD_H
#define HANDLERS_WEB_DASHBOARD_H

#include "handlers/http/http.h"

enum handler_result dashboard_start(struct http_exchange *exchange);
enum handler_result dashboard_file_start(struct http_exchange *exchange);

#endif
