/* json_text.h - the inside of a JSON string.
 *
 * Layer: handlers, below json_scan.h.  Thread-safe.
 *
 * Two kinds of trouble are kept apart.  An error breaks the grammar (RFC 8259: no closing quote, a
 * raw control character, an unknown escape): nobody can tell where the string ends.  A fault leaves
 * the grammar whole but the text unusable (bytes that are no UTF-8, U+0000, half a surrogate pair):
 * the string ends at its quote all the same, and what stands behind it can be read.
 */
#ifndef HANDLERS_TEXT_JSON_TEXT_H
#define HANDLERS_TEXT_JSON_TEXT_H

#include <endian.h>
#include <stdint.h>

#include "storage/base/slice.h"

struct json_text {
    struct slice text; /* without quotes and escapes; of no use after a fault */
    const char *fault; /* static, or NULL */
    const char *error; /* static, or NULL */
};

/* Every byte of a word set to @byte. */
#define JSON_TEXT_BYTES(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The first byte from @p on that is not plain (plain: ASCII but controls, quote and backslash);
 * @end if all are.
 *
 * Eight bytes at a time: a subtraction borrows into the top bit of exactly the bytes that are less
 * than the subtrahend; a byte above such a byte may be marked wrongly, so only the lowest mark
 * counts.  Bytes from 0x80 on are marked by their own top bit. */
static inline char *json_text_plain(char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        word = le64toh(word);
        uint64_t marks = (word ^ JSON_TEXT_BYTES('"')) - JSON_TEXT_BYTES(1);
        marks |= (word ^ JSON_TEXT_BYTES('\\')) - JSON_TEXT_BYTES(1);
        marks |= (word - JSON_TEXT_BYTES(' ')) | word;
        marks &= JSON_TEXT_BYTES(0x80);
        if (marks != 0) {
            return p + __builtin_ctzll(marks) / 8;
        }
    }
    for (; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        if (c < ' ' || c >= 0x80 || c == '"' || c == '\\') {
            break;
        }
    }
    return p;
}

/* Read a string whose first byte (behind the quote) is @start and whose bytes before @stop are
 * known to be plain; the text is unescaped in place.  Returns the byte behind the closing quote, or
 * the one at which the error was seen. */
char *json_text_read(char *start, char *stop, char *end, struct json_text *ret);

#endif
