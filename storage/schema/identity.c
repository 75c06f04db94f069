#include "storage/schema/identity.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "storage/time/units.h"

_Static_assert(crypto_shorthash_siphashx24_BYTES == sizeof(struct visitor_id), "128 bits");
_Static_assert(crypto_shorthash_siphash24_BYTES == sizeof(struct address_id), "64 bits");
_Static_assert(crypto_shorthash_siphashx24_KEYBYTES * 2 == SECRET_SIZE, "two keys");

uint64_t identity_data_set(const struct secret *secret)
{
    uint8_t digest[crypto_generichash_BYTES_MIN];
    uint64_t id = 0;
    (void)crypto_generichash(digest, sizeof(digest), secret->bytes, sizeof(secret->bytes), NULL, 0);
    for (size_t i = 0; i < sizeof(id); i++) {
        id = id << 8 | digest[i];
    }
    return id;
}

int64_t rotation_start_s(enum rotation rotation, int64_t at_s)
{
    int64_t day = at_s / DAY_S;
    switch (rotation) {
    case ROTATE_NEVER:
        return 0;
    case ROTATE_DAY:
        return day * DAY_S;
    case ROTATE_WEEK:
        return (day - (day + 3) % 7) * DAY_S; /* 1970-01-01 was a Thursday; weeks begin on Monday */
    case ROTATE_MONTH:
        return bucket_at(zone_utc(), LEVEL_MONTH, at_s).start_s;
    }
    return 0;
}

int64_t rotation_end_s(enum rotation rotation, int64_t start_s)
{
    switch (rotation) {
    case ROTATE_NEVER:
        return INT64_MAX;
    case ROTATE_DAY:
        return start_s + DAY_S;
    case ROTATE_WEEK:
        return start_s + 7 * DAY_S;
    case ROTATE_MONTH:
        return bucket_at(zone_utc(), LEVEL_MONTH, start_s).end_s;
    }
    return INT64_MAX;
}

static size_t append_bytes(uint8_t *text, size_t at, const void *p, size_t n)
{
    if (n > 0) {
        memcpy(text + at, p, n);
    }
    return at + n;
}

static int by_start(const void *key, const void *item)
{
    int64_t start_s = *(const int64_t *)key;
    const struct period_secret *period = item;
    return (start_s > period->start_s) - (start_s < period->start_s);
}

/* The secret for addresses of the period that begins at @start_s; NULL: @keys has none. */
static const struct secret *secret_of_addresses(const struct identity_keys *keys, int64_t start_s)
{
    if (keys->rotation == ROTATE_NEVER) {
        return keys->secret;
    }
    const struct period_secret *period =
        keys->n_periods == 0
            ? NULL
            : bsearch(&start_s, keys->periods, keys->n_periods, sizeof(*keys->periods), by_start);
    return period == NULL ? NULL : &period->secret;
}

bool identity_visitor(
    const struct identity_keys *keys, const struct event *event, struct visitor_id *ret)
{
    const struct secret *secret = keys->secret;
    uint8_t text[1 + EVENT_SITE_MAX + 1 + 32 + EVENT_TEXT_MAX];
    size_t n = 1;
    n = append_bytes(text, n, event->site.p, event->site.n);
    text[n++] = 0;
    if (event->visitor.n > 0) {
        text[0] = 'v';
        n = append_bytes(text, n, event->visitor.p, event->visitor.n);
    } else if (event->user.n > 0) {
        text[0] = 'u';
        n = append_bytes(text, n, event->user.p, event->user.n);
    } else if (event->address.len > 0) {
        int64_t period = rotation_start_s(keys->rotation, event->at_s);
        secret = secret_of_addresses(keys, period);
        text[0] = 'a';
        text[n++] = event->address.len;
        n = append_bytes(text, n, event->address.bytes, event->address.len);
        n = append_bytes(text, n, &period, sizeof(period));
        text[n++] = 0;
        n = append_bytes(text, n, event->agent.p, event->agent.n);
    } else {
        return false;
    }
    if (secret == NULL) {
        return false;
    }
    crypto_shorthash_siphashx24(ret->bytes, text, n, secret->bytes);
    return true;
}

void identity_user(
    const struct secret *secret, struct slice site, struct slice user, struct visitor_id *ret)
{
    const struct identity_keys keys = {.secret = secret};
    const struct event event = {.site = site, .user = user};
    (void)!identity_visitor(&keys, &event, ret); /* an event with a user has a visitor */
}

uint64_t identity_name(const struct secret *secret, struct slice name)
{
    uint8_t text[1 + EVENT_PAGE_MAX];
    uint64_t hash;
    text[0] = 0; /* unlike the text of an address, which begins with a site */
    size_t n = append_bytes(text, 1, name.p, name.n);
    crypto_shorthash_siphash24((unsigned char *)&hash, text, n, secret->bytes + SECRET_SIZE / 2);
    return hash;
}

bool identity_address(
    const struct identity_keys *keys, const struct event *event, struct address_id *ret)
{
    if (event->address.len == 0) {
        return false;
    }
    const struct secret *secret =
        secret_of_addresses(keys, rotation_start_s(keys->rotation, event->at_s));
    if (secret == NULL) {
        return false;
    }
    uint8_t text[EVENT_SITE_MAX + 1 + 16];
    size_t n = append_bytes(text, 0, event->site.p, event->site.n);
    text[n++] = 0;
    n = append_bytes(text, n, event->address.bytes, event->address.len);
    crypto_shorthash_siphash24(ret->bytes, text, n, secret->bytes + SECRET_SIZE / 2);
    return true;
}
