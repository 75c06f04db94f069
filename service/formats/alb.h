/* alb.h - the access logs of Amazon's Application Load Balancer.
 *
 * Layer: service/formats, pure: no I/O, no clock, no allocation.  Thread-safe.
 *
 *     TYPE TIME ELB CLIENT:PORT TARGET:PORT SECONDS SECONDS SECONDS STATUS TARGET-STATUS
 *     BYTES BYTES "METHOD SCHEME://HOST:PORT/TARGET HTTP/x" "USER AGENT" ..
 *
 * What follows the user agent is not looked at.  Page and host are those of the URL in the request.
 * STATUS is what the client got.
 *
 * Source: docs.aws.amazon.com/elasticloadbalancing/latest/application/
 * load-balancer-access-logs.html (access log entries: syntax).
 */
#ifndef SERVICE_FORMATS_ALB_H
#define SERVICE_FORMATS_ALB_H

#include "service/formats/log_line.h"

/* Parse @line.  NULL, or what is wrong (static); then *ret is untouched. */
const char *alb_parse(struct slice line, struct log_line *ret) MUST_CHECK;

#endif
