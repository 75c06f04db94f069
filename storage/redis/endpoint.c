#include "storage/redis/endpoint.h"

#include <string.h>

/* The bounds of a URL's members are those of an endpoint's. */
static void endpoint_make(const struct redis_address *address, const struct redis_login *login,
    int db, struct redis_endpoint *ret)
{
    *ret = (struct redis_endpoint){.port = address->port, .db = db};
    if (address->port == 0) {
        memcpy(ret->unix_path, address->host, sizeof(ret->unix_path) - 1);
    } else {
        memcpy(ret->host, address->host, sizeof(ret->host));
    }
    memcpy(ret->user, login->user, sizeof(ret->user));
    memcpy(ret->password, login->password, sizeof(ret->password));
}

void redis_endpoint_of_server(
    const struct redis_url *url, const struct redis_address *address, struct redis_endpoint *ret)
{
    endpoint_make(address, &url->login, url->db, ret);
}

void redis_endpoint_of_sentinel(
    const struct redis_url *url, const struct redis_address *address, struct redis_endpoint *ret)
{
    endpoint_make(address, &url->sentinel, 0, ret);
}

bool redis_endpoint_parse(const char *url, struct redis_endpoint *ret)
{
    struct redis_url parsed;
    if (redis_url_parse(url, &parsed) != NULL || parsed.kind != REDIS_ONE) {
        return false;
    }
    redis_endpoint_of_server(&parsed, &parsed.seeds[0], ret);
    return true;
}
