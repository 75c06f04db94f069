#include "handlers/limit_reply.h"

#include <stdio.h>
#include <string.h>

#include "handlers/problem.h"
#include "handlers/reply.h"

#define VALUE_SIZE sizeof(((struct http_header *)0)->value)

static long long seconds(int64_t us)
{
    return (long long)limit_seconds(us);
}

static bool has_header(const struct http_response *response, const char *name)
{
    for (unsigned i = 0; i < response->n_headers; i++) {
        if (strcmp(response->headers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool limit_reply_told(const struct http_response *response)
{
    return has_header(response, "RateLimit");
}

void limit_reply_headers(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state)
{
    char value[VALUE_SIZE];
    int n = (int)name.n;
    bool come_again = has_header(response, "Retry-After");
    (void)snprintf(value, sizeof(value), "\"%.*s\";q=%lld;w=%lld", n, name.p,
        (long long)limit_capacity(limit), seconds(limit_window_us(limit)));
    (void)problem_add_header(response, "RateLimit-Policy", value);
    /* The draft: Retry-After must not be earlier than t. */
    bool later = !state->allowed && state->retry_us >= 0;
    int used =
        snprintf(value, sizeof(value), "\"%.*s\";r=%lld", n, name.p, (long long)state->remaining);
    if (!come_again) {
        (void)snprintf(value + used, sizeof(value) - (size_t)used, ";t=%lld",
            seconds(later ? state->retry_us : state->reset_us));
    }
    (void)problem_add_header(response, "RateLimit", value);
    if (later && !come_again) {
        (void)snprintf(value, sizeof(value), "%lld", seconds(state->retry_us));
        (void)problem_add_header(response, "Retry-After", value);
    }
}

void limit_reply_refused(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state)
{
    problem_reply_limited(response, limit_capacity(limit), state);
    limit_reply_headers(response, name, limit, state);
}

void limit_reply(struct http_response *response, struct slice name, const struct limit *limit,
    const struct limit_state *state)
{
    char text[192];
    if (!state->allowed) {
        limit_reply_refused(response, name, limit, state);
        return;
    }
    int n = snprintf(text, sizeof(text),
        "{\"allowed\":true,\"limit\":%lld,\"remaining\":%lld,\"retry_after_s\":0,"
        "\"reset_after_s\":%lld}",
        (long long)limit_capacity(limit), (long long)state->remaining, seconds(state->reset_us));
    reply_text(response, 200, "application/json", text, (size_t)n);
    limit_reply_headers(response, name, limit, state);
}
