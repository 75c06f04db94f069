/* bench_event_json - what does it cost to decode an event, and what would jansson take?
 *
 *	bench_event_json [seconds a figure] [seed]
 *
 * Both read the same bodies, arrays of 1000 generated events, and touch every member.  Each works
 *on a fresh copy, because our decoder changes its input; the copy is in both figures.  jansson's
 *does no more than parse and look up: no rule is checked, so the ratio flatters it.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handlers/ingest/event_json.h"

#define EVENTS   1000
#define BODY_MAX (EVENTS * 512)

enum shape { SHAPE_PLAIN, SHAPE_ESCAPED, SHAPE_PRETTY, SHAPE_LARGE, SHAPES };

static const char *const shape_names[] = {
    [SHAPE_PLAIN] = "plain",
    [SHAPE_ESCAPED] = "escapes and UTF-8",
    [SHAPE_PRETTY] = "pretty-printed",
    [SHAPE_LARGE] = "browser's user agent",
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int print_event(char *to, size_t room, enum shape shape, uint64_t *state)
{
    unsigned page = (unsigned)(next_random(state) % 5000);
    unsigned user = (unsigned)(next_random(state) % 1000000);
    unsigned host = (unsigned)(next_random(state) % 65536);
    unsigned ts = 1763650000 + (unsigned)(next_random(state) % 3600);

    switch (shape) {
    case SHAPE_ESCAPED:
        return snprintf(to, room,
            "{\"page\":\"\\/artikel\\/%u\\/stra\xc3\x9f"
            "e\",\"user\":\"u\\u0031%u\",\"ip\":\"10.1.%u.%u\",\"ua\":\"Mozilla/5.0 "
            "\\\"X11\\\"\",\"ts\":%u}",
            page, user, host >> 8, host & 255, ts);
    case SHAPE_PRETTY:
        return snprintf(to, room,
            "{\n    \"page\": \"/articles/%u/reading\",\n    \"user\": \"u%u\",\n    \"ip\": "
            "\"10.1.%u.%u\",\n    \"ua\": \"Mozilla/5.0 (X11; Linux)\",\n    \"ts\": %u\n}",
            page, user, host >> 8, host & 255, ts);
    case SHAPE_LARGE:
        return snprintf(to, room,
            "{\"page\":\"/articles/%u/reading\",\"user\":\"u%u\",\"ip\":\"10.1.%u.%u\",\"ua\":"
            "\"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
            "Chrome/126.0.0.0 Safari/537.36\",\"referrer\":\"https://example.org/search?q=x\","
            "\"ts\":%u}",
            page, user, host >> 8, host & 255, ts);
    case SHAPE_PLAIN:
    case SHAPES:
        break;
    }
    return snprintf(to, room,
        "{\"page\":\"/articles/%u/reading\",\"user\":\"u%u\",\"ip\":\"10.1.%u.%u\",\"ua\":"
        "\"Mozilla/5.0 (X11; Linux)\",\"ts\":%u}",
        page, user, host >> 8, host & 255, ts);
}

static size_t make_body(char *body, enum shape shape, uint64_t *state)
{
    size_t n = 0;

    for (int i = 0; i < EVENTS; i++) {
        body[n++] = i == 0 ? '[' : ',';
        n += (size_t)print_event(body + n, BODY_MAX - n, shape, state);
    }
    body[n++] = ']';
    return n;
}

/* Each returns the sum of all it saw, so that nothing can be left out and the two can be compared.
 */
static size_t decode_ours(char *body, size_t n)
{
    struct event_rules rules = {
        .now_s = 1763650000, .latest_s = INT64_MAX, .oldest_s = INT64_MIN, .max_events = EVENTS};
    struct event_batch batch = {0};
    size_t sum = 0;

    if (event_json_decode(body, n, EVENT_BODY_JSON, &rules, &batch) != EVENT_JSON_OK) {
        abort();
    }
    for (size_t i = 0; i < batch.n; i++) {
        const struct event *event = &batch.events[i];

        sum += event->page.n + event->user.n + event->agent.n + (size_t)event->at_s;
    }
    event_batch_release(&batch);
    return sum;
}

static size_t decode_jansson(char *body, size_t n)
{
    json_t *events = json_loadb(body, n, 0, NULL);
    size_t sum = 0, i;
    json_t *event;

    if (events == NULL) {
        abort();
    }
    json_array_foreach(events, i, event)
    {
        sum += json_string_length(json_object_get(event, "page"));
        sum += json_string_length(json_object_get(event, "user"));
        sum += json_string_length(json_object_get(event, "ua"));
        sum += (size_t)json_integer_value(json_object_get(event, "ts"));
        if (json_string_value(json_object_get(event, "ip")) == NULL) {
            abort();
        }
    }
    json_decref(events);
    return sum;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Nanoseconds an event; the best of ten rounds, since others use the machine as well. */
static double measure(
    size_t (*decode)(char *, size_t), const char *body, size_t n, double seconds, size_t *ret_sum)
{
    char *copy = malloc(n);
    double best = 1e9;

    for (int round = 0; round < 10; round++) {
        double start = now_s(), took;
        size_t times = 0;

        do {
            memcpy(copy, body, n);
            *ret_sum = decode(copy, n);
            times++;
            took = now_s() - start;
        } while (took < seconds / 10);
        took = took / (double)(times * EVENTS) * 1e9;
        best = took < best ? took : best;
    }
    free(copy);
    return best;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) | 1 : 20261120;
    char *body = malloc(BODY_MAX);

    printf("%-22s %12s %10s %12s %7s\n", "body", "bytes/event", "ns/event", "jansson", "ratio");
    for (int shape = 0; shape < SHAPES; shape++) {
        size_t n = make_body(body, (enum shape)shape, &state);
        size_t sum = 0, expected = 0;
        double ours = measure(decode_ours, body, n, seconds, &sum);
        double theirs = measure(decode_jansson, body, n, seconds, &expected);

        printf("%-22s %12.1f %10.1f %12.1f %6.1fx\n", shape_names[shape], (double)n / EVENTS, ours,
            theirs, theirs / ours);
        if (sum != expected) {
            printf("the decoders disagree: %zu, jansson %zu\n", sum, expected);
            return 1;
        }
    }
    free(body);
    return 0;
}
