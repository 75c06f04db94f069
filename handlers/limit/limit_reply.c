#include "handlers/limit/limit_reply.h"

#include <string.h>

#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "storage/base/buffer.h"

#define VALUE_SIZE sizeof(((struct http_header *)0)->value)

/* A text of bounded size, put together without printf; what does not fit is cut off.  Ten thousand
 * answers about limits are made a second, and six formats were a tenth of what an answer costs. */
struct line {
    char text[192];
    size_t n;
};

static void add_slice(struct line *line, struct slice slice)
{
    size_t room = sizeof(line->text) - 1 - line->n;
    size_t n = slice.n < room ? slice.n : room;
    if (n > 0) {
        memcpy(line->text + line->n, slice.p, n);
    }
    line->n += n;
    line->text[line->n] = '\0';
}

static void add_number(struct line *line, const char *before, int64_t value)
{
    char digits[24];
    add_slice(line, slice_of(before));
    add_slice(line, (struct slice){digits, decimal_print(value, digits)});
}

static void begin_item(struct line *line, struct slice name)
{
    line->n = 0;
    add_slice(line, SLICE("\""));
    add_slice(line, name);
    add_slice(line, SLICE("\""));
}

static void add_header(struct http_response *response, const char *name, struct line *line)
{
    line->text[VALUE_SIZE - 1] = '\0';
    (void)problem_add_header(response, name, line->text);
}

bool limit_reply_told(const struct http_response *response)
{
    return reply_has_header(response, "RateLimit");
}

void limit_reply_headers(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state)
{
    struct line line;
    bool come_again = reply_has_header(response, "Retry-After");
    begin_item(&line, name);
    add_number(&line, ";q=", limit_capacity(limit));
    add_number(&line, ";w=", limit_seconds(limit_window_us(limit)));
    add_header(response, "RateLimit-Policy", &line);
    /* The draft says that Retry-After must not be earlier than t. */
    bool later = !state->allowed && state->retry_us >= 0;
    begin_item(&line, name);
    add_number(&line, ";r=", state->remaining);
    if (!come_again) {
        add_number(&line, ";t=", limit_seconds(later ? state->retry_us : state->reset_us));
    }
    add_header(response, "RateLimit", &line);
    if (later && !come_again) {
        line.n = 0;
        add_number(&line, "", limit_seconds(state->retry_us));
        add_header(response, "Retry-After", &line);
    }
}

void limit_reply_refused(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state, const char *limited_by)
{
    problem_reply_limited(response, limit_capacity(limit), state, limited_by);
    limit_reply_headers(response, name, limit, state);
}

void limit_reply_allowed(struct http_response *response, struct slice name,
    const struct limit *limit, const struct limit_state *state)
{
    struct line line = {.n = 0};
    add_number(&line, "{\"allowed\":true,\"limit\":", limit_capacity(limit));
    add_number(&line, ",\"remaining\":", state->remaining);
    add_number(&line, ",\"retry_after_s\":0,\"reset_after_s\":", limit_seconds(state->reset_us));
    add_slice(&line, SLICE("}"));
    reply_text(response, 200, "application/json", line.text, line.n);
    limit_reply_headers(response, name, limit, state);
}
