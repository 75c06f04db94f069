#include "handlers/ingest/idempotency.h"

#include "handlers/access/access.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"

static bool is_printable(char c)
{
    return c >= 0x20 && c <= 0x7e;
}

/* Read the quoted string @text, which begins with a quote, into *ret_n bytes of @key.  False: it is
 * malformed or too long. */
static bool unquote(struct slice text, char key[IDEMPOTENCY_KEY_MAX], size_t *ret_n)
{
    size_t n = 0;
    size_t i = 1;
    for (; i < text.n && text.p[i] != '"'; i++) {
        if (text.p[i] == '\\' && (++i == text.n || (text.p[i] != '"' && text.p[i] != '\\'))) {
            return false;
        }
        if (n == IDEMPOTENCY_KEY_MAX || !is_printable(text.p[i])) {
            return false;
        }
        key[n++] = text.p[i];
    }
    *ret_n = n;
    return i + 1 == text.n; /* the closing quote is the last character */
}

static bool copy(struct slice text, char key[IDEMPOTENCY_KEY_MAX], size_t *ret_n)
{
    if (text.n > IDEMPOTENCY_KEY_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        if (!is_printable(text.p[i])) {
            return false;
        }
        key[i] = text.p[i];
    }
    *ret_n = text.n;
    return true;
}

enum idempotency_key idempotency_key_read(
    const struct http_request *request, char key[IDEMPOTENCY_KEY_MAX], size_t *ret_n)
{
    struct slice text = request->fields[FIELD_IDEMPOTENCY_KEY];
    size_t n = 0;
    if (text.p == NULL) {
        return IDEMPOTENCY_NONE;
    }
    if ((request->repeated >> FIELD_IDEMPOTENCY_KEY & 1) != 0) {
        return IDEMPOTENCY_MALFORMED;
    }
    text = slice_trim(text, " \t");
    bool ok = text.n > 0 && text.p[0] == '"' ? unquote(text, key, &n) : copy(text, key, &n);
    if (!ok || n == 0) {
        return IDEMPOTENCY_MALFORMED;
    }
    *ret_n = n;
    return IDEMPOTENCY_KEY;
}

struct slice idempotency_owner(const struct http_exchange *exchange)
{
    const struct access *access = exchange->access;
    return access != NULL ? (struct slice){(const char *)access->hash, sizeof(access->hash)}
                          : (struct slice){NULL, 0};
}

bool idempotency_request_key(struct http_exchange *exchange, uint64_t how, bool of_body,
    bool *ret_is_keyed, struct request_key *ret)
{
    const struct http_request *request = &exchange->request;
    char key[IDEMPOTENCY_KEY_MAX];
    size_t n = 0;
    switch (idempotency_key_read(request, key, &n)) {
    case IDEMPOTENCY_NONE:
        if (!of_body) {
            *ret_is_keyed = false;
            return true;
        }
        ret->key = request_key_of_body(idempotency_owner(exchange), how, request->body);
        break;
    case IDEMPOTENCY_MALFORMED:
        problem_reply(&exchange->response, PROBLEM_MALFORMED,
            "Idempotency-Key must be given once: 1 to 128 printable ASCII characters, bare or in "
            "quotes");
        return false;
    case IDEMPOTENCY_KEY:
        if (of_body) {
            return query_refuse(
                exchange, "dedupe", "body makes the key: send no Idempotency-Key beside it");
        }
        ret->key = request_key_digest(idempotency_owner(exchange), (struct slice){key, n});
        break;
    }
    *ret_is_keyed = true;
    ret->body = request_body_digest(how, request->body);
    return true;
}

void idempotency_reply(
    struct http_response *response, unsigned status, const struct request_key *key)
{
    reply_empty(response, 0);
    if (key->outcome == KEY_OTHER_BODY) {
        problem_reply(response, PROBLEM_UNACCEPTABLE,
            "this Idempotency-Key was used with another body, Content-Type or parameters in the "
            "last 24 hours");
        return;
    }
    reply_text(response, status, "application/json", key->replay, key->replay_n);
    if (response->status == status) {
        (void)problem_add_header(response, "Idempotency-Replayed", "true");
    }
}
