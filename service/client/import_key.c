#include "service/client/import_key.h"

#include <endian.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define KEY_BYTES 16

static void digest(const struct import_chain *chain, uint64_t line, unsigned attempt,
    struct slice event, uint8_t *ret, size_t n)
{
    crypto_generichash_state state;
    const uint64_t place[] = {htole64(line), htole64(attempt)};
    /* This fails only for sizes out of range, and these are constants. */
    (void)crypto_generichash_init(&state, NULL, 0, n);
    (void)crypto_generichash_update(&state, chain->bytes, sizeof(chain->bytes));
    (void)crypto_generichash_update(&state, (const unsigned char *)place, sizeof(place));
    if (event.n > 0) {
        (void)crypto_generichash_update(&state, (const unsigned char *)event.p, event.n);
    }
    (void)crypto_generichash_final(&state, ret, n);
}

/* Write "KIND-<32 hex digits>" to @ret. */
static void print_key(const char *kind, const uint8_t bytes[KEY_BYTES], char ret[IMPORT_KEY_TEXT])
{
    char text[2 * KEY_BYTES + 1];
    (void)sodium_bin2hex(text, sizeof(text), bytes, KEY_BYTES);
    (void)snprintf(ret, IMPORT_KEY_TEXT, "%s-%s", kind, text);
}

void import_key(const struct import_chain *chain, uint64_t line, struct slice event,
    unsigned attempt, char ret[IMPORT_KEY_TEXT])
{
    uint8_t bytes[KEY_BYTES];
    digest(chain, line, attempt, event, bytes, sizeof(bytes));
    print_key("import", bytes, ret);
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
    const uint64_t numbers[] = {
        htole64((uint64_t)from), htole64((uint64_t)to), htole64(attempt), 0};
    uint8_t bytes[KEY_BYTES], piece[sizeof(id->bytes) + sizeof(numbers)];
    memcpy(piece, id->bytes, sizeof(id->bytes));
    memcpy(piece + sizeof(id->bytes), numbers, sizeof(numbers));
    /* The first key leaves @attempt out, as older versions did: a piece of theirs may be in
     * doubt. */
    size_t n = attempt == 0 ? sizeof(piece) - 16 : sizeof(piece);
    (void)crypto_generichash(bytes, sizeof(bytes), piece, n, NULL, 0);
    print_key("follow", bytes, ret);
}
