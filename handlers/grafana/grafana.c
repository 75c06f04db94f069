/* grafana.c - /grafana/..: what Grafana's JSON data sources ask for.
 *
 * Two plugins of Grafana are served: simpod-json-datasource 0.6 (GET /, POST /metrics,
 * /metric-payload-options, /query, /variable, /tag-keys, /tag-values), and the older
 * grafana-simple-json-datasource (POST /search, /annotations).  A third plugin, Infinity, asks the
 * plain API or POST /query.
 *
 * All paths are found with and without a slash at the end.  A body may be application/json or
 * text/plain.  Query parameters and members that mean nothing here are ignored.  A panel shows the
 * `message` of a problem.
 *
 * This file has the answers that are always the same; series.c and lists.c have the others. */
#include "handlers/routes.h"

#include "handlers/grafana/query.h"
#include "handlers/reply/reply.h"

static enum handler_result reply_to_body(struct http_exchange *exchange, json_t *answer)
{
    json_t *body = grafana_body(exchange);
    if (body == NULL) {
        json_decref(answer);
    } else {
        reply_json(&exchange->response, 200, answer);
    }
    json_decref(body);
    return HANDLER_REPLY;
}

enum handler_result grafana_test_start(struct http_exchange *exchange)
{
    reply_json(&exchange->response, 200, json_pack("{s:s}", "status", "pass"));
    return HANDLER_REPLY;
}

static json_t *step_options(enum grafana_metric metric)
{
    json_t *options = json_pack("[{s:s,s:s},{s:s,s:s}]", "label", "as fine as the panel", "value",
        step_name(STEP_AUTO), "label", "one figure for the window", "value", "window");
    for (enum step step = STEP_MINUTE; metric != GRAFANA_DAU && step < STEP_AUTO; step++) {
        json_array_append_new(
            options, json_pack("{s:s,s:s}", "label", step_name(step), "value", step_name(step)));
    }
    return options;
}

/* The fields that the editor of a query shows beside the metric.  Grafana asks for the options of
 * site and page later. */
static json_t *payloads(enum grafana_metric metric)
{
    json_t *list = json_pack("[{s:s,s:s,s:s,s:b}]", "name", "site", "label", "Site", "type",
        "select", "reloadMetric", 1);
    if (metric == GRAFANA_BREAKDOWN) {
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s}", "name", "by", "label", "By",
                                        "type", "input", "placeholder", "source"));
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s}", "name", "limit", "label", "Rows",
                                        "type", "input", "placeholder", "10"));
        return list;
    }
    if (metric == GRAFANA_DAU) {
        json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s}", "name", "action", "label",
                                        "Action", "type", "input", "placeholder", "active"));
    } else if (!grafana_metric_of_sites(metric)) {
        json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "name", "page", "label",
                                        "Pages (none: all)", "type", "multi-select"));
    }
    json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:o}", "name", "step", "label", "Step",
                                    "type", "select", "options", step_options(metric)));
    return list;
}

enum handler_result grafana_metrics_start(struct http_exchange *exchange)
{
    json_t *list = json_array();
    for (int metric = 0; metric < GRAFANA_METRICS; metric++) {
        enum grafana_metric which = (enum grafana_metric)metric;
        if (grafana_metric_is_counted(exchange->app, which)) {
            json_array_append_new(
                list, json_pack("{s:s,s:s,s:o}", "label", grafana_metric_label(which), "value",
                          grafana_metric_name(which), "payloads", payloads(which)));
        }
    }
    return reply_to_body(exchange, list);
}

/* Answer an empty list: tallyd has no annotations. */
enum handler_result grafana_annotations_start(struct http_exchange *exchange)
{
    return reply_to_body(exchange, json_array());
}

enum handler_result grafana_tag_keys_start(struct http_exchange *exchange)
{
    return reply_to_body(exchange, json_pack("[{s:s,s:s},{s:s,s:s}]", "type", "string", "text",
                                       "page", "type", "string", "text", "site"));
}
