#include "handlers/dimension/language.h"

#include "handlers/text/ascii.h"

/* May @c stand behind the first part of a language tag? */
static bool ends_tag(char c)
{
    return c == '-' || c == '_' || c == ',' || c == ';' || c == ' ';
}

bool language_read(struct slice text, char *to, struct slice *ret)
{
    size_t at = 0;
    size_t n = 0;
    while (at < text.n && text.p[at] == ' ') {
        at++;
    }
    while (at + n < text.n && ascii_is_letter(text.p[at + n])) {
        if (n == LANGUAGE_MAX) {
            return false;
        }
        to[n] = ascii_lower(text.p[at + n]);
        n++;
    }
    if (n < 2 || (at + n < text.n && !ends_tag(text.p[at + n]))) {
        return false;
    }
    *ret = (struct slice){to, n};
    return true;
}

bool country_read(struct slice text, char *to, struct slice *ret)
{
    if (text.n != COUNTRY_SIZE || !ascii_is_letter(text.p[0]) || !ascii_is_letter(text.p[1])) {
        return false;
    }
    to[0] = (char)(text.p[0] & ~0x20);
    to[1] = (char)(text.p[1] & ~0x20);
    *ret = (struct slice){to, COUNTRY_SIZE};
    return true;
}
