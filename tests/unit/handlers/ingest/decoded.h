/* decoded.h - a body decoded in one call, for the tests of the decoder. */
#ifndef TESTS_DECODED_H
#define TESTS_DECODED_H

#include <stdlib.h>

#include "handlers/ingest/event_json.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

#define NOW    1763650000
#define LATEST (NOW + 300)
#define OLDEST (NOW - 172800)

/* Events are read from a heap copy that ends with the body: a sanitizer sees one byte too many. */
struct decoded {
    char *body;
    enum event_json_result result;
    struct event_batch batch;
};

static inline struct decoded decode_form(struct slice text, enum event_body form, size_t max_events)
{
    struct event_rules rules = {
        .now_s = NOW, .latest_s = LATEST, .oldest_s = OLDEST, .max_events = max_events};
    struct decoded d = {.body = text.n > 0 ? malloc(text.n) : NULL};

    if (text.n > 0)
        memcpy(d.body, text.p, text.n);
    d.batch = (struct event_batch){0};
    d.result = event_json_decode(d.body, text.n, form, &rules, &d.batch);
    return d;
}

static inline struct decoded decode(struct slice text)
{
    return decode_form(text, EVENT_BODY_JSON, 10000);
}

static inline struct decoded decode_lines(struct slice text)
{
    return decode_form(text, EVENT_BODY_NDJSON, 10000);
}

static inline void release(struct decoded *d)
{
    event_batch_release(&d->batch);
    free(d->body);
}

#endif
