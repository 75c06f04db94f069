#include "storage/redis/command_words.h"

#include "storage/redis/resp.h"

/* Take the next line, which is a sign and a number, and return the number. */
static size_t take_number(struct slice *rest)
{
    struct slice line = {NULL, 0};
    uint64_t n = 0;
    if (slice_take_until(rest, '\r', &line)) {
        line = (struct slice){line.p + 1, line.n - 1};
        (void)slice_take(rest, '\n');
        (void)slice_take_number(&line, &n);
    }
    return (size_t)n;
}

size_t command_words(struct slice commands, struct buffer *out)
{
    size_t n = 0;
    while (commands.n > 0) {
        size_t words = take_number(&commands);
        resp_decimal(out, (int64_t)words);
        n += 1 + words;
        const char *begin = commands.p;
        for (; words > 0; words--) {
            size_t used = take_number(&commands) + 2;
            commands = (struct slice){commands.p + used, commands.n - used};
        }
        buffer_append(out, begin, (size_t)(commands.p - begin));
    }
    return n;
}
