#include "handlers/client.h"

#include "handlers/event_check.h"

struct event_address client_address(const struct http_request *request)
{
    struct event_address address = {0};
    (void)event_parse_address(request->peer, &address); /* untouched if it is none */
    return address;
}
