#include "handlers/filter/filter_body.h"

#include <stdio.h>
#include <stdlib.h>

#include "handlers/reply/json_object.h"
#include "handlers/reply/problem.h"
#include "storage/job/filter_job.h"

void filter_items_release(struct filter_items *items)
{
    json_decref(items->root);
    free(items->items);
    free(items->numbers);
    *items = (struct filter_items){0};
}

/* ---- parameters ---- */

static bool read_capacity(struct http_exchange *exchange, json_t *root, struct filter_job *job)
{
    json_t *value = json_object_get(root, "capacity");
    if (value == NULL) {
        return true;
    }
    json_int_t capacity = json_integer_value(value);
    if (!json_is_integer(value) || capacity < 1 || (uint64_t)capacity > BLOOM_CAPACITY_MAX) {
        return json_object_refuse(
            exchange, "/capacity", "capacity must be an integer from 1 to 1073741824");
    }
    job->capacity = (uint64_t)capacity;
    return true;
}

static bool read_error_rate(struct http_exchange *exchange, json_t *root, struct filter_job *job)
{
    json_t *value = json_object_get(root, "error_rate");
    if (value == NULL) {
        return true;
    }
    double rate = json_number_value(value);
    if (!json_is_number(value) || !(rate > 0) || rate > BLOOM_ERROR_MAX) {
        return json_object_refuse(
            exchange, "/error_rate", "error_rate must be a number above 0, at most 0.25");
    }
    if (rate < BLOOM_ERROR_MIN) {
        return json_object_refuse(exchange, "/error_rate",
            "error_rate must be at least 1e-15: hashes of 64 bits cannot keep less");
    }
    job->error = rate;
    return true;
}

static bool read_expansion(struct http_exchange *exchange, json_t *root, struct filter_job *job)
{
    json_t *value = json_object_get(root, "expansion");
    if (value == NULL) {
        return true;
    }
    json_int_t expansion = json_integer_value(value);
    if (!json_is_integer(value) || (expansion != 0 && expansion != BLOOM_EXPANSION)) {
        return json_object_refuse(exchange, "/expansion",
            "expansion must be 2 (grows: each layer twice the last) or 0 (does not grow)");
    }
    job->expansion = (unsigned)expansion;
    return true;
}

bool filter_body_parameters(struct http_exchange *exchange, struct filter_job *job)
{
    static const char *const names[] = {"capacity", "error_rate", "expansion"};
    json_t *root = json_object_body(exchange);
    bool ok = root != NULL && json_object_only(exchange, root, names, 3) &&
              read_capacity(exchange, root, job) && read_error_rate(exchange, root, job) &&
              read_expansion(exchange, root, job);
    json_decref(root);
    return ok;
}

/* ---- items ---- */

static bool read_item(struct http_exchange *exchange, struct filter_items *items, size_t i)
{
    const json_t *value = json_array_get(json_object_get(items->root, "items"), i);
    const char *fault = "an item must be a string or an integer of 64 bits";
    if (json_is_string(value)) {
        items->items[i] = json_text_of(value);
        fault = items->items[i].n == 0 ? "an item must not be empty" : NULL;
    } else if (json_is_integer(value)) {
        int n = snprintf(items->numbers[i], sizeof(items->numbers[i]), "%" JSON_INTEGER_FORMAT,
            json_integer_value(value));
        items->items[i] = (struct slice){items->numbers[i], (size_t)n};
        fault = NULL;
    }
    if (fault != NULL) {
        char pointer[32];
        (void)snprintf(pointer, sizeof(pointer), "/items/%zu", i);
        return json_object_refuse(exchange, pointer, fault);
    }
    return true;
}

static bool read_items(struct http_exchange *exchange, struct filter_items *items)
{
    static const char *const names[] = {"items"};
    json_t *array = json_object_get(items->root, "items");
    if (!json_object_only(exchange, items->root, names, 1)) {
        return false;
    }
    if (!json_is_array(array) || json_array_size(array) == 0 ||
        json_array_size(array) > FILTER_ITEMS_MAX) {
        return json_object_refuse(exchange, "/items", "items must be an array of 1 to 1000 items");
    }
    items->n = json_array_size(array);
    items->items = calloc(items->n, sizeof(*items->items));
    items->numbers = calloc(items->n, sizeof(*items->numbers));
    if (items->items == NULL || items->numbers == NULL) {
        return problem_no_memory(&exchange->response);
    }
    for (size_t i = 0; i < items->n; i++) {
        if (!read_item(exchange, items, i)) {
            return false;
        }
    }
    return true;
}

bool filter_body_items(struct http_exchange *exchange, struct filter_items *ret)
{
    ret->root = json_object_body(exchange);
    return ret->root != NULL && read_items(exchange, ret);
}
