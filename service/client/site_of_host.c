#include "service/client/site_of_host.h"

#include "handlers/text/ascii.h"
#include "handlers/text/check.h"
#include "service/formats/log_line.h"

bool site_of_host(struct slice host, char *to, struct slice *ret)
{
    struct slice name = log_without_port(host);
    if (name.n > 0 && name.p[name.n - 1] == '.') {
        name.n--;
    }
    if (name.n > EVENT_SITE_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        to[i] = ascii_lower(name.p[i]);
    }
    struct slice site = {to, name.n};
    if (event_check_site(site) != NULL) {
        return false;
    }
    *ret = site;
    return true;
}
