#include "handlers/reply/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/reply/json_memory.h"
#include "handlers/text/ascii.h"
#include "handlers/text/utf8.h"

static const struct {
    unsigned status;
    const char *title;
    int retry_after_s;
} problems[] = {
#define X(name, status, title, retry_after_s) [name] = {status, title, retry_after_s},
    PROBLEMS(X)
#undef X
};

unsigned problem_status(enum problem problem)
{
    return problems[problem].status;
}

const char *problem_phrase(unsigned status)
{
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        if (problems[i].status == status) {
            return problems[i].title;
        }
    }
    return NULL;
}

/* @text as a JSON string.  Clients' bytes may be in the text; bytes that are not UTF-8 must not
 * cost the answer. */
static json_t *text_value(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL) {
        return value;
    }
    char *ascii = strdup(text);
    if (ascii == NULL) {
        return NULL;
    }
    for (char *p = ascii; *p != '\0'; p++) {
        if ((unsigned char)*p >= 0x80) {
            *p = '?';
        }
    }
    value = json_string(ascii);
    free(ascii);
    return value;
}

/* Format at most PROBLEM_DETAIL_MAX bytes, never half a character. */
static void format_detail(char out[static PROBLEM_DETAIL_MAX + 1], const char *format, va_list args)
{
    char text[PROBLEM_DETAIL_MAX + 2] = ""; /* one byte more shows whether a character is cut */
    (void)vsnprintf(text, sizeof(text), format, args);
    size_t n = utf8_fit(slice_of(text), PROBLEM_DETAIL_MAX);
    memcpy(out, text, n);
    out[n] = '\0';
}

/* The document as text, which the caller owns; NULL if memory is out.  The reference to @errors is
 * taken over. */
static char *document(enum problem problem, const char *detail, json_t *errors)
{
    json_t *text = text_value(detail);
    /* "O" takes a new reference to text, and fails on NULL. */
    json_t *root = text == NULL
                       ? NULL
                       : json_pack("{s:s, s:s, s:i, s:O, s:O}", "type", "about:blank", "title",
                             problems[problem].title, "status", (int)problems[problem].status,
                             "detail", text, "message", text);
    json_decref(text);
    bool whole = root != NULL;
    if (whole && errors != NULL) {
        whole = json_object_set(root, "errors", errors) == 0;
    }
    bool before = json_memory_failed(); /* this failure may be what the document is about */
    json_memory_begin(false);
    char *body = whole ? json_dumps(root, JSON_COMPACT) : NULL;
    if (json_memory_failed()) { /* then jansson has printed a member without its name */
        free(body);
        body = NULL;
    }
    json_memory_begin(before || body == NULL);
    json_decref(errors);
    json_decref(root);
    return body;
}

bool problem_add_header(struct http_response *response, const char *static_name, const char *value)
{
    size_t n = strlen(value) + 1;
    if (response->n_headers == HTTP_HEADERS_MAX || n > sizeof(response->headers[0].value)) {
        return false;
    }
    struct http_header *header = &response->headers[response->n_headers++];
    header->name = static_name;
    memcpy(header->value, value, n);
    return true;
}

/* Make @text the body; the block is taken over.  NULL: memory is out, and the body is empty. */
static void set_body(struct http_response *response, enum problem problem, char *text)
{
    free(response->body);
    response->static_body = NULL;
    response->status = problems[problem].status;
    response->content_type = "application/problem+json";
    response->body = text;
    response->body_n = text != NULL ? strlen(text) : 0;
}

static void reply(
    struct http_response *response, enum problem problem, json_t *errors, const char *detail)
{
    set_body(response, problem, document(problem, detail, errors));
    if (problems[problem].retry_after_s >= 0) {
        char value[16];
        (void)snprintf(value, sizeof(value), "%d", problems[problem].retry_after_s);
        (void)problem_add_header(response, "Retry-After", value); /* an advice: it may be missing */
    }
}

static bool is_name_byte(char c)
{
    return ascii_is_alnum(c) || c == '_' || c == '-';
}

/* Does @text begin with the word @name? */
static bool begins_with(const char *text, const char *name)
{
    size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && (n == 0 || !is_name_byte(text[n]));
}

__attribute__((format(printf, 2, 3))) static void print_detail(
    char out[static PROBLEM_DETAIL_MAX + 1], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    format_detail(out, format, args);
    va_end(args);
}

void problem_reply_parameter(struct http_response *response, enum problem problem,
    const char *parameter, const char *detail_format, ...)
{
    char detail[PROBLEM_DETAIL_MAX + 1], whole[PROBLEM_DETAIL_MAX + 1];
    va_list args;
    va_start(args, detail_format);
    format_detail(detail, detail_format, args);
    va_end(args);
    json_t *errors =
        json_pack("[{s:o, s:o}]", "parameter", text_value(parameter), "detail", text_value(detail));
    bool named = begins_with(detail, parameter);
    print_detail(whole, "%s%s%s", named ? "" : parameter, named ? "" : ": ", detail);
    reply(response, problem, errors, whole);
}

void problem_reply_errors(struct http_response *response, enum problem problem, json_t *errors,
    const char *detail_format, ...)
{
    char detail[PROBLEM_DETAIL_MAX + 1];
    va_list args;
    va_start(args, detail_format);
    format_detail(detail, detail_format, args);
    va_end(args);
    reply(response, problem, errors, detail);
}

void problem_reply_limited(struct http_response *response, int64_t capacity,
    const struct limit_state *state, const char *limited_by)
{
    long long retry_s = (long long)limit_seconds(state->retry_us);
    char detail[96];
    char text[768];
    if (retry_s < 0) {
        (void)snprintf(detail, sizeof(detail), "more than the limit ever lets pass at once");
    } else {
        (void)snprintf(detail, sizeof(detail), "%s; try again in %lld s",
            state->penalised ? "refused too often" : "over the limit", retry_s);
    }
    (void)snprintf(text, sizeof(text),
        "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u,\"detail\":\"%s\","
        "\"message\":\"%s\",\"allowed\":false,\"limit\":%lld,\"remaining\":%lld,"
        "\"retry_after_s\":%lld,\"reset_after_s\":%lld%s%s%s}",
        problems[PROBLEM_LIMITED].title, problems[PROBLEM_LIMITED].status, detail, detail,
        (long long)capacity, (long long)state->remaining, retry_s,
        (long long)limit_seconds(state->reset_us), limited_by != NULL ? ",\"limited_by\":\"" : "",
        limited_by != NULL ? limited_by : "", limited_by != NULL ? "\"" : "");
    set_body(response, PROBLEM_LIMITED, strdup(text));
}

/* The problem for an error of storage.  The switch has no default, so that the compiler complains
 * about an error that has no place here. */
static enum problem storage_problem(enum storage_err err)
{
    switch (err) {
    case STORAGE_FULL:
    case STORAGE_DOWN:
    case STORAGE_LATE:
    case STORAGE_REFUSED:
    case STORAGE_OOM:
    case STORAGE_DISK:
    case STORAGE_ALONE:
    case STORAGE_CONFIG:
    case STORAGE_FOREIGN:
    case STORAGE_STATE_LOST:
    case STORAGE_DELETING:
    case STORAGE_BEHIND:
    case STORAGE_LAGGING:
    case STORAGE_SHUTDOWN:
    case STORAGE_NOMEM:
        return PROBLEM_UNAVAILABLE;
    case STORAGE_LIMITED:
        return PROBLEM_LIMITED;
    case STORAGE_UNKNOWN:
        return PROBLEM_UNKNOWN_OUTCOME;
    case STORAGE_NOT_KEPT:
    case STORAGE_TOO_BROAD:
    case STORAGE_TOO_FINE:
    case STORAGE_TOO_MANY:
        return PROBLEM_UNACCEPTABLE;
    case STORAGE_NO_SET:
        return PROBLEM_NOT_FOUND;
    case STORAGE_OK:
        break;
    }
    return PROBLEM_INTERNAL;
}

void problem_from_storage(struct http_response *response, enum storage_err err, const char *detail)
{
    bool own = detail == NULL || detail[0] == '\0';
    problem_reply(response, storage_problem(err), "%s", own ? storage_err_text(err) : detail);
}

bool problem_no_memory(struct http_response *response)
{
    problem_from_storage(response, STORAGE_NOMEM, NULL);
    return false;
}
