/* fuzz_event_json.c - libFuzzer target: any bytes as the body of POST /events.
 *
 *     clang -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_event_json.c ...
 *     ./a.out tests/fuzz/corpus/event_json
 *
 * The first byte chooses the form (bit 0: NDJSON) and, with bit 1, a small limit of events; without
 * bit 1, bit 2 drops robots and one network, and bit 3 asks for times.  The rest is the body, in a
 * block of exactly its size.  Beyond memory safety: every slice lies inside the body (or is
 * static), every accepted event passes the checks again, and the counts fit together.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/ingest/event_json.h"
#include "handlers/text/check.h"
#include "handlers/text/utf8.h"
#include "storage/job/counted_name.h"

#define NOW 1763650000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct body {
    char *bytes;
    size_t n;
};

static void require(int holds)
{
    if (!holds) {
        abort();
    }
}

static void check_inside(const struct body *body, struct slice text)
{
    require(text.n == 0 || (text.p >= body->bytes && text.p + text.n <= body->bytes + body->n));
    require(utf8_valid(text));
}

static void check_event(const struct body *body, const struct event *event)
{
    struct slice zero = SLICE("0");

    check_inside(body, event->page);
    if (event_name_is(event->page)) {
        require(event_check_name(event_name_bare(event->page)) == NULL);
    } else if (event->page.n > 0) {
        require(event_check_page(event->page) == NULL);
    } else {
        require(event->user.n > 0 && event->n_actions > 0);
    }
    check_inside(body, event->visitor);
    require(event->visitor.n == 0 || event_check_visitor(event->visitor) == NULL);
    if (!slice_equal(event->user, zero)) {
        check_inside(body, event->user);
    }
    require(event->user.n == 0 || event_check_user(event->user) == NULL);
    if (!slice_equal(event->site, EVENT_SITE_DEFAULT)) {
        check_inside(body, event->site);
    }
    require(event_check_site(event->site) == NULL);
    check_inside(body, event->agent);
    require(event_check_agent(event->agent) == NULL);
    require(event->at_s >= NOW - 86400 && event->at_s <= NOW + 300);
    require(event->address.len == 0 || event->address.len == 4 || event->address.len == 16);
    require(event->n_actions <= EVENT_ACTIONS_MAX);
    for (size_t i = 0; i < event->n_actions; i++) {
        check_inside(body, event->actions[i]);
        require(event_check_action(event->actions[i]) == NULL);
    }
}

static void check_reject(const struct event_reject *reject)
{
    size_t n = strnlen(reject->pointer, sizeof(reject->pointer));

    require(n < sizeof(reject->pointer) && (n == 0 || reject->pointer[0] == '/'));
    require(utf8_valid((struct slice){reject->pointer, n}));
    n = strnlen(reject->detail, sizeof(reject->detail));
    require(n > 0 && n < sizeof(reject->detail));
}

static void check_batch(const struct body *body, const struct event_batch *batch, size_t max_events)
{
    require(batch->n + batch->rejected + batch->dropped <= max_events);
    require(batch->dropped_robots <= batch->dropped);
    require(batch->n_drops ==
            (batch->dropped < EVENT_DROPS_LISTED ? batch->dropped : EVENT_DROPS_LISTED));
    require(batch->n_rejects ==
            (batch->rejected < EVENT_REJECTS_LISTED ? batch->rejected : EVENT_REJECTS_LISTED));
    for (size_t i = 0; i < batch->n; i++) {
        check_event(body, &batch->events[i]);
    }
    for (size_t i = 0; i < batch->n_rejects; i++) {
        check_reject(&batch->rejects[i]);
        require(i == 0 || batch->rejects[i].index > batch->rejects[i - 1].index);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct event_rules rules = {
        .now_s = NOW, .latest_s = NOW + 300, .oldest_s = NOW - 86400, .max_events = 10000};
    static struct robots_cache robots;
    struct network network;
    struct event_batch batch = {0};
    enum event_json_result result;
    struct body body;

    if (n == 0) {
        return 0;
    }
    if (data[0] & 2) {
        rules.max_events = data[0] >> 2;
    } else if (data[0] & 12) {
        robots_cache_init(&robots, (const unsigned char[ROBOTS_CACHE_KEY_BYTES]){0});
        require(network_parse(SLICE("192.0.2.0/24"), &network) == NULL);
        rules.robots = data[0] & 4 ? &robots : NULL;
        rules.ignored = &network;
        rules.n_ignored = data[0] & 4 ? 1 : 0;
        rules.needs_time = (data[0] & 8) != 0;
    }
    body = (struct body){malloc(n > 1 ? n - 1 : 1), n - 1};
    require(body.bytes != NULL);
    memcpy(body.bytes, data + 1, n - 1);
    result = event_json_decode(
        body.bytes, body.n, data[0] & 1 ? EVENT_BODY_NDJSON : EVENT_BODY_JSON, &rules, &batch);
    if (result == EVENT_JSON_OK) {
        check_batch(&body, &batch, rules.max_events);
    } else {
        require(batch.n == 0 && batch.rejected == 0 && batch.n_rejects == 0 && batch.dropped == 0);
    }
    if (result == EVENT_JSON_MALFORMED) {
        require(batch.line >= 1 && batch.line <= n && batch.column >= 1 && batch.column <= n);
        require(batch.detail != NULL);
    }
    event_batch_release(&batch);
    free(body.bytes);
    return 0;
}
