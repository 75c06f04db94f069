#include "storage/redis/command_words.h"

#include "storage/redis/resp.h"

/* The number behind the sign at *at, which moves behind its line. */
static size_t take_number(struct slice b, size_t *at)
{
    size_t n = 0;
    for ((*at)++; b.p[*at] != '\r'; (*at)++) {
        n = n * 10 + (size_t)(b.p[*at] - '0');
    }
    *at += 2;
    return n;
}

size_t command_words(struct slice commands, struct buffer *out)
{
    size_t n = 0;
    for (size_t at = 0; at < commands.n;) {
        size_t words = take_number(commands, &at);
        resp_decimal(out, (int64_t)words);
        n += 1 + words;
        size_t begin = at;
        for (; words > 0; words--) {
            size_t bytes = take_number(commands, &at);
            at += bytes + 2;
        }
        buffer_append(out, commands.p + begin, at - begin);
    }
    return n;
}
