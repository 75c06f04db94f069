#include "service/client/import_key.h"

#include <sodium.h>
#include <stdio.h>

static void digest(const struct import_chain *chain, uint64_t from, uint64_t to, struct slice body,
    uint8_t *ret, size_t n)
{
    crypto_generichash_state state;
    uint8_t lines[16];
    for (int i = 0; i < 8; i++) { /* the same on every machine */
        lines[i] = (uint8_t)(from >> (8 * i));
        lines[8 + i] = (uint8_t)(to >> (8 * i));
    }
    /* Fails only for sizes out of range, and these are constants. */
    (void)crypto_generichash_init(&state, NULL, 0, n);
    (void)crypto_generichash_update(&state, chain->bytes, sizeof(chain->bytes));
    (void)crypto_generichash_update(&state, lines, sizeof(lines));
    if (body.n > 0) {
        (void)crypto_generichash_update(&state, (const unsigned char *)body.p, body.n);
    }
    (void)crypto_generichash_final(&state, ret, n);
}

void import_key(const struct import_chain *chain, uint64_t from, uint64_t to, struct slice body,
    char ret[IMPORT_KEY_TEXT])
{
    uint8_t bytes[16];
    digest(chain, from, to, body, bytes, sizeof(bytes));
    char text[2 * sizeof(bytes) + 1];
    (void)sodium_bin2hex(text, sizeof(text), bytes, sizeof(bytes));
    (void)snprintf(ret, IMPORT_KEY_TEXT, "import-%s", text);
}

void import_chain_add(struct import_chain *chain, uint64_t from, uint64_t to, struct slice body)
{
    struct import_chain next = {0};
    digest(chain, from, to, body, next.bytes, sizeof(next.bytes));
    *chain = next;
}
