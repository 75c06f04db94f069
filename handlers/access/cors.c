#include "handlers/access/cors.h"

#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/text/ascii.h"

#define REQUEST_HEADERS                                                                            \
    "Authorization, Content-Encoding, Content-Type, Idempotency-Key, X-Request-Id"
#define ANSWER_HEADERS                                                                             \
    "Idempotency-Replayed, RateLimit, RateLimit-Policy, Retry-After, X-Next-Cursor, "              \
    "X-Request-Id, "                                                                               \
    "X-Tallyd"
#define PREFLIGHT_S "600" /* how long a browser may remember the answer */

static bool is_host_byte(char c)
{
    return (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '.' || c == '-' || c == '_' ||
           c == ':' || c == '[' || c == ']';
}

bool cors_origin_valid(struct slice text)
{
    if (slice_equal(text, SLICE("*"))) {
        return true;
    }
    size_t i = 0;
    while (i < text.n && ((text.p[i] >= 'a' && text.p[i] <= 'z') || text.p[i] == '-')) {
        i++;
    }
    if (i == 0 || text.n - i < 4 || memcmp(text.p + i, "://", 3) != 0) {
        return false;
    }
    for (i += 3; i < text.n; i++) {
        if (!is_host_byte(text.p[i])) {
            return false;
        }
    }
    return true;
}

/* The entry of @app's list that allows @origin; NULL: there is none.  It lives as long as @app. */
static const struct slice *find(const struct app *app, struct slice origin)
{
    for (size_t i = 0; origin.n > 0 && i < app->n_origins; i++) {
        if (slice_equal(app->origins[i], origin) || slice_equal(app->origins[i], SLICE("*"))) {
            return &app->origins[i];
        }
    }
    return NULL;
}

bool cors_on(const struct app *app)
{
    return app != NULL && app->n_origins > 0;
}

void cors_dress(
    const struct app *app, struct slice origin, unsigned flags, struct http_response *response)
{
    static const char name[] = "Access-Control-Allow-Origin";
    if (!cors_on(app)) {
        return;
    }
    reply_header(response, "Vary", "Origin");
    const struct slice *allowed = find(app, origin);
    if (allowed == NULL) {
        return;
    }
    char echo[sizeof(response->headers[0].value)];
    bool fits = origin.n < sizeof(echo);
    if (fits) {
        memcpy(echo, origin.p, origin.n);
        echo[origin.n] = '\0';
    }
    bool all = slice_equal(*allowed, SLICE("*"));
    bool credentials = (flags & ROUTE_BEACON) != 0 && fits;
    if (all && !credentials) {
        reply_header(response, name, "*");
    } else if (!fits || !problem_add_header(response, name, echo)) {
        return;
    }
    if (credentials) {
        reply_header(response, "Access-Control-Allow-Credentials", "true");
    }
    reply_header(response, "Access-Control-Expose-Headers", ANSWER_HEADERS);
}

void cors_preflight(const char *methods, struct http_response *response)
{
    reply_empty(response, 204);
    (void)problem_add_header(response, "Access-Control-Allow-Methods", methods);
    reply_header(response, "Access-Control-Allow-Headers", REQUEST_HEADERS);
    reply_header(response, "Access-Control-Max-Age", PREFLIGHT_S);
}
