#include "handlers/access/declared_site.h"

#include <stdlib.h>

static int compare(const void *name, const void *site)
{
    return slice_compare(*(const struct slice *)name, ((const struct declared_site *)site)->name);
}

const struct declared_site *declared_site_find(
    const struct declared_sites *sites, struct slice name)
{
    return sites->n == 0 ? NULL : bsearch(&name, sites->at, sites->n, sizeof(*sites->at), compare);
}

bool declared_site_takes(const struct app *app, struct slice name)
{
    return !app->only_declared_sites || declared_site_find(&app->sites, name) != NULL;
}
