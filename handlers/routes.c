#include "handlers/routes.h"

const struct route api_routes[] = {
#define WAITS(method, path, operation, start, finish, flags)                                       \
    {method, path, operation, start, finish, flags},
#define REPLIES(method, path, operation, start, flags)                                             \
    {method, path, operation, start, NULL, flags},
    ENDPOINTS(WAITS, REPLIES)
#undef WAITS
#undef REPLIES
};

const size_t n_api_routes = sizeof(api_routes) / sizeof(api_routes[0]);
