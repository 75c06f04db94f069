/* Random and broken documents: our decoder against jansson and a naive model of the rules.
 *
 * Whether a document is JSON at all, the two must agree, but for these cases, in which jansson
 * refuses the document (or has no limit) and we do not:
 *
 *	invalid UTF-8 in a string	we reject the event
 *	\u0000, half a surrogate pair	we reject the event
 *	numbers beyond 64 bits, 1e999	we ignore them, or reject the event
 *	members given twice		we reject the event if we know the member
 *	nested deeper than 32		we refuse the document
 *	a NUL behind a number		we refuse the document (jansson 2.14 skips the NUL)
 *
 * soften() takes just these out of a copy, without touching the grammar, so that jansson's verdict
 * on the copy must be ours on the original.  Where jansson takes the original as it is, the model
 * tells which events must be accepted and what they hold.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/ingest/event_json.h"
#include "handlers/text/timestamp.h"
#include "storage/job/counted_name.h"
#include "tests/lib/event_documents.h"

#define NOW    1763650000
#define LATEST (NOW + 300)
#define OLDEST (NOW - 172800)
#define ROUNDS 40000

/* The exceptions */

static bool is_hex(const char *p, const char *end)
{
    for (int i = 0; i < 4; i++, p++) {
        if (p == end || strchr("0123456789abcdefABCDEF", *p) == NULL || *p == 0) {
            return false;
        }
    }
    return true;
}

/* Copy a string up to its quote (or the end): bytes beyond ASCII become 'x', \uXXXX becomes \u0041.
 */
static const char *soften_string(const char *p, const char *end, struct document *soft)
{
    while (p < end && *p != '"') {
        if (*p == '\\' && p + 1 < end && p[1] == 'u' && is_hex(p + 2, end)) {
            document_append(soft, "\\u0041");
            p += 6;
        } else if (*p == '\\' && p + 1 < end) {
            soft->bytes[soft->n++] = *p++;
            soft->bytes[soft->n++] = *p++;
        } else {
            soft->bytes[soft->n++] = (unsigned char)*p < 0x80 ? *p : 'x';
            p++;
        }
    }
    return p;
}

/* Copy a run of digits: not more than 18, and 0 for an exponent. */
static const char *soften_digits(
    const char *p, const char *end, bool exponent, struct document *soft)
{
    for (int i = 0; p < end && *p >= '0' && *p <= '9'; p++, i++) {
        if (i < 18) {
            soft->bytes[soft->n++] = exponent ? '0' : *p;
        }
    }
    return p;
}

/* Returns how deeply containers are nested in the text (if it is JSON). */
static unsigned soften(const struct document *text, struct document *soft)
{
    const char *end = text->bytes + text->n;
    unsigned depth = 0, deepest = 0;
    bool exponent = false;

    soft->n = 0;
    for (const char *p = text->bytes; p < end;) {
        if (*p >= '0' && *p <= '9') {
            p = soften_digits(p, end, exponent, soft);
            continue;
        }
        exponent = *p == 'e' || *p == 'E' || (exponent && (*p == '+' || *p == '-'));
        if (*p == '{' || *p == '[') {
            deepest = ++depth > deepest ? depth : deepest;
        }
        if (*p == '}' || *p == ']') {
            depth--;
        }
        soft->bytes[soft->n++] = *p == 0 ? '\1' : *p;
        if (*p++ == '"') {
            p = soften_string(p, end, soft);
            if (p < end) {
                soft->bytes[soft->n++] = *p++;
            }
        }
    }
    return deepest;
}

/* The model */

static bool plain_string(const json_t *value, size_t least, size_t most)
{
    const char *p = json_string_value(value);
    size_t n = json_string_length(value);

    if (p == NULL || n < least || n > most) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)p[i] < ' ' || p[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool name_like(const json_t *value, const char *marks)
{
    const char *p = json_string_value(value);

    if (p == NULL || *p == 0 || strlen(p) > 64) {
        return false;
    }
    return p[strspn(p, marks)] == 0;
}

#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"

static bool model_time(const json_t *value, int64_t *ret_s)
{
    if (json_is_string(value)) {
        if (!timestamp_rfc3339(slice_of(json_string_value(value)), ret_s)) {
            return false;
        }
    } else if (json_is_integer(value)) {
        *ret_s = timestamp_from_number(json_integer_value(value));
    } else if (json_is_real(value) && json_real_value(value) >= 0 &&
               json_real_value(value) < 1e17) {
        *ret_s = timestamp_from_number((int64_t)json_real_value(value));
    } else {
        return false;
    }
    return *ret_s >= OLDEST && *ret_s <= LATEST;
}

static bool model_address(const json_t *value)
{
    unsigned char bytes[16];
    const char *p = json_string_value(value);

    return p != NULL && (inet_pton(AF_INET, p, bytes) == 1 || inet_pton(AF_INET6, p, bytes) == 1);
}

static bool model_actions(const json_t *value)
{
    const json_t *action;
    size_t i;

    if (!json_is_array(value) || json_array_size(value) > 8) {
        return false;
    }
    json_array_foreach(value, i, action) if (!name_like(action, LETTERS "._:-"))
    {
        return false;
    }
    return true;
}

/* One of page, event and actions; actions alone need a user. */
static bool model_kind(const json_t *event)
{
    const json_t *page = json_object_get(event, "page");
    const json_t *name = json_object_get(event, "event");

    if ((page != NULL && !plain_string(page, 1, 2048)) ||
        (name != NULL && !plain_string(name, 1, 128))) {
        return false;
    }
    return page != NULL || name != NULL ||
           (json_array_size(json_object_get(event, "actions")) > 0 &&
               json_object_get(event, "user") != NULL);
}

static bool model_accepts(const json_t *event)
{
    const json_t *value;
    int64_t at_s;

    if (!json_is_object(event) || !model_kind(event)) {
        return false;
    }
    if ((value = json_object_get(event, "visitor")) && !plain_string(value, 1, 256)) {
        return false;
    }
    if ((value = json_object_get(event, "user")) && !json_is_integer(value) &&
        !plain_string(value, 1, 256)) {
        return false;
    }
    if ((value = json_object_get(event, "site")) &&
        (!name_like(value, LETTERS "._-") || strchr("._-", *json_string_value(value)))) {
        return false;
    }
    if ((value = json_object_get(event, "ip")) && !model_address(value)) {
        return false;
    }
    if ((value = json_object_get(event, "ts")) && !model_time(value, &at_s)) {
        return false;
    }
    if ((value = json_object_get(event, "ua")) && !json_is_null(value) && !json_is_string(value)) {
        return false;
    }
    if ((value = json_object_get(event, "referrer")) && !json_is_null(value) &&
        !json_is_string(value)) {
        return false;
    }
    return !(value = json_object_get(event, "actions")) || model_actions(value);
}

static bool same_text(struct slice got, const json_t *value, const char *absent)
{
    char number[32];

    if (json_is_integer(value)) {
        sprintf(number, "%" PRId64, (int64_t)json_integer_value(value));
        return slice_equal(got, slice_of(number));
    }
    return slice_equal(got, slice_of(json_is_string(value) ? json_string_value(value) : absent));
}

static bool same_page(const struct event *event, const json_t *model)
{
    const json_t *name = json_object_get(model, "event");

    if (name == NULL) {
        return same_text(event->page, json_object_get(model, "page"), "");
    }
    return event_name_is(event->page) && same_text(event_name_bare(event->page), name, "");
}

static bool same_event(const struct event *event, const json_t *model)
{
    const json_t *actions = json_object_get(model, "actions");
    const json_t *ts = json_object_get(model, "ts");
    int64_t at_s = NOW;

    if (ts != NULL) {
        model_time(ts, &at_s);
    }
    if (event->at_s != at_s || event->n_actions != json_array_size(actions)) {
        return false;
    }
    for (size_t i = 0; i < event->n_actions; i++) {
        if (!same_text(event->actions[i], json_array_get(actions, i), "")) {
            return false;
        }
    }
    return same_page(event, model) &&
           same_text(event->visitor, json_object_get(model, "visitor"), "") &&
           same_text(event->user, json_object_get(model, "user"), "") &&
           same_text(event->agent, json_object_get(model, "ua"), "") &&
           same_text(event->site, json_object_get(model, "site"), "default") &&
           (event->address.len != 0) == (json_object_get(model, "ip") != NULL);
}

static void expect_events(const struct event_batch *batch, const json_t *tree, unsigned seed)
{
    size_t i, n = 0, rejected = 0;
    json_t *all = json_is_array(tree) ? json_deep_copy(tree) : json_pack("[O]", tree);
    json_t *event;

    json_array_foreach(all, i, event)
    {
        if (!model_accepts(event)) {
            if (rejected < batch->n_rejects) {
                cr_assert_eq(batch->rejects[rejected].index, i, "seed %u", seed);
            }
            rejected++;
            continue;
        }
        cr_assert_lt(n, batch->n, "seed %u", seed);
        cr_assert(same_event(&batch->events[n], event), "seed %u, event %zu", seed, i);
        n++;
    }
    cr_assert_eq(batch->n, n, "seed %u", seed);
    cr_assert_eq(batch->rejected, rejected, "seed %u", seed);
    json_decref(all);
}

/* What the run has met: a property that was never put to the test is none. */
struct met {
    unsigned json, not_json, too_deep, softened, modelled, accepted, rejected;
};

static void compare(unsigned seed, const struct document *text, struct met *met)
{
    static struct document soft;
    struct event_rules rules = {
        .now_s = NOW, .latest_s = LATEST, .oldest_s = OLDEST, .max_events = 10000};
    unsigned depth = soften(text, &soft);
    json_t *softened = json_loadb(soft.bytes, soft.n, 0, NULL);
    json_t *original = json_loadb(text->bytes, text->n, JSON_REJECT_DUPLICATES, NULL);
    bool expected = softened != NULL && depth <= EVENT_DEPTH_MAX;
    char *body = malloc(text->n + 1);
    struct event_batch batch = {0};
    enum event_json_result result;

    memcpy(body, text->bytes, text->n);
    result = event_json_decode(body, text->n, EVENT_BODY_JSON, &rules, &batch);
    cr_assert_eq(result, expected ? EVENT_JSON_OK : EVENT_JSON_MALFORMED,
        "seed %u: %s at %zu\n%.*s", seed, batch.detail, batch.column, (int)text->n, text->bytes);
    if (original != NULL && expected) { /* a document that we take holds no NUL */
        expect_events(&batch, original, seed);
        met->modelled++;
    }
    met->json += expected;
    met->not_json += softened == NULL;
    met->too_deep += softened != NULL && !expected;
    met->softened += expected && original == NULL;
    met->accepted += (unsigned)batch.n;
    met->rejected += (unsigned)batch.rejected;
    event_batch_release(&batch);
    free(body);
    json_decref(softened);
    json_decref(original);
}

Test(event_json_jansson, agrees_on_random_and_broken_documents)
{
    static struct document text;
    struct met met = {0};

    for (unsigned seed = 1; seed <= ROUNDS; seed++) {
        struct document_random r = {seed * UINT64_C(0x9e3779b97f4a7c15)};

        event_document_make(&r, &text);
        for (unsigned i = document_below(&r, 3); i > 0; i--) {
            event_document_mutate(&r, &text);
        }
        compare(seed, &text, &met);
    }
    cr_log_info("json %u, not %u, too deep %u, only softened %u, modelled %u, events %u + %u",
        met.json, met.not_json, met.too_deep, met.softened, met.modelled, met.accepted,
        met.rejected);
    cr_expect_gt(met.json, ROUNDS / 4u);
    cr_expect_gt(met.not_json, ROUNDS / 10u);
    cr_expect_gt(met.too_deep, ROUNDS / 200u);
    cr_expect_gt(met.softened, ROUNDS / 50u);
    cr_expect_gt(met.modelled, ROUNDS / 10u);
    cr_expect_gt(met.accepted, ROUNDS / 5u);
    cr_expect_gt(met.rejected, ROUNDS / 5u);
}
