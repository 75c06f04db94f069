#include "handlers/dimension/campaign.h"

#include "handlers/text/check.h"
#include "handlers/text/url.h"
#include "handlers/text/utf8.h"
#include "storage/job/dimension.h"

#define HEAD SLICE("utm_")

static const char *const names[UTM_N] = {
    [UTM_SOURCE] = "utm_source",
    [UTM_MEDIUM] = "utm_medium",
    [UTM_CAMPAIGN] = "utm_campaign",
    [UTM_TERM] = "utm_term",
    [UTM_CONTENT] = "utm_content",
};

struct slice utm_name(enum utm which)
{
    return slice_of(names[which]);
}

enum utm utm_find(struct slice name)
{
    for (unsigned i = 0; i < UTM_N; i++) {
        if (slice_equal(name, slice_of(names[i]))) {
            return (enum utm)i;
        }
    }
    return UTM_N;
}

/* The query of @page: what stands between '?' and '#'. */
static struct slice query_of(struct slice page)
{
    struct slice path;
    if (!slice_take_until(&page, '?', &path) || memchr(path.p, '#', path.n) != NULL) {
        return (struct slice){NULL, 0};
    }
    return slice_until(&page, '#');
}

bool campaign_has(struct slice page)
{
    struct slice query = query_of(page);
    return query.n > 0 && memmem(query.p, query.n, HEAD.p, HEAD.n) != NULL;
}

/* Read one parameter, `name=value`.  Returns where the next value may be decoded to. */
static char *read_pair(struct slice pair, char *to, struct slice utm[UTM_N])
{
    struct slice name;
    if (!slice_take_until(&pair, '=', &name)) {
        return to;
    }
    enum utm which = utm_find(name);
    if (which == UTM_N || utm[which].n > 0) {
        return to;
    }
    struct slice value = {to, url_unescape(pair, true, to)};
    if (value.n == 0 || text_has_control(value) || !utf8_valid(value)) {
        return to;
    }
    utm[which] = (struct slice){value.p, utf8_fit(value, DIMENSION_VALUE_MAX)};
    return to + value.n;
}

void campaign_read(struct slice page, char *to, struct slice utm[UTM_N])
{
    struct slice rest = query_of(page);
    while (rest.n > 0) {
        to = read_pair(slice_until(&rest, '&'), to, utm);
    }
}
