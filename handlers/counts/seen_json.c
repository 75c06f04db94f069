#include "handlers/counts/seen_json.h"

#include <stdio.h>
#include <stdlib.h>

#include "handlers/text/check.h"
#include "handlers/text/json_value.h"
#include "storage/base/index.h"

#define DEPTH_MAX    32
#define PAGES_DETAIL "pages must be an array of 1 to 1000 pages"

_Static_assert(SEEN_PAGES_MAX == 1000, "PAGES_DETAIL says so");

struct body_reader {
    struct json_scan scan;
    struct seen_body *body;
    struct seen_json_fault *fault; /* the first fault; others are forgotten */
    bool site, user, pages;        /* the members that were read */
    bool nomem;
};

static void refuse(struct body_reader *r, const char *pointer, const char *detail)
{
    if (r->fault->detail == NULL) {
        (void)snprintf(r->fault->pointer, sizeof(r->fault->pointer), "%s", pointer);
        r->fault->detail = detail;
    }
}

/* ---- members; false: the body is no JSON, or memory is out ---- */

/* Take a value.  *ret_fault: why the value is no text that passes @check; NULL: *ret is that text.
 * @no_string says what is wrong with a value that is no string. */
static bool read_text(struct body_reader *r, const char *no_string,
    const char *(*check)(struct slice text), struct slice *ret, const char **ret_fault)
{
    struct json_value value;
    r->scan.fault = NULL;
    if (!json_value_read(&r->scan, &value)) {
        return false;
    }
    *ret_fault = value.kind != SCAN_STRING ? no_string
                 : r->scan.fault != NULL   ? r->scan.fault
                                           : check(value.text);
    if (*ret_fault == NULL) {
        *ret = value.text;
    }
    return true;
}

static bool read_site(struct body_reader *r)
{
    const char *fault = NULL;
    if (!read_text(r, "site must be a string", event_check_site, &r->body->site, &fault)) {
        return false;
    }
    if (fault != NULL) {
        refuse(r, "/site", fault);
    }
    return true;
}

static bool read_user(struct body_reader *r)
{
    struct json_value value;
    r->scan.fault = NULL;
    if (!json_value_read(&r->scan, &value)) {
        return false;
    }
    const char *fault =
        r->scan.fault != NULL ? r->scan.fault : json_value_user(&value, &r->body->user);
    if (fault != NULL) {
        refuse(r, "/user", fault);
    }
    return true;
}

static bool read_page(struct body_reader *r)
{
    struct seen_body *body = r->body;
    struct slice page = SLICE("");
    const char *fault = NULL;
    if (!read_text(r, "a page must be a string", event_check_page, &page, &fault)) {
        return false;
    }
    if (fault != NULL) {
        char pointer[sizeof(r->fault->pointer)];
        (void)snprintf(pointer, sizeof(pointer), "/pages/%zu", body->n);
        refuse(r, pointer, fault);
    }
    r->nomem = !array_reserve(&body->pages, &body->capacity, body->n, sizeof(*body->pages));
    if (!r->nomem) {
        body->pages[body->n++] = page;
    }
    return !r->nomem;
}

static bool read_pages(struct body_reader *r)
{
    size_t n = 0;
    if (json_scan_peek(&r->scan) != SCAN_ARRAY) {
        refuse(r, "/pages", PAGES_DETAIL);
        return json_scan_skip(&r->scan);
    }
    enum scan_step step = json_scan_open(&r->scan, ']');
    for (; step == SCAN_ITEM; step = json_scan_next(&r->scan, ']'), n++) {
        if (!(n < SEEN_PAGES_MAX ? read_page(r) : json_scan_skip(&r->scan))) {
            return false;
        }
    }
    if (n == 0 || n > SEEN_PAGES_MAX) {
        refuse(r, "/pages", PAGES_DETAIL);
    }
    return step == SCAN_CLOSED;
}

static bool read_member(struct body_reader *r)
{
    const struct {
        struct slice name;
        const char *pointer;
        bool *read;
        bool (*take)(struct body_reader *r);
    } members[] = {
        {SLICE("site"), "/site", &r->site, read_site},
        {SLICE("user"), "/user", &r->user, read_user},
        {SLICE("pages"), "/pages", &r->pages, read_pages},
    };
    struct slice name;
    if (!json_scan_name(&r->scan, &name)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (!slice_equal(name, members[i].name)) {
            continue;
        }
        if (*members[i].read) {
            refuse(r, members[i].pointer, "a member is given twice");
            return json_scan_skip(&r->scan);
        }
        *members[i].read = true;
        return members[i].take(r);
    }
    refuse(r, "", "the body has a member that is not known: there are site, user and pages");
    return json_scan_skip(&r->scan);
}

/* ---- the body ---- */

static bool read_body(struct body_reader *r)
{
    enum scan_step step;
    if (json_scan_peek(&r->scan) == SCAN_OBJECT) {
        step = json_scan_open(&r->scan, '}');
    } else {
        step = json_scan_skip(&r->scan) ? SCAN_CLOSED : SCAN_FAILED; /* other JSON, or no JSON */
        refuse(r, "", "the body must be an object");
    }
    while (step == SCAN_ITEM && read_member(r)) {
        step = json_scan_next(&r->scan, '}');
    }
    return step == SCAN_CLOSED && json_scan_finish(&r->scan);
}

enum seen_json_result seen_json_decode(
    char *body, size_t n, struct seen_body *ret, struct seen_json_fault *ret_fault)
{
    struct body_reader r = {.body = ret, .fault = ret_fault};
    *ret = (struct seen_body){.n = 0};
    *ret_fault = (struct seen_json_fault){.pointer = ""};
    json_scan_init(&r.scan, body, n, DEPTH_MAX);
    if (!read_body(&r)) {
        json_scan_position(&r.scan, &ret_fault->line, &ret_fault->column);
        ret_fault->detail = r.scan.error;
        return r.nomem ? SEEN_JSON_NOMEM : SEEN_JSON_MALFORMED;
    }
    if (!r.user) {
        refuse(&r, "/user", "user is required");
    }
    if (!r.pages) {
        refuse(&r, "/pages", PAGES_DETAIL);
    }
    return ret_fault->detail == NULL ? SEEN_JSON_OK : SEEN_JSON_UNACCEPTABLE;
}

void seen_body_release(struct seen_body *body)
{
    free(body->pages);
    *body = (struct seen_body){.n = 0};
}
