#include "service/client/import_key.h"

#include <sodium.h>
#include <stdio.h>

/* Put two numbers as bytes, least significant byte first on every machine. */
static void put_numbers(uint64_t a, uint64_t b, uint8_t ret[16])
{
    for (int i = 0; i < 8; i++) {
        ret[i] = (uint8_t)(a >> (8 * i));
        ret[8 + i] = (uint8_t)(b >> (8 * i));
    }
}

static void digest(const struct import_chain *chain, uint64_t line, unsigned attempt,
    struct slice event, uint8_t *ret, size_t n)
{
    crypto_generichash_state state;
    uint8_t place[16];
    put_numbers(line, attempt, place);
    /* This fails only for sizes out of range, and these are constants. */
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

void import_piece_key(const struct import_file_id *id, int64_t from, int64_t to, unsigned attempt,
    char ret[IMPORT_KEY_TEXT])
{
    uint8_t bytes[16], piece[sizeof(id->bytes) + 32];
    memcpy(piece, id->bytes, sizeof(id->bytes));
    put_numbers((uint64_t)from, (uint64_t)to, piece + sizeof(id->bytes));
    put_numbers(attempt, 0, piece + sizeof(id->bytes) + 16);
    /* The first key leaves @attempt out, as older versions did: a piece of theirs may be in
     * doubt. */
    size_t n = attempt == 0 ? sizeof(piece) - 16 : sizeof(piece);
    (void)crypto_generichash(bytes, sizeof(bytes), piece, n, NULL, 0);
    char text[2 * sizeof(bytes) + 1];
    (void)sodium_bin2hex(text, sizeof(text), bytes, sizeof(bytes));
    (void)snprintf(ret, IMPORT_KEY_TEXT, "follow-%s", text);
}
