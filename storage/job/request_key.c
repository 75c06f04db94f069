#include "storage/job/request_key.h"

#include <sodium.h>
#include <stdlib.h>
#include <xxhash.h>

_Static_assert(sizeof(XXH128_canonical_t) == sizeof(struct key_digest), "128 bits");

static void add(crypto_generichash_state *state, const void *bytes, size_t n)
{
    if (n > 0) {
        /* These functions fail only for sizes out of range, and the sizes are constants. */
        (void)crypto_generichash_update(state, bytes, n);
    }
}

/* The digest of @parts, of which each but the last is preceded by its length. */
static struct key_digest digest(const struct slice *parts, size_t n_parts)
{
    struct key_digest ret;
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, NULL, 0, sizeof(ret.bytes));
    for (size_t i = 0; i < n_parts; i++) {
        uint64_t n = parts[i].n;
        if (i + 1 < n_parts) {
            add(&state, &n, sizeof(n));
        }
        add(&state, parts[i].p, parts[i].n);
    }
    (void)crypto_generichash_final(&state, ret.bytes, sizeof(ret.bytes));
    return ret;
}

struct key_digest request_key_digest(struct slice owner, struct slice key)
{
    struct slice parts[] = {owner, key};
    return digest(parts, 2);
}

struct key_digest request_key_of_body(struct slice owner, uint64_t how, struct slice body)
{
    /* A client's key is printable, so it does not begin with the length of @how. */
    struct slice parts[] = {owner, {(const char *)&how, sizeof(how)}, body};
    return digest(parts, 3);
}

struct key_digest request_body_digest(uint64_t how, struct slice body)
{
    struct key_digest ret;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(
        &canonical, XXH3_128bits_withSeed(body.n == 0 ? "" : body.p, body.n, how));
    memcpy(ret.bytes, canonical.digest, sizeof(ret.bytes));
    return ret;
}

void key_digest_print(const struct key_digest *digest, char text[KEY_DIGEST_TEXT])
{
    (void)sodium_bin2hex(text, KEY_DIGEST_TEXT, digest->bytes, sizeof(digest->bytes));
}

void request_key_release(struct request_key *key)
{
    free(key->replay);
    key->replay = NULL;
    key->replay_n = 0;
}
