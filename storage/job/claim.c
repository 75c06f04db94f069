#include "storage/job/claim.h"

#include <sodium.h>
#include <stdlib.h>
#include <xxhash.h>

_Static_assert(sizeof(XXH128_canonical_t) == sizeof(struct claim_digest), "128 bits");

struct claim_digest claim_key(struct slice owner, struct slice key)
{
    struct claim_digest ret;
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

struct claim_digest claim_body(uint64_t how, struct slice body)
{
    struct claim_digest ret;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(
        &canonical, XXH3_128bits_withSeed(body.n == 0 ? "" : body.p, body.n, how));
    memcpy(ret.bytes, canonical.digest, sizeof(ret.bytes));
    return ret;
}

void claim_print(const struct claim_digest *digest, char text[CLAIM_TEXT])
{
    (void)sodium_bin2hex(text, CLAIM_TEXT, digest->bytes, sizeof(digest->bytes));
}

void claim_release(struct claim *claim)
{
    free(claim->replay);
    claim->replay = NULL;
    claim->replay_n = 0;
}
