#include "service/live.h"

#include <stdlib.h>
#include <string.h>

#include "handlers/dimension/page_rules.h"
#include "service/options/dimension_option.h"
#include "service/options/entries.h"
#include "service/options/limit_option.h"
#include "service/options/list_option.h"
#include "service/options/option_table.h"

struct live {
    const struct options *options;
    struct options own; /* zeroed if the options are the caller's */
    struct app app;
    struct limit_policy *policies;
    struct slice *policy_names;
    struct network *trusted;
    struct slice *origins;
    struct network *ignored;
    struct declared_site *sites; /* n_sites, each with origins of its own */
    size_t n_sites;
    struct slice *props; /* DIMENSION_PROPS_MAX a site: names of properties */
    struct slice *denied_sources;
    struct page_rule *page_rules;
    struct page_section *sections;
    struct live *older;
};

bool live_guard(const struct options *options, enum guard_by *ret_by, struct limit *ret_limit)
{
    enum limit_part part;
    *ret_by = GUARD_OFF;
    *ret_limit = (struct limit){0};
    if (options->ingest_limit[0] == '\0' ||
        limit_option_rate(options->ingest_limit, ret_limit) != NULL) {
        return true;
    }
    /* The words of --ingest-limit-by are the values behind GUARD_OFF, in the same order. */
    *ret_by = (enum guard_by)(GUARD_TOKEN + (int)options->ingest_limit_by);
    ret_limit->burst = options->ingest_burst;
    return limit_check(ret_limit, &part) == NULL;
}

/* The file's lines `policy.<name> = ..`, which were checked when the file was read. */
static bool make_policies(struct live *live)
{
    const struct options *o = live->options;
    size_t n = 0;
    live->policies = calloc(o->n_entries + 1, sizeof(*live->policies));
    live->policy_names = calloc(o->n_entries + 1, sizeof(*live->policy_names));
    if (live->policies == NULL || live->policy_names == NULL) {
        return false;
    }
    for (size_t i = 0; i < o->n_entries; i++) {
        const struct option_entry *entry = &o->entries[i];
        if (entry->family == &option_families[OPTION_FAMILY_POLICY] &&
            limit_option_policy(entry->value, &live->policies[n]) == NULL) {
            live->policies[n].name = live->policy_names[n] = slice_of(entry->name);
            n++;
        }
    }
    live->app.policies = live->policies;
    live->app.policy_names = live->policy_names; /* the last name stays empty */
    live->app.n_policies = n;
    return true;
}

/* The trusted proxies and the other origins; both texts were checked. */
static bool make_lists(struct live *live)
{
    struct app *app = &live->app;
    live->trusted = list_option_networks(live->options->trusted_proxies, &app->n_trusted);
    live->origins = list_option_texts(live->options->cors_origins, &app->n_origins);
    live->ignored = list_option_networks(live->options->ignore_ip, &app->n_ignored);
    app->trusted = live->trusted;
    app->origins = live->origins;
    app->ignored = live->ignored;
    live->denied_sources = list_option_texts(live->options->deny_sources, &app->n_denied_sources);
    app->denied_sources = live->denied_sources;
    return live->trusted != NULL && live->origins != NULL && live->ignored != NULL &&
           live->denied_sources != NULL;
}

static int by_name(const void *a, const void *b)
{
    return slice_compare(
        ((const struct declared_site *)a)->name, ((const struct declared_site *)b)->name);
}

/* Make one site of all neighbours that have the same name.  At most one of them has origins. */
static void join_sites(struct live *live)
{
    size_t last = 0;
    for (size_t i = 1; i < live->n_sites; i++) {
        struct declared_site *site = &live->sites[i], *before = &live->sites[last];
        if (!slice_equal(site->name, before->name)) {
            live->sites[++last] = *site;
        } else if (site->origins != NULL) {
            before->origins = site->origins;
            before->n_origins = site->n_origins;
        }
    }
    live->n_sites = live->n_sites == 0 ? 0 : last + 1;
}

/* The sites that the file's lines `site.<name>. ..` name.  The lines were checked when the file was
 * read. */
static bool make_sites(struct live *live)
{
    const struct options *o = live->options;
    live->sites = calloc(o->n_entries + 1, sizeof(*live->sites));
    for (size_t i = 0; live->sites != NULL && i < o->n_entries; i++) {
        const struct option_entry *entry = &o->entries[i];
        if (strcmp(entry->family->before, OPTION_SITE) != 0) {
            continue;
        }
        struct declared_site *site = &live->sites[live->n_sites++];
        site->name = slice_of(entry->name);
        if (entry->family == &option_families[OPTION_FAMILY_SITE_ORIGINS]) {
            site->origins = list_option_texts(entry->value, &site->n_origins);
            if (site->origins == NULL) {
                return false;
            }
            live->app.sites.any_origins = true;
        }
    }
    if (live->sites == NULL) {
        return false;
    }
    qsort(live->sites, live->n_sites, sizeof(*live->sites), by_name);
    join_sites(live);
    live->app.sites.at = live->sites;
    live->app.sites.n = live->n_sites;
    live->app.only_declared_sites = o->only_declared_sites != 0;
    return true;
}

/* ---- dimensions ---- */

/* Read a list of dimensions that was checked. */
static uint16_t bits_of(const char *text)
{
    uint16_t bits;
    return dimension_option_parse(text, &bits) == NULL ? bits : 0;
}

/* Change the plan of a site as a line of the file says.  @props is the site's room for names. */
static void change_plan(
    const struct option_entry *entry, struct dimension_plan *plan, struct slice *props)
{
    if (entry->family == &option_families[OPTION_FAMILY_SITE_DIMENSIONS]) {
        plan->counted = bits_of(entry->value);
    } else if (entry->family == &option_families[OPTION_FAMILY_SITE_VISITORS_BY]) {
        plan->with_visitors = bits_of(entry->value);
    } else if (entry->family == &option_families[OPTION_FAMILY_SITE_PROPS]) {
        struct slice rest = list_option_begin(entry->value);
        plan->props = props;
        while (list_option_take(&rest, &props[plan->n_props])) {
            plan->n_props++;
        }
    }
}

/* The site that the file's line is about; NULL: none.  The sites are in order. */
static struct declared_site *site_of(const struct live *live, const struct option_entry *entry)
{
    struct declared_site wanted = {.name = slice_of(entry->name)};
    return strcmp(entry->family->before, OPTION_SITE) != 0
               ? NULL
               : bsearch(&wanted, live->sites, live->n_sites, sizeof(*live->sites), by_name);
}

/* The plans of all sites.  Comes after make_sites(). */
static bool make_plans(struct live *live)
{
    const struct options *o = live->options;
    live->app.plan = (struct dimension_plan){
        .counted = bits_of(o->dimensions), .with_visitors = bits_of(o->visitors_by)};
    live->props = calloc(live->n_sites + 1, DIMENSION_PROPS_MAX * sizeof(*live->props));
    if (live->props == NULL) {
        return false;
    }
    for (size_t i = 0; i < live->n_sites; i++) {
        live->sites[i].plan = live->app.plan;
    }
    for (size_t i = 0; i < o->n_entries; i++) {
        const struct option_entry *entry = &o->entries[i];
        struct declared_site *site = site_of(live, entry);
        if (site != NULL) {
            change_plan(
                entry, &site->plan, &live->props[(site - live->sites) * DIMENSION_PROPS_MAX]);
        }
    }
    return true;
}

/* The file's lines `page.<number> = ..`, in the order of their numbers, and `section.<name> =
 * ..`. */
static bool make_pages(struct live *live)
{
    const struct options *o = live->options;
    struct app *app = &live->app;
    live->page_rules = calloc(PAGE_RULES_MAX, sizeof(*live->page_rules));
    live->sections = calloc(o->n_entries + 1, sizeof(*live->sections));
    if (live->page_rules == NULL || live->sections == NULL) {
        return false;
    }
    for (unsigned number = 1; number <= PAGE_RULES_MAX; number++) {
        for (size_t i = 0; i < o->n_entries; i++) {
            const struct option_entry *entry = &o->entries[i];
            if (entry->family == &option_families[OPTION_FAMILY_PAGE] &&
                page_rule_number(slice_of(entry->name)) == number &&
                page_rule_parse(slice_of(entry->value), &live->page_rules[app->n_page_rules]) ==
                    NULL) {
                app->n_page_rules++;
            }
        }
    }
    for (size_t i = 0; i < o->n_entries; i++) {
        const struct option_entry *entry = &o->entries[i];
        if (entry->family == &option_families[OPTION_FAMILY_SECTION]) {
            live->sections[app->n_sections++] =
                (struct page_section){slice_of(entry->name), slice_of(entry->value)};
        }
    }
    app->page_rules = live->page_rules;
    app->sections = live->sections;
    return true;
}

static void free_one(struct live *live)
{
    free(live->props);
    free(live->denied_sources);
    free(live->page_rules);
    free(live->sections);
    free(live->policies);
    free(live->policy_names);
    free(live->trusted);
    free(live->origins);
    free(live->ignored);
    for (size_t i = 0; live->sites != NULL && i < live->n_sites; i++) {
        free(live->sites[i].origins);
    }
    free(live->sites);
    options_release(&live->own);
    free(live);
}

struct live *live_new(const struct app *base, const struct options *options, struct live *older)
{
    struct live *live = calloc(1, sizeof(*live));
    if (live == NULL) {
        return NULL;
    }
    enum guard_by by;
    struct limit limit;
    live->options = options;
    live->app = *base;
    live->app.max_future_s = options->max_future_s;
    live->app.respect_dnt = options->respect_dnt;
    live->app.drop_robots = options->bots != 0;
    if (base->guard_by != GUARD_OFF && live_guard(options, &by, &limit) && by != GUARD_OFF) {
        live->app.guard_limit = limit;
    }
    if (!make_policies(live) || !make_lists(live) || !make_sites(live) || !make_plans(live) ||
        !make_pages(live)) {
        free_one(live);
        return NULL;
    }
    live->older = older;
    return live;
}

struct live *live_take(const struct app *base, struct options *options, struct live *older)
{
    struct live *live = live_new(base, options, older);
    if (live != NULL) {
        live->own = *options; /* the texts stay at their addresses */
        live->options = &live->own;
        memset(options, 0, sizeof(*options));
    }
    return live;
}

void live_free(struct live *live)
{
    while (live != NULL) {
        struct live *older = live->older;
        free_one(live);
        live = older;
    }
}

const struct app *live_app(const struct live *live)
{
    return &live->app;
}

const struct options *live_options(const struct live *live)
{
    return live->options;
}

/* ---- differences ---- */

static bool same(const struct options *a, const struct options *b, size_t option)
{
    return strcmp(a->origins[option].text, b->origins[option].text) == 0;
}

/* The entry of @options with the name of @entry; NULL: there is none. */
static const struct option_entry *find_entry(
    const struct options *options, const struct option_entry *entry)
{
    return entries_find(options, entry->family, slice_of(entry->name));
}

/* Has @options such an entry, with the same value? */
static bool has_entry(const struct options *options, const struct option_entry *entry)
{
    const struct option_entry *other = find_entry(options, entry);
    return other != NULL && strcmp(other->value, entry->value) == 0;
}

static bool is_live(const struct option_entry *entry)
{
    return entry->family != &option_families[OPTION_FAMILY_SITE_TZ];
}

/* Has @a a live entry that @b lacks, or has with another value? */
static bool lacks_entry(const struct options *a, const struct options *b)
{
    for (size_t i = 0; i < a->n_entries; i++) {
        if (is_live(&a->entries[i]) && !has_entry(b, &a->entries[i])) {
            return true;
        }
    }
    return false;
}

bool live_differ(const struct options *before, const struct options *after)
{
    for (size_t i = 0; i < option_table_n; i++) {
        if (option_table[i].live && !same(before, after, i)) {
            return true;
        }
    }
    return lacks_entry(before, after) || lacks_entry(after, before);
}

static void tell_entry(
    const struct option_entry *entry, void (*tell)(void *, const char *), void *data)
{
    char name[256];
    (void)snprintf(
        name, sizeof(name), "%s%s%s", entry->family->before, entry->name, entry->family->after);
    tell(data, name);
}

void live_tell_rest(const struct options *before, const struct options *after,
    void (*tell)(void *data, const char *name), void *data)
{
    bool was = before->ingest_limit[0] != '\0', is = after->ingest_limit[0] != '\0';
    for (size_t i = 0; i < option_table_n; i++) {
        bool fixed = !option_table[i].live;
        if (strcmp(option_table[i].name, "ingest-limit") == 0 && was != is) {
            fixed = true; /* a guard is switched on or off at a start only; its limit is live */
        }
        if (fixed && !same(before, after, i)) {
            tell(data, option_table[i].name);
        }
    }
    for (size_t i = 0; i < after->n_entries; i++) {
        if (!is_live(&after->entries[i]) && !has_entry(before, &after->entries[i])) {
            tell_entry(&after->entries[i], tell, data);
        }
    }
    for (size_t i = 0; i < before->n_entries; i++) {
        if (!is_live(&before->entries[i]) && find_entry(after, &before->entries[i]) == NULL) {
            tell_entry(&before->entries[i], tell, data);
        }
    }
}
