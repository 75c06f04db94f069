#include "storage/cluster/redirect.h"

#include <string.h>

#include "storage/base/buffer.h"
#include "storage/cluster/slot_map.h"

static bool take_text(struct slice *text, struct slice wanted)
{
    bool is_there = slice_begins(*text, wanted);
    if (is_there) {
        *text = (struct slice){text->p + wanted.n, text->n - wanted.n};
    }
    return is_there;
}

/* Read "host:port", split at the last colon. */
static bool parse_endpoint(struct slice text, const char *asked_host, struct redis_address *ret)
{
    const char *colon = text.n > 0 ? memrchr(text.p, ':', text.n) : NULL;
    if (colon == NULL) {
        return false;
    }
    struct slice host = {text.p, (size_t)(colon - text.p)};
    int64_t port = decimal_parse((struct slice){colon + 1, text.n - host.n - 1}, 0);
    if (port <= 0 || port > 65535) {
        return false;
    }
    ret->port = (int)port;
    if (slice_equal(host, SLICE("?"))) {
        ret->host[0] = '\0';
        return true;
    }
    return redis_address_set_host(ret, host.n == 0 ? slice_of(asked_host) : host);
}

enum redirect_kind redirect_parse(
    struct slice error, const char *asked_host, struct redis_address *ret)
{
    struct redis_address found;
    uint64_t slot;
    enum redirect_kind kind = take_text(&error, SLICE("MOVED ")) ? REDIRECT_MOVED
                              : take_text(&error, SLICE("ASK ")) ? REDIRECT_ASK
                                                                 : REDIRECT_NONE;
    if (kind == REDIRECT_NONE || !slice_take_number(&error, &slot) || slot >= CLUSTER_SLOTS ||
        !slice_take(&error, ' ') || !parse_endpoint(error, asked_host, &found)) {
        return REDIRECT_NONE;
    }
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
