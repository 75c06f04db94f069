#include "storage/job/request_key.h"

#include <sodium.h>
#include <stdlib.h>
#include <xxhash.h>

_Static_assert(sizeof(XXH128_canonical_t) == sizeof(struct key_digest), "128 bits");

struct key_digest request_key_digest(struct slice owner, struct slice key)
{
    struct key_digest ret;
    crypto_generichash_state state;
    uint64_t n = owner.n;
    /* These functions fail only for sizes out of range, and the sizes are constants. */
    (void)crypto_generichash_init(&state, NULL, 0, sizeof(ret.bytes));
    (void)crypto_generichash_update(&state, (const unsigned char *)&n, sizeof(n));
    if (owner.n > 0) {
        (void)crypto_generichash_update(&state, (const unsigned char *)owner.p, owner.n);
    }
    if (key.n > 0) {
        (void)crypto_generichash_update(&state, (const unsigned char *)key.p, key.n);
    }
    (void)crypto_generichash_final(&state, ret.bytes, sizeof(ret.bytes));
    return ret;
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
