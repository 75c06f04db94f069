#include "handlers/access/declared_site.h"

#include <stdlib.h>

#include "handlers/text/plain.h"
#include "handlers/text/url.h"

static int compare(const void *name, const void *site)
{
    return slice_compare(*(const struct slice *)name, ((const struct declared_site *)site)->name);
}

const struct declared_site *declared_site_find(
    const struct declared_sites *sites, struct slice name)
{
    return sites->n == 0 ? NULL : bsearch(&name, sites->at, sites->n, sizeof(*sites->at), compare);
}

/* The authority of @url without the default port of http or https. */
static struct slice without_port(const struct url *url)
{
    struct slice authority = url->authority;
    struct slice port = text_equal_nocase(url->scheme, SLICE("https"))  ? SLICE(":443")
                        : text_equal_nocase(url->scheme, SLICE("http")) ? SLICE(":80")
                                                                        : SLICE("");
    if (authority.n > port.n && memcmp(authority.p + authority.n - port.n, port.p, port.n) == 0) {
        authority.n -= port.n;
    }
    return authority;
}

bool declared_site_has_origin(const struct declared_site *site, struct slice origin)
{
    struct url page, own;
    if (!url_split(origin, &page)) {
        return false;
    }
    for (size_t i = 0; i < site->n_origins; i++) {
        if (url_split(site->origins[i], &own) && text_equal_nocase(page.scheme, own.scheme) &&
            text_equal_nocase(without_port(&page), without_port(&own))) {
            return true;
        }
    }
    return false;
}

bool declared_site_takes(const struct app *app, struct slice name)
{
    return !app->only_declared_sites || declared_site_find(&app->sites, name) != NULL;
}
