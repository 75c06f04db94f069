#include "service/http/strict.h"

#include <string.h>

#include "handlers/text/ascii.h"
#include "handlers/text/check.h"
#include "handlers/text/plain.h"

/* Is @text a sound field value?  A control character but TAB makes it unsound. */
static bool is_field_value(struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Bytes above 0x7f are let through, because browsers send UTF-8 unescaped.  What decodes the target
 * checks them. */
static bool is_target(struct slice text)
{
    return text.n > 0 && !text_has_control(text) && memchr(text.p, ' ', text.n) == NULL;
}

static bool is_version(struct slice version)
{
    return version.n == 8 && memcmp(version.p, "HTTP/1.", 7) == 0 && ascii_is_digit(version.p[7]);
}

/* How often each field was met that may stand only once. */
struct seen {
    unsigned hosts, lengths, codings;
};

static const char *take_content_length(
    struct slice value, struct seen *seen, struct http_message *message)
{
    if (seen->lengths++ > 0) {
        return "Content-Length stands twice";
    }
    /* A number of 19 digits always fits. */
    bool valid = value.n <= 19 && text_number(value, UINT64_MAX, &message->content_length);
    return valid ? NULL : "Content-Length is not a number";
}

static const char *take_transfer_encoding(
    struct slice value, struct seen *seen, struct http_message *message)
{
    if (seen->codings++ > 0) {
        return "Transfer-Encoding stands twice";
    }
    message->chunked = text_equal_nocase(value, SLICE("chunked"));
    return message->chunked ? NULL : "Transfer-Encoding is not chunked, with nothing behind it";
}

/* Each proxy may add a field of its own, so the last ones are the nearest proxies'. */
static void keep_forwarded(struct slice value, struct http_message *message)
{
    if (message->n_forwarded == HTTP_FORWARDED_MAX) {
        memmove(message->forwarded, message->forwarded + 1,
            (HTTP_FORWARDED_MAX - 1) * sizeof(message->forwarded[0]));
        message->n_forwarded--;
    }
    message->forwarded[message->n_forwarded++] = value;
}

static struct slice kept[HTTP_KNOWN_N] = {
#define X(name, text) [name] = {text, sizeof(text) - 1},
    HTTP_KNOWN_FIELDS(X)
#undef X
};

void http_country_field(struct slice name)
{
    kept[FIELD_COUNTRY] = name;
}

/* Keep the fields that handlers look at. */
static void keep_field(const struct http_field *field, struct http_message *message)
{
    for (unsigned i = 0; i < HTTP_KNOWN_N; i++) {
        if (text_equal_nocase(kept[i], field->name)) {
            if (message->fields[i].p != NULL) {
                message->repeated |= 1u << i;
            } else {
                message->fields[i] = field->value;
            }
            return;
        }
    }
}

/* Note what the service itself needs of a field. */
static const char *take_field(
    const struct http_field *field, struct seen *seen, struct http_message *message)
{
    struct slice name = field->name, value = field->value;
    if (text_equal_nocase(name, SLICE("host"))) {
        seen->hosts++;
    } else if (text_equal_nocase(name, SLICE("expect"))) {
        message->expects_continue = text_equal_nocase(value, SLICE("100-continue"));
    } else if (text_equal_nocase(name, SLICE("x-request-id"))) {
        message->request_id = message->request_id.n == 0 ? value : message->request_id;
    } else if (text_equal_nocase(name, SLICE("x-forwarded-for"))) {
        keep_forwarded(value, message);
    } else if (text_equal_nocase(name, SLICE("content-length"))) {
        return take_content_length(value, seen, message);
    } else if (text_equal_nocase(name, SLICE("content-encoding"))) {
        message->content_encoding = message->content_encoding.n == 0 ? value : SLICE(",");
    } else if (text_equal_nocase(name, SLICE("transfer-encoding"))) {
        return take_transfer_encoding(value, seen, message);
    }
    return NULL;
}

static const char *check_request_line(const struct http_head *head)
{
    if (!text_is_token(head->method)) {
        return "the method is not a token";
    }
    if (!is_target(head->target)) {
        return "the request target holds a blank or a control character";
    }
    if (!is_version(head->version)) {
        return "the version is not HTTP/1.x";
    }
    return NULL;
}

/* The library leaves the blanks behind a value, though they are no part of the value (RFC 9110
 * section 5.5).  This function cuts them off.  But fields that frame the message are judged as the
 * library read them.  To the library a Content-Length with blanks is a fault, and `chunked ` is no
 * chunked body, so both must be so here too. */
static struct http_field without_blanks(const struct http_field *field)
{
    struct http_field out = *field;
    if (text_equal_nocase(out.name, SLICE("transfer-encoding")) ||
        text_equal_nocase(out.name, SLICE("content-length"))) {
        return out;
    }
    out.value = slice_trim(out.value, " \t");
    return out;
}

const char *http_strict_check(const struct http_head *head, struct http_message *ret)
{
    struct seen seen = {0};
    struct http_message message = {0};
    const char *fault = check_request_line(head);
    for (size_t i = 0; fault == NULL && i < head->n_fields; i++) {
        const struct http_field *field = &head->fields[i];
        if (!text_is_token(field->name)) {
            fault = "a header name is not a token";
        } else if (!is_field_value(field->value)) {
            fault = "a header value holds a control character";
        } else {
            struct http_field clean = without_blanks(field);
            fault = take_field(&clean, &seen, &message);
            keep_field(&clean, &message);
        }
    }
    if (fault != NULL) {
        return fault;
    }
    bool http_1_0 = head->version.p[7] == '0';
    if (seen.lengths > 0 && seen.codings > 0) {
        return "Content-Length stands beside Transfer-Encoding";
    }
    if (http_1_0 && seen.codings > 0) {
        return "Transfer-Encoding stands in an HTTP/1.0 request";
    }
    if (seen.hosts > 1) {
        return "Host stands twice";
    }
    if (!http_1_0 && seen.hosts == 0) {
        return "Host is missing";
    }
    *ret = message;
    return NULL;
}

const char *http_strict_layout(const struct http_head *head)
{
    static const char fault[] = "the head holds a NUL, a folded line, a bare LF, or more than one "
                                "blank in its request line";
    /* These are offsets, because pointers into different blocks must not be compared. */
    const uintptr_t start = (uintptr_t)head->method.p;
    uintptr_t at = start + head->method.n + 1;
    if ((uintptr_t)head->target.p != at) {
        return fault;
    }
    at += head->target.n + 1;
    if ((uintptr_t)head->version.p != at) {
        return fault;
    }
    at += head->version.n + 2;
    for (size_t i = 0; i < head->n_fields; i++) {
        const struct http_field *field = &head->fields[i];
        if ((uintptr_t)field->name.p != at) {
            return fault;
        }
        at += field->name.n + 1;
        /* The library skips blanks behind the colon, and nothing else. */
        if ((uintptr_t)field->value.p < at || (uintptr_t)field->value.p - start > head->size) {
            return fault;
        }
        at = (uintptr_t)field->value.p + field->value.n + 2;
    }
    return at + 2 - start == head->size ? NULL : fault;
}

/* The length of "http://authority" or "https://authority" in front of @target, 0 if it has none. */
static size_t authority_n(struct slice target)
{
    size_t scheme = 0;
    if (target.n >= 7 && text_equal_nocase((struct slice){target.p, 7}, SLICE("http://"))) {
        scheme = 7;
    } else if (target.n >= 8 && text_equal_nocase((struct slice){target.p, 8}, SLICE("https://"))) {
        scheme = 8;
    }
    if (scheme == 0) {
        return 0;
    }
    size_t n = scheme;
    while (n < target.n && target.p[n] != '/' && target.p[n] != '?') {
        n++;
    }
    return n;
}

void http_target_split(struct slice target, struct slice *ret_path, struct slice *ret_query)
{
    size_t skip = authority_n(target);
    struct slice query = {target.p + skip, target.n - skip};
    struct slice path = query;
    if (!slice_take_until(&query, '?', &path)) {
        query = (struct slice){0};
    }
    if (skip > 0 && path.n == 0) {
        path = SLICE("/");
    }
    *ret_path = path;
    *ret_query = query;
}

struct slice http_request_id(const struct http_head *head)
{
    for (size_t i = 0; i < head->n_fields; i++) {
        if (text_equal_nocase(head->fields[i].name, SLICE("x-request-id"))) {
            return without_blanks(&head->fields[i]).value;
        }
    }
    return (struct slice){0};
}

bool http_request_id_valid(struct slice id)
{
    return id.n <= HTTP_ID_MAX && text_is_graphic(id);
}
