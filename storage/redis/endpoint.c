#include "storage/redis/endpoint.h"

struct redis_endpoint redis_endpoint_of_server(
    const struct redis_url *url, const struct redis_address *address)
{
    return (struct redis_endpoint){.address = *address, .login = url->login, .db = url->db};
}

struct redis_endpoint redis_endpoint_of_sentinel(
    const struct redis_url *url, const struct redis_address *address)
{
    return (struct redis_endpoint){.address = *address, .login = url->sentinel};
}

bool redis_endpoint_parse(const char *url, struct redis_endpoint *ret)
{
    struct redis_url parsed;
    if (redis_url_parse(url, &parsed) != NULL || parsed.kind != REDIS_ONE) {
        return false;
    }
    *ret = redis_endpoint_of_server(&parsed, &parsed.seeds[0]);
    return true;
}
