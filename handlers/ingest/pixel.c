/* pixel.c - GET /pixel.gif: a page view by an image, for pages without scripts.
 *
 * Parameters that this endpoint does not know are ignored: pages and mail programs add their own.
 */
#include "handlers/ingest/pixel.h"

#include <stdlib.h>

#include "handlers/access/client.h"
#include "handlers/http/app.h"
#include "handlers/ingest/beacon.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/reply/state.h"
#include "handlers/routes.h"
#include "handlers/text/check.h"
#include "handlers/text/params.h"

/* One transparent pixel: GIF89a, 1 x 1, two colours, a graphic control extension that makes the
 * first colour transparent, and one LZW block with a pixel of that colour. */
static const char gif[] = "GIF89a"
                          "\x01\x00\x01\x00\x80\x00\x00"
                          "\x00\x00\x00\xff\xff\xff"
                          "\x21\xf9\x04\x01\x00\x00\x00\x00"
                          "\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00"
                          "\x02\x02\x44\x01\x00"
                          "\x3b";
#define GIF_SIZE (sizeof(gif) - 1)
_Static_assert(GIF_SIZE == 43, "the smallest transparent GIF has 43 bytes");

static const struct param_spec specs[] = {{"page", false}, {"user", false}, {"site", false},
    {"referrer", false}, {"utm_source", false}, {"utm_medium", false}, {"utm_campaign", false},
    {"utm_term", false}, {"utm_content", false}, {"language", false}};

struct pixel_state {
    struct params params;
    struct beacon beacon;
};

static void release(struct http_exchange *exchange)
{
    struct pixel_state *state = exchange->state;
    params_release(&state->params);
    beacon_release(&state->beacon);
    free(state);
}

static void refuse(
    struct http_exchange *exchange, enum problem problem, const char *parameter, const char *detail)
{
    struct app_stats *stats = exchange->app->stats;
    bool malformed = problem == PROBLEM_MALFORMED;
    problem_reply_parameter(&exchange->response, problem, parameter, "%s", detail);
    app_stats_add(malformed ? &stats->rejected_malformed : &stats->rejected_invalid, 1);
}

/* Read the query.  POST /events rejects an event for text that is not UTF-8, for a NUL, and for a
 * member that is given twice; so the status is 422 here.  A bad escape is like a body that is no
 * JSON: 400. */
static bool read_query(struct http_exchange *exchange, struct params *params)
{
    switch (params_parse_known(exchange->request.query, PARAM_SPECS(specs), params)) {
    case PARAMS_OK:
        return true;
    case PARAMS_REFUSED:
        refuse(exchange, params->error.malformed ? PROBLEM_MALFORMED : PROBLEM_UNACCEPTABLE,
            params->error.parameter, params->error.detail);
        return false;
    case PARAMS_NOMEM:
        break;
    }
    return problem_no_memory(&exchange->response);
}

/* Find the page: the one that the query names, else that of the request which a trusted proxy
 * mirrors here.  The Referer of an image is the page that has the image.  The Referer of a mirrored
 * request is where the visitor came from.  False: there is no page. */
static bool find_page(struct http_exchange *exchange, const struct params *params,
    struct slice *ret_page, struct view_traits *traits)
{
    struct slice referer = exchange->request.fields[FIELD_REFERER];
    if (params_get(params, "page", ret_page)) {
        traits->own = referer;
        return true;
    }
    traits->url = client_mirrored_target(exchange);
    traits->referrer = referer;
    struct slice rest = traits->url;
    *ret_page = slice_until(&rest, '?');
    return ret_page->n > 0;
}

/* Read the event, and where the visitor came from.  The rules are those of POST /events, and so is
 * the 422. */
static bool read_event(
    struct http_exchange *exchange, const struct params *params, struct beacon *beacon)
{
    struct event *event = &beacon->events[0];
    struct view_traits *traits = &beacon->traits;
    const struct {
        const char *name;
        struct slice *to;
        const char *(*check)(struct slice text);
    } texts[] = {
        {"user", &event->user, event_check_user},
        {"site", &event->site, event_check_site},
        {"utm_source", &traits->utm[UTM_SOURCE], event_check_value},
        {"utm_medium", &traits->utm[UTM_MEDIUM], event_check_value},
        {"utm_campaign", &traits->utm[UTM_CAMPAIGN], event_check_value},
        {"utm_term", &traits->utm[UTM_TERM], event_check_value},
        {"utm_content", &traits->utm[UTM_CONTENT], event_check_value},
        {"language", &traits->language, event_check_value},
        {"referrer", &traits->referrer, event_check_referrer},
    };
    const char *name = "page";
    *event = (struct event){.site = EVENT_SITE_DEFAULT};
    const char *fault = find_page(exchange, params, &event->page, traits)
                            ? event_check_page(event->page)
                            : "page is required";
    for (size_t i = 0; fault == NULL && i < sizeof(texts) / sizeof(texts[0]); i++) {
        name = texts[i].name;
        fault = params_get(params, name, texts[i].to) ? texts[i].check(*texts[i].to) : NULL;
    }
    if (fault != NULL) {
        refuse(exchange, PROBLEM_UNACCEPTABLE, name, fault);
    }
    return fault == NULL;
}

#define WORD_FIELD "X-Tallyd"

/* A HEAD is told what a GET would be told, and counts nothing, because HEAD is a safe method (RFC
 * 9110 section 9.2.1). */
enum handler_result pixel_start(struct http_exchange *exchange)
{
    struct pixel_state *state = state_begin(exchange, sizeof(*state), release);
    if (state == NULL || !read_query(exchange, &state->params) ||
        !read_event(exchange, &state->params, &state->beacon)) {
        return HANDLER_REPLY;
    }
    state->beacon.n = 1;
    bool head = exchange->request.head;
    enum beacon_verdict verdict =
        head ? beacon_foretell(exchange, &state->beacon) : beacon_start(exchange, &state->beacon);
    if (verdict == BEACON_WAIT && !head) {
        return HANDLER_WAIT;
    }
    if (verdict != BEACON_REFUSED) {
        reply_empty(&exchange->response, 202);
    }
    if (verdict == BEACON_DROPPED) {
        reply_header(&exchange->response, WORD_FIELD, "dropped");
    }
    return HANDLER_REPLY;
}

void pixel_finish(struct http_exchange *exchange)
{
    struct pixel_state *state = exchange->state;
    if (beacon_finish(exchange, &state->beacon)) {
        reply_empty(&exchange->response, 202);
    }
}

static const char *word_of(unsigned status)
{
    switch (status) {
    case 202:
        return "accepted";
    case 429:
        return "limited";
    case 500:
    case 503:
    case 504:
        return "unavailable";
    default:
        return "rejected";
    }
}

void pixel_dress(struct http_response *response)
{
    reply_static(response, response->status, "image/gif", gif, GIF_SIZE);
    reply_header(response, "Cache-Control", "no-store");
    reply_header(response, "Cross-Origin-Resource-Policy", "cross-origin");
    if (!reply_has_header(response, WORD_FIELD)) {
        reply_header(response, WORD_FIELD, word_of(response->status));
    }
}
