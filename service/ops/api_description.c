#include "service/ops/api_description.h"

#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/web/embed.h"

/* The build makes openapi.json in its own directory. */
EMBED(openapi_yaml, "openapi.yaml");
EMBED(openapi_json, "openapi.json");

static enum handler_result reply_file(
    struct http_exchange *exchange, const char *content_type, const char *text, const char *end)
{
    if (query_empty(exchange)) {
        reply_static(&exchange->response, 200, content_type, text, (size_t)(end - text));
    }
    return HANDLER_REPLY;
}

static enum handler_result yaml_start(struct http_exchange *exchange)
{
    return reply_file(
        exchange, "application/yaml", text_of_openapi_yaml, end_of_openapi_yaml); /* RFC 9512 */
}

static enum handler_result json_start(struct http_exchange *exchange)
{
    return reply_file(exchange, "application/json", text_of_openapi_json, end_of_openapi_json);
}

const struct route api_description_routes[] = {
    {HTTP_GET, "/openapi.yaml", "getDescriptionAsYaml", yaml_start, NULL, ROUTE_OPEN},
    {HTTP_GET, "/openapi.json", "getDescriptionAsJson", json_start, NULL, ROUTE_OPEN},
};

const size_t n_api_description_routes =
    sizeof(api_description_routes) / sizeof(api_description_routes[0]);
