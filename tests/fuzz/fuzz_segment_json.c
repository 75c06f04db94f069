/* fuzz_segment_json.c - libFuzzer target: any bytes as the body of Segment's HTTP API.
 *
 * The first byte chooses the call (bits 0 to 2) and whether robots are dropped (bit 3).  The rest
 * is the body, in a block of exactly its size.  Beyond memory safety: what is to be counted keeps
 * the rules of events and lies in the body, and each message has one fate.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/ingest/segment_json.h"
#include "handlers/text/check.h"
#include "handlers/text/utf8.h"
#include "storage/job/counted_name.h"

#define NOW          1763650000
#define MESSAGES_MAX 50

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_inside(const char *body, size_t n, struct slice text)
{
    require(text.n == 0 || slice_equal(text, SLICE("/")) ||
            (text.p >= body && text.p + text.n <= body + n));
    require(utf8_valid(text));
}

static void check_event(const char *body, size_t n, const struct event *event)
{
    check_inside(body, n, event->page);
    check_inside(body, n, event->user);
    check_inside(body, n, event->visitor);
    check_inside(body, n, event->agent);
    require(event_name_is(event->page) ? event_check_name(event_name_bare(event->page)) == NULL
                                       : event_check_page(event->page) == NULL);
    require(event->visitor.n == 0 || event_check_visitor(event->visitor) == NULL);
    require(event->user.n == 0 || event_check_user(event->user) == NULL);
    require(event->agent.n == 0 || event_check_agent(event->agent) == NULL);
    require(event->at_s >= NOW - 86400 && event->at_s <= NOW + 300);
    require(event->address.len == 0 || event->address.len == 4 || event->address.len == 16);
}

static void check_result(const char *body, size_t n, const struct segment_body *result)
{
    require(result->n_messages <= MESSAGES_MAX);
    require(result->n + result->uncounted + result->dropped_robots + result->dropped_ignored +
                result->rejected ==
            result->n_messages);
    require(result->rejected == 0 || (result->fault != NULL && result->fault_at != NULL &&
                                         result->fault_index < result->n_messages));
    require(result->ids.n >= result->n_messages);
    for (size_t i = 0; i < result->n; i++) {
        check_event(body, n, &result->events[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct event_rules rules = {
        .now_s = NOW, .latest_s = NOW + 300, .oldest_s = NOW - 86400, .max_events = MESSAGES_MAX};
    struct segment_body result;
    static struct robots_cache robots;
    if (n == 0) {
        return 0;
    }
    robots_cache_init(&robots, (const unsigned char[ROBOTS_CACHE_KEY_BYTES]){0});
    rules.robots = (data[0] & 8) != 0 ? &robots : NULL;
    size_t body_n = n - 1;
    char *body = malloc(body_n > 0 ? body_n : 1);
    require(body != NULL);
    memcpy(body, data + 1, body_n);
    enum segment_call call = (enum segment_call)((data[0] & 7) % SEGMENT_UNKNOWN);
    switch (segment_decode(body, body_n, call, &rules, &result)) {
    case SEGMENT_OK:
        check_result(body, body_n, &result);
        break;
    case SEGMENT_MALFORMED:
        require(result.detail != NULL && result.line >= 1 && result.column >= 1);
        break;
    case SEGMENT_TOO_MANY:
    case SEGMENT_NOMEM:
        break;
    }
    segment_body_release(&result);
    free(body);
    return 0;
}
