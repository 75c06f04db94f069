#include "storage/cluster/redirect.h"

#include <string.h>

#include "storage/cluster/slot_map.h"

/* Take decimal digits, up to @end, from *text.  -1: there are none, or the number is above @max. */
static int take_number(struct slice *text, int max)
{
    int value = -1;
    while (text->n > 0 && *text->p >= '0' && *text->p <= '9') {
        value = (value < 0 ? 0 : value) * 10 + (*text->p - '0');
        if (value > max) {
            return -1;
        }
        text->p++;
        text->n--;
    }
    return value;
}

static bool take_text(struct slice *text, struct slice wanted)
{
    if (text->n < wanted.n || memcmp(text->p, wanted.p, wanted.n) != 0) {
        return false;
    }
    text->p += wanted.n;
    text->n -= wanted.n;
    return true;
}

/* host:port, split at the last colon */
static bool parse_endpoint(struct slice text, const char *asked_host, struct redis_address *ret)
{
    const char *colon = text.n > 0 ? memrchr(text.p, ':', text.n) : NULL;
    if (colon == NULL) {
        return false;
    }
    struct slice host = {text.p, (size_t)(colon - text.p)};
    struct slice digits = {colon + 1, text.n - host.n - 1};
    ret->port = take_number(&digits, 65535);
    if (ret->port <= 0 || digits.n > 0) {
        return false;
    }
    if (slice_equal(host, SLICE("?"))) {
        ret->host[0] = '\0';
        return true;
    }
    return redis_address_set_host(ret, host.n == 0 ? slice_of(asked_host) : host);
}

enum redirect_kind redirect_parse(struct slice error, const char *asked_host, struct redirect *ret)
{
    struct redirect found = {.slot = 0};
    enum redirect_kind kind = take_text(&error, SLICE("MOVED ")) ? REDIRECT_MOVED
                              : take_text(&error, SLICE("ASK ")) ? REDIRECT_ASK
                                                                 : REDIRECT_NONE;
    if (kind == REDIRECT_NONE) {
        return REDIRECT_NONE;
    }
    int slot = take_number(&error, CLUSTER_SLOTS - 1);
    if (slot < 0 || !take_text(&error, SLICE(" ")) ||
        !parse_endpoint(error, asked_host, &found.address)) {
        return REDIRECT_NONE;
    }
    found.slot = (unsigned)slot;
    *ret = found;
    return kind;
}

bool redirect_is_later(const struct reply *reply)
{
    static const char *const codes[] = {
        "CLUSTERDOWN", "READONLY", "MASTERDOWN", "TRYAGAIN", "LOADING"};
    bool is = false;
    for (size_t i = 0; !is && i < sizeof(codes) / sizeof(codes[0]); i++) {
        is = reply_is_error(reply, codes[i]);
    }
    return is;
}
