/* ascii.h - classes of ASCII characters, whatever the locale is.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_TEXT_ASCII_H
#define HANDLERS_TEXT_ASCII_H

#include <stdbool.h>
#include <stdint.h>

/* A word of eight bytes, each of which is @byte. */
#define ASCII_WORD(byte) (UINT64_C(0x0101010101010101) * (byte))

static inline bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool ascii_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool ascii_is_alnum(char c)
{
    return ascii_is_letter(c) || ascii_is_digit(c);
}

static inline char ascii_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

#endif
