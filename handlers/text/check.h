/* check.h - what an event's members may hold.
 *
 * Layer: handlers, pure.  Thread-safe.  The rules of the contract, once, for every door by which an
 * event comes in.  Each function returns NULL or what is wrong: a static text that never holds
 * input and names the member.
 *
 * Text is taken to be UTF-8 already: the JSON decoder has seen to it; who has text from elsewhere
 * asks utf8_valid() first.
 */
#ifndef HANDLERS_TEXT_CHECK_H
#define HANDLERS_TEXT_CHECK_H

#include <stdint.h>

#include "storage/job/event.h"

const char *event_check_page(struct slice page);
const char *event_check_user(struct slice user);
const char *event_check_site(struct slice site);
const char *event_check_action(struct slice action);
const char *event_check_agent(struct slice agent);
const char *event_check_referrer(struct slice referrer);

/* @oldest_s and @latest_s are still acceptable. */
const char *event_check_time(int64_t at_s, int64_t oldest_s, int64_t latest_s);

/* An IPv4 or IPv6 address as inet_pton() takes it: no leading zeros, no blanks, no zone.  @ret is
 * its canonical form; untouched if the text is refused. */
const char *event_parse_address(struct slice text, struct event_address *ret);

#endif
