/* json_text.h - the inside of a JSON string, unescaped and checked.
 *
 * Layer: handlers, pure; below json_scan.h.  Thread-safe.
 *
 * Two kinds of trouble are kept apart.  An error breaks the grammar of RFC 8259: no closing quote,
 * a raw control character, an unknown escape.  It is not known where such a string ends.  A fault
 * leaves the grammar whole, but the text is unusable: bytes that are no UTF-8, U+0000, half a
 * surrogate pair.  Such a string ends at its quote all the same, and what follows can be read.
 */
#ifndef HANDLERS_TEXT_JSON_TEXT_H
#define HANDLERS_TEXT_JSON_TEXT_H

#include <endian.h>
#include <stdint.h>

#include "handlers/text/ascii.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

struct json_text {
    struct slice text; /* without quotes and escapes; unusable after a fault */
    const char *fault; /* why the text is unusable: static, or NULL */
    const char *error; /* why this is no string: static, or NULL */
};

/* Find the first byte from @p on that is not plain; @end if all bytes are.  Plain is ASCII but for
 * C0 controls, the quote and the backslash.
 *
 * Eight bytes are looked at together.  A subtraction borrows into the top bit of each byte that is
 * less than the subtrahend.  The byte above such a byte may be marked wrongly, so only the lowest
 * mark counts.  Bytes from 0x80 on are marked by their own top bit. */
static inline char *json_text_plain(char *p, const char *end)
{
    for (; end - p >= 8; p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        word = le64toh(word);
        uint64_t marks = (word ^ ASCII_WORD('"')) - ASCII_WORD(1);
        marks |= (word ^ ASCII_WORD('\\')) - ASCII_WORD(1);
        marks |= (word - ASCII_WORD(' ')) | word;
        marks &= ASCII_WORD(0x80);
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

/* Read a string and unescape it in place.  @start is its first byte, behind the quote; the bytes
 * before @stop are known to be plain.  Returns the byte behind the closing quote, or the byte at
 * which the error was seen. */
char *json_text_read(char *start, char *stop, char *end, struct json_text *ret) MUST_CHECK;

#endif
