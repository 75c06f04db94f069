#include "handlers/text/plain.h"

#include "handlers/text/ascii.h"

bool text_number(struct slice text, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (!ascii_is_digit(text.p[i]) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.p[i] - '0'), &value)) {
            return false;
        }
    }
    if (text.n == 0 || value > max) {
        return false;
    }
    *ret = value;
    return true;
}

bool text_is_token(struct slice text)
{
    /* A bit is set for each byte that a token may have: 0x00..0x3f, then 0x40..0x7f. */
    static const uint64_t bits[2] = {0x03FF6CFA00000000, 0x57FFFFFFC7FFFFFE};
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c > 0x7f || (bits[c >> 6] >> (c & 63) & 1) == 0) {
            return false;
        }
    }
    return text.n > 0;
}

bool text_is_graphic(struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '!' || text.p[i] > '~') {
            return false;
        }
    }
    return text.n > 0;
}

bool text_is_media_type(struct slice content_type, const char *type)
{
    size_t n = strlen(type);
    if (content_type.n < n || strncasecmp(content_type.p, type, n) != 0) {
        return false;
    }
    return content_type.n == n || content_type.p[n] == ';' || content_type.p[n] == ' ' ||
           content_type.p[n] == '\t';
}
