#include "service/client/import_key.h"

#include <sodium.h>
#include <stdio.h>

static void digest(const struct import_chain *chain, uint64_t line, unsigned attempt,
    struct slice event, uint8_t *ret, size_t n)
{
    crypto_generichash_state state;
    uint8_t place[16];
    for (int i = 0; i < 8; i++) { /* the same on every machine */
        place[i] = (uint8_t)(line >> (8 * i));
        place[8 + i] = (uint8_t)((uint64_t)attempt >> (8 * i));
    }
    /* Fails only for sizes out of range, and these are constants. */
    (void)crypto_generichash_init(&state, NULL, 0, n);
    (void)crypto_generichash_update(&state, chain->bytes, sizeof(chain->bytes));
    (void)crypto_generichash_update(&state, place, sizeof(place));
    if (event.n > 0) {
        (void)crypto_generichash_update(&state, (const unsigned char *)event.p, event.n);
    }
    (void)crypto_generichash_final(&state, ret, n);
}

void import_key(const struct import_chain *chain, uint64_t line, struct slice event,
    unsigned attempt, char ret[IMPORT_KEY_TEXT])
{
    uint8_t bytes[16];
    digest(chain, line, attempt, event, bytes, sizeof(bytes));
    char text[2 * sizeof(bytes) + 1];
    (void)sodium_bin2hex(text, sizeof(text), bytes, sizeof(bytes));
    (void)snprintf(ret, IMPORT_KEY_TEXT, "import-%s", text);
}

void import_chain_add(
    const struct import_chain *chain, uint64_t line, struct slice event, struct import_chain *ret)
{
    struct import_chain next = {0};
    digest(chain, line, 0, event, next.bytes, sizeof(next.bytes));
    *ret = next;
}
