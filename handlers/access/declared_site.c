#include "handlers/access/declared_site.h"

#include <stdlib.h>
#include <strings.h>

static int compare(const void *name, const void *site)
{
    return slice_compare(*(const struct slice *)name, ((const struct declared_site *)site)->name);
}

const struct declared_site *declared_site_find(
    const struct declared_sites *sites, struct slice name)
{
    return sites->n == 0 ? NULL : bsearch(&name, sites->at, sites->n, sizeof(*sites->at), compare);
}

/* The scheme, and the authority without the scheme's own port, of @url.  False: it has none. */
static bool split(struct slice url, struct slice *ret_scheme, struct slice *ret_authority)
{
    const char *mark = url.n >= 3 ? memmem(url.p, url.n, "://", 3) : NULL;
    if (mark == NULL) {
        return false;
    }
    struct slice scheme = {url.p, (size_t)(mark - url.p)};
    struct slice rest = {mark + 3, url.n - scheme.n - 3};
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#') {
        n++;
    }
    struct slice port = slice_equal(scheme, SLICE("https"))  ? SLICE(":443")
                        : slice_equal(scheme, SLICE("http")) ? SLICE(":80")
                                                             : SLICE("");
    if (n > port.n && memcmp(rest.p + n - port.n, port.p, port.n) == 0) {
        n -= port.n;
    }
    *ret_scheme = scheme;
    *ret_authority = (struct slice){rest.p, n};
    return true;
}

static bool same(struct slice a, struct slice b)
{
    return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

bool declared_site_has_origin(const struct declared_site *site, struct slice origin)
{
    struct slice scheme, authority, own_scheme, own_authority;
    if (!split(origin, &scheme, &authority)) {
        return false;
    }
    for (size_t i = 0; i < site->n_origins; i++) {
        if (split(site->origins[i], &own_scheme, &own_authority) && same(scheme, own_scheme) &&
            same(authority, own_authority)) {
            return true;
        }
    }
    return false;
}

bool declared_site_takes(const struct app *app, struct slice name)
{
    return !app->only_declared_sites || declared_site_find(&app->sites, name) != NULL;
}
