/* check.h - the rules for what clients send: members of events, and names.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * These are the rules of the contract (openapi.yaml), once for all endpoints.  Each event_ function
 * returns NULL, or what is wrong: a static text that names the member and never holds input.
 *
 * Text must be UTF-8 already.  The JSON decoder and params.h have seen to that; text from elsewhere
 * goes through utf8_valid() first.
 */
#ifndef HANDLERS_TEXT_CHECK_H
#define HANDLERS_TEXT_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/job/event.h"

/* Has @text a C0 control or DEL? */
bool text_has_control(struct slice text) MUST_CHECK;

/* Check a member of an event. */
const char *event_check_page(struct slice page) MUST_CHECK;
const char *event_check_user(struct slice user) MUST_CHECK;
const char *event_check_visitor(struct slice visitor) MUST_CHECK;
const char *event_check_name(struct slice name) MUST_CHECK; /* a named event's, without its mark */
const char *event_check_site(struct slice site) MUST_CHECK;
const char *event_check_action(struct slice action) MUST_CHECK;
const char *event_check_agent(struct slice agent) MUST_CHECK;
const char *event_check_referrer(struct slice referrer) MUST_CHECK;
const char *event_check_value(struct slice value) MUST_CHECK; /* a dimension's; may be empty */

/* Does @at_s lie in [@oldest_s, @latest_s]?  All are UTC epoch seconds. */
const char *event_check_time(int64_t at_s, int64_t oldest_s, int64_t latest_s) MUST_CHECK;

/* Read an IPv4 or IPv6 address as inet_pton() does: no leading zeros, no blanks, no zone.  @ret is
 * its canonical form (see event.h); untouched if the text is refused. */
const char *event_parse_address(struct slice text, struct event_address *ret);

/* Is @name a valid name for what users keep: a filter, a page set, a policy? */
bool name_valid(struct slice name) MUST_CHECK;
const char *name_check(struct slice name) MUST_CHECK; /* NULL, or NAME_DETAIL */
#define NAME_MAX_BYTES 64
#define NAME_DETAIL    "must be [A-Za-z0-9._-]{1,64}"

#endif
