#include "handlers/dimension/derive.h"

#include <stdint.h>
#include <strings.h>

#include "handlers/access/declared_site.h"
#include "handlers/dimension/agent.h"
#include "handlers/dimension/geo.h"
#include "handlers/dimension/language.h"
#include "handlers/dimension/page_rules.h"
#include "handlers/dimension/source.h"
#include "handlers/text/url.h"
#include "storage/job/counted_name.h"

/* The page view that values are found for. */
struct view {
    const struct app *app;
    const struct declared_site *site; /* NULL: no line of the configuration names the site */
    const struct dimension_plan *plan;
    const struct view_traits *traits;
    const struct event *event;
    struct slice url; /* the page's, with its query */
    struct arena *arena;
    struct slice found[DIMENSION_N]; /* the value of each dimension; empty: none */
    struct event_value *values;      /* n of them, in the arena */
    size_t n;
};

const struct dimension_plan *derive_plan(const struct app *app, struct slice site)
{
    const struct declared_site *declared = declared_site_find(&app->sites, site);
    return declared != NULL ? &declared->plan : &app->plan;
}

static bool wants(const struct view *v, enum dimension dimension)
{
    return (v->plan->counted >> dimension & 1) != 0;
}

/* ---- the source ---- */

/* Is @host the host of @url? */
static bool is_host_of(struct slice url, struct slice host)
{
    char room[SOURCE_HOST_MAX];
    struct slice own;
    return source_host(url, room, &own) && slice_equal(own, host);
}

/* Is @host one of the site's own hosts?  Then the visitor was on the site already. */
static bool is_own(const struct view *v, struct slice host)
{
    if (slice_equal(source_without_www(v->event->site), host) || is_host_of(v->url, host) ||
        is_host_of(v->traits->own, host)) {
        return true;
    }
    for (size_t i = 0; v->site != NULL && i < v->site->n_origins; i++) {
        if (is_host_of(v->site->origins[i], host)) {
            return true;
        }
    }
    return false;
}

/* Is @host, or what it has behind a dot, on the list of hosts that are no source? */
static bool is_denied(const struct app *app, struct slice host)
{
    for (size_t i = 0; i < app->n_denied_sources; i++) {
        struct slice denied = app->denied_sources[i];
        size_t head = host.n - denied.n;
        if (host.n >= denied.n && strncasecmp(host.p + head, denied.p, denied.n) == 0 &&
            (head == 0 || host.p[head - 1] == '.')) {
            return true;
        }
    }
    return false;
}

/* Find the source: utm_source, else the host of the referrer.  False: out of memory. */
static bool find_source(struct view *v)
{
    struct slice *source = &v->found[DIMENSION_SOURCE];
    struct slice host;
    *source = v->found[DIMENSION_UTM_SOURCE];
    if (source->n > 0 || v->traits->referrer.n == 0) {
        return true;
    }
    char *room = arena_alloc(v->arena,
        v->traits->referrer.n < SOURCE_HOST_MAX ? v->traits->referrer.n : SOURCE_HOST_MAX);
    if (room == NULL) {
        return false;
    }
    if (source_host(v->traits->referrer, room, &host) && !is_own(v, host) &&
        !is_denied(v->app, host)) {
        *source = source_name(host);
    }
    return true;
}

/* Find the values of the five utm_ parameters.  False: out of memory. */
static bool find_campaign(struct view *v)
{
    struct slice utm[UTM_N];
    memcpy(utm, v->traits->utm, sizeof(utm));
    if (campaign_has(v->url)) {
        char *room = arena_alloc(v->arena, v->url.n);
        if (room == NULL) {
            return false;
        }
        campaign_read(v->url, room, utm);
    }
    for (unsigned i = 0; i < UTM_N; i++) {
        bool denied = i == UTM_SOURCE && is_denied(v->app, utm[i]);
        v->found[DIMENSION_UTM_SOURCE + i] = denied ? SLICE("") : utm[i];
    }
    return true;
}

/* ---- the others ---- */

static void find_agent(struct view *v)
{
    if (v->event->agent.n > 0) {
        struct agent_parts parts = agent_read(v->event->agent);
        v->found[DIMENSION_BROWSER] = parts.browser;
        v->found[DIMENSION_OS] = parts.os;
        v->found[DIMENSION_DEVICE] = parts.device;
    }
}

/* Find the country: the one that was sent, else that of the address.  False: out of memory. */
static bool find_country(struct view *v)
{
    if (v->traits->country.n > 0) {
        char *room = arena_alloc(v->arena, COUNTRY_SIZE);
        if (room == NULL || country_read(v->traits->country, room, &v->found[DIMENSION_COUNTRY])) {
            return room != NULL;
        }
    }
    if (v->app->geo != NULL && v->event->address.len > 0) {
        v->found[DIMENSION_COUNTRY] = geo_country(v->app->geo, &v->event->address);
    }
    return true;
}

/* Find the language.  False: out of memory. */
static bool find_language(struct view *v)
{
    if (v->traits->language.n == 0) {
        return true;
    }
    char *room = arena_alloc(v->arena, LANGUAGE_MAX);
    if (room != NULL) {
        (void)!language_read(v->traits->language, room, &v->found[DIMENSION_LANGUAGE]);
    }
    return room != NULL;
}

/* Find the values of all dimensions that are counted, but of properties.  False: out of memory. */
static bool find_all(struct view *v)
{
    const unsigned campaign = 1u << DIMENSION_SOURCE | 1u << DIMENSION_UTM_SOURCE |
                              1u << DIMENSION_UTM_MEDIUM | 1u << DIMENSION_UTM_CAMPAIGN |
                              1u << DIMENSION_UTM_TERM | 1u << DIMENSION_UTM_CONTENT;
    const unsigned agent = 1u << DIMENSION_BROWSER | 1u << DIMENSION_OS | 1u << DIMENSION_DEVICE;
    if ((v->plan->counted & agent) != 0) {
        find_agent(v);
    }
    return ((v->plan->counted & campaign) == 0 || find_campaign(v)) &&
           (!wants(v, DIMENSION_SOURCE) || find_source(v)) &&
           (!wants(v, DIMENSION_COUNTRY) || find_country(v)) &&
           (!wants(v, DIMENSION_LANGUAGE) || find_language(v));
}

/* ---- values ---- */

static void add(struct view *v, unsigned dimension, struct slice text, bool with_visitors)
{
    v->values[v->n++] = (struct event_value){text, (uint8_t)dimension, with_visitors};
}

static struct slice prop_value(const struct view_traits *traits, struct slice name)
{
    for (size_t i = 0; i < traits->n_props; i++) {
        if (slice_equal(traits->props[i].name, name) && traits->props[i].value.n > 0) {
            return traits->props[i].value;
        }
    }
    return DIMENSION_NONE;
}

/* Add the value of the property @name, as the text `name=value`.  False: out of memory. */
static bool add_prop(struct view *v, struct slice name)
{
    struct slice value = prop_value(v->traits, name);
    char *text = arena_alloc(v->arena, name.n + 1 + value.n);
    if (text == NULL) {
        return false;
    }
    memcpy(text, name.p, name.n);
    text[name.n] = '=';
    memcpy(text + name.n + 1, value.p, value.n);
    add(v, DIMENSION_PROP, (struct slice){text, name.n + 1 + value.n}, false);
    return true;
}

/* Make v->values of what was found, of the properties and of the sections.  False: out of memory.
 */
static bool add_values(struct view *v, const struct slice *sections, size_t n_sections)
{
    size_t most = (size_t)__builtin_popcount(v->plan->counted) + v->plan->n_props + n_sections;
    v->values = arena_alloc(v->arena, most * sizeof(*v->values) + 1);
    if (v->values == NULL) {
        return false;
    }
    for (unsigned d = 0; d < DIMENSION_PROP; d++) {
        if (wants(v, (enum dimension)d)) {
            add(v, d, v->found[d].n > 0 ? v->found[d] : DIMENSION_NONE,
                (v->plan->with_visitors >> d & 1) != 0);
        }
    }
    for (size_t i = 0; i < v->plan->n_props; i++) {
        if (!add_prop(v, v->plan->props[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < n_sections; i++) {
        add(v, DIMENSION_N, sections[i], true);
    }
    return true;
}

bool derive_view(const struct app *app, const struct view_traits *traits, struct event *event,
    struct arena *arena)
{
    struct slice sections[DIMENSION_SECTIONS_MAX];
    if (event->page.n == 0 || event_name_is(event->page)) {
        return true;
    }
    const struct declared_site *site = declared_site_find(&app->sites, event->site);
    struct view v = {.app = app,
        .site = site,
        .plan = site != NULL ? &site->plan : &app->plan,
        .traits = traits,
        .event = event,
        .url = traits->url.n > 0 ? traits->url : event->page,
        .arena = arena};
    if (!find_all(&v)) {
        return false;
    }
    struct slice page = page_rules_apply(app, event->page);
    if (!add_values(&v, sections, page_sections_of(app, page, sections))) {
        return false;
    }
    event->page = page;
    event->values = v.n > 0 ? v.values : NULL;
    event->n_values = (uint8_t)v.n;
    return true;
}
