/* json_log.h - access logs with a JSON object a line: Caddy, Traefik, Cloudflare, nginx.
 *
 * Layer: service/formats, pure: no I/O, no clock, no allocation.  Thread-safe.
 *
 * A format is a table of the members that are looked at; all others are skipped, but must be JSON.
 * Where a member is an array, as Caddy's headers are, its first text counts.
 *
 * Sources:
 *   caddyserver.com/docs/logging (structured access logs; client_ip since 2.7, remote_addr with a
 *     port before 2.5; ts in seconds with a fraction, or as the time_format says)
 *   doc.traefik.io/traefik/observability/access-logs (the user agent is there only if the header
 *     is kept: request_User-Agent)
 *   developers.cloudflare.com/logs/reference/log-fields/zone/http_requests and
 *     log-output-options (timestamps as RFC 3339, or in seconds or nanoseconds)
 *   nginx.org/en/docs/http/ngx_http_log_module.html (escape=json); see nginx.h
 */
#ifndef SERVICE_FORMATS_JSON_LOG_H
#define SERVICE_FORMATS_JSON_LOG_H

#include "service/formats/log_fields.h"

extern const struct log_table json_log_caddy, json_log_traefik, json_log_cloudflare;

/* Parse the @n bytes of @text, which are changed: texts are unescaped in place, and *ret points
 * there.  NULL, or what is wrong (static); then *ret is untouched. */
const char *json_log_parse(
    const struct log_table *table, char *text, size_t n, struct log_line *ret) MUST_CHECK;

/* Has the JSON object @text one of the members that an event of POST /events must have?  @text is
 * changed. */
bool json_log_is_event(char *text, size_t n) MUST_CHECK;

#endif
