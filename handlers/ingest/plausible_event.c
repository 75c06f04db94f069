#include "handlers/ingest/plausible_event.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/reply/json_body.h"
#include "handlers/reply/json_memory.h"
#include "handlers/text/ascii.h"
#include "handlers/text/check.h"
#include "handlers/text/url.h"
#include "storage/job/counted_name.h"

static const json_t *member(const json_t *object, const char *name, const char *short_name)
{
    const json_t *value = json_object_get(object, name);
    return value != NULL ? value : json_object_get(object, short_name);
}

static bool is_on(const json_t *value)
{
    return json_is_true(value) || (json_is_integer(value) && json_integer_value(value) == 1);
}

/* Copy @text to *to, which has room, and move *to behind the copy.  Returns the copy. */
static struct slice put(char **to, struct slice text)
{
    struct slice copy = {*to, text.n};
    if (text.n > 0) {
        memcpy(*to, text.p, text.n);
        *to += text.n;
    }
    return copy;
}

static const char *read_page(struct slice text, bool with_fragment, struct slice *ret, char **to)
{
    struct url url;
    if (!url_split(text, &url)) {
        return "must be an absolute URL";
    }
    *ret = put(to, url.path.n > 0 ? url.path : SLICE("/"));
    if (with_fragment) {
        ret->n += put(to, url.fragment).n;
    }
    return event_check_page(*ret) == NULL
               ? NULL
               : "its path must be 1 to 2048 bytes without control characters";
}

static bool has_domain(const struct plausible_event *event, struct slice domain)
{
    for (size_t i = 0; i < event->n_domains; i++) {
        if (slice_equal(event->domains[i], domain)) {
            return true;
        }
    }
    return false;
}

/* Read the sites.  Their names become lower-case, as the case of a host's name means nothing. */
static const char *read_domains(struct slice list, struct plausible_event *event, char **to)
{
    char *lower = *to;
    struct slice rest = put(to, list);
    for (size_t i = 0; i < list.n; i++) {
        lower[i] = ascii_lower(lower[i]);
    }
    for (bool more = true; more;) {
        struct slice domain = rest;
        more = slice_take_until(&rest, ',', &domain);
        while (slice_take(&domain, ' ')) {
        }
        if (event_check_site(domain) != NULL) {
            return "must be the name of a site, [a-z0-9][a-z0-9._-]{0,63}";
        }
        if (has_domain(event, domain)) {
            continue;
        }
        if (event->n_domains == PLAUSIBLE_DOMAINS_MAX) {
            return "must be at most 16 names";
        }
        event->domains[event->n_domains++] = domain;
    }
    return NULL;
}

static bool fail(struct plausible_fault *fault, const char *name, const char *detail)
{
    *fault = (struct plausible_fault){name, detail};
    return false;
}

/* Read what kind of event this is.  @text is not empty. */
static const char *read_name(struct slice text, struct plausible_event *event, char **to)
{
    if (slice_equal(text, SLICE("pageview"))) {
        event->kind = PLAUSIBLE_VIEW;
        return NULL;
    }
    if (slice_equal(text, SLICE("engagement"))) {
        event->kind = PLAUSIBLE_ENGAGEMENT;
        return NULL;
    }
    if (event_check_name(text) != NULL) {
        return "must be 1 to 128 bytes without control characters";
    }
    event->kind = PLAUSIBLE_NAMED;
    event->name = event_name_mark(text, *to);
    *to += event->name.n;
    return NULL;
}

/* Read one property.  Its name and value are copied to *to, which has room.  What cannot be a
 * property is ignored. */
static void read_prop(
    const char *name, const json_t *value, struct plausible_event *event, char **to)
{
    char number[40];
    struct slice text = json_is_string(value)  ? json_text_of(value)
                        : json_is_true(value)  ? SLICE("true")
                        : json_is_false(value) ? SLICE("false")
                                               : SLICE("");
    if (json_is_integer(value)) {
        (void)snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
        text = slice_of(number);
    } else if (json_is_real(value)) {
        (void)snprintf(number, sizeof(number), "%.15g", json_real_value(value));
        text = slice_of(number);
    }
    if (text.n > 0 && event_check_value(text) == NULL && name_valid(slice_of(name)) &&
        event->n_props < PLAUSIBLE_PROPS_MAX) {
        struct slice copy = put(to, slice_of(name));
        event->props[event->n_props++] = (struct view_prop){copy, put(to, text)};
    }
}

/* Read where the visitor came from, and the properties.  Faults of these are ignored. */
static void read_traits(const json_t *root, struct plausible_event *event, char *to)
{
    const json_t *referrer = member(root, "referrer", "r");
    const json_t *props = member(root, "props", json_object_get(root, "p") != NULL ? "p" : "m");
    json_t *parsed = NULL;
    const char *name;
    json_t *value;
    if (json_is_string(referrer) && event_check_referrer(json_text_of(referrer)) == NULL) {
        event->referrer = put(&to, json_text_of(referrer));
    }
    if (json_is_string(props)) {
        json_error_t error;
        parsed = json_body_load(json_text_of(props), 0, &error);
        props = parsed;
    }
    json_object_foreach((json_t *)(uintptr_t)props, name, value)
    {
        read_prop(name, value, event, &to);
    }
    json_decref(parsed);
}

static bool read_members(
    const json_t *root, struct plausible_event *event, char *to, struct plausible_fault *fault)
{
    const json_t *name = member(root, "name", "n");
    const json_t *url = member(root, "url", "u");
    const json_t *domain = member(root, "domain", "d");
    const char *detail;
    if (!json_is_string(name) || json_string_length(name) == 0) {
        return fail(
            fault, "name", name == NULL ? "is required" : "must be a text that is not empty");
    }
    if (!json_is_string(url)) {
        return fail(fault, "url", url == NULL ? "is required" : "must be a text");
    }
    if (!json_is_string(domain)) {
        return fail(fault, "domain", domain == NULL ? "is required" : "must be a text");
    }
    detail = read_page(json_text_of(url), is_on(member(root, "hashMode", "h")), &event->page, &to);
    if (detail != NULL) {
        return fail(fault, "url", detail);
    }
    detail = read_domains(json_text_of(domain), event, &to);
    if (detail != NULL) {
        return fail(fault, "domain", detail);
    }
    detail = read_name(json_text_of(name), event, &to);
    if (detail != NULL) {
        return fail(fault, "name", detail);
    }
    event->url = put(&to, json_text_of(url));
    read_traits(root, event, to);
    return true;
}

enum plausible_result plausible_decode(
    struct slice body, struct plausible_event *ret, struct plausible_fault *ret_fault)
{
    json_error_t error;
    *ret = (struct plausible_event){0};
    *ret_fault = (struct plausible_fault){NULL, "must be a JSON object"};
    json_t *root = json_body_load(body, 0, &error);
    if (!json_is_object(root)) {
        bool failed = root == NULL && body.n > 0;
        json_decref(root);
        if (failed &&
            (json_memory_failed() || json_error_code(&error) == json_error_out_of_memory)) {
            return PLAUSIBLE_NOMEM;
        }
        if (failed) { /* jansson refuses some bodies that are objects by RFC 8259 */
            ret_fault->detail = "must be JSON in UTF-8, without \\u0000, half of a surrogate pair "
                                "and numbers beyond 1e308";
        }
        return PLAUSIBLE_FAULT;
    }
    /* The texts take more bytes than the body: a "/" for an empty path, a mark for a name, the URL
     * twice (its path is the page), and the digits of numbers, which may become longer. */
    ret->bytes = malloc(2 * body.n + 2 + PLAUSIBLE_PROPS_MAX * (size_t)40);
    bool ok = ret->bytes != NULL && read_members(root, ret, ret->bytes, ret_fault);
    enum plausible_result result = ok                   ? PLAUSIBLE_OK
                                   : ret->bytes == NULL ? PLAUSIBLE_NOMEM
                                                        : PLAUSIBLE_FAULT;
    if (!ok) {
        plausible_release(ret);
    }
    json_decref(root);
    return result;
}

void plausible_release(struct plausible_event *event)
{
    free(event->bytes);
    *event = (struct plausible_event){0};
}
