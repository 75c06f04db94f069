#include "tests/lib/commands.h"

#include <stdlib.h>
#include <string.h>

/* A line "<sign><number>\r\n" at *at, which moves behind it. */
static bool scan_number(const struct buffer *b, size_t *at, char sign, size_t *ret)
{
    size_t n = 0;
    size_t i = *at + 1;
    if (*at >= b->n || b->p[*at] != sign) {
        return false;
    }
    for (; i < b->n && b->p[i] >= '0' && b->p[i] <= '9'; i++) {
        n = n * 10 + (size_t)(b->p[i] - '0');
    }
    if (i == *at + 1 || i + 2 > b->n || memcmp(b->p + i, "\r\n", 2) != 0) {
        return false;
    }
    *at = i + 2;
    *ret = n;
    return true;
}

static bool scan_command(const struct buffer *b, size_t *at, struct command *ret)
{
    size_t n;
    if (!scan_number(b, at, '*', &n) || n == 0 || n > b->n) {
        return false;
    }
    ret->words = calloc(n, sizeof(*ret->words));
    for (; ret->words != NULL && ret->n < n; ret->n++) {
        size_t bytes;
        if (!scan_number(b, at, '$', &bytes) || *at + bytes + 2 > b->n ||
            memcmp(b->p + *at + bytes, "\r\n", 2) != 0) {
            return false;
        }
        ret->words[ret->n] = (struct slice){b->p + *at, bytes};
        *at += bytes + 2;
    }
    return ret->words != NULL;
}

bool commands_read(const struct buffer *b, struct commands *ret)
{
    *ret = (struct commands){0};
    ret->commands = calloc(b->n / 4 + 1, sizeof(*ret->commands));
    bool ok = !b->failed && ret->commands != NULL;
    for (size_t at = 0; ok && at < b->n;) {
        ok = scan_command(b, &at, &ret->commands[ret->n++]);
    }
    return ok;
}

void commands_release(struct commands *commands)
{
    for (size_t i = 0; i < commands->n; i++) {
        free(commands->commands[i].words);
    }
    free(commands->commands);
    *commands = (struct commands){0};
}

bool command_is(const struct command *command, size_t i, const char *text)
{
    return i < command->n && slice_equal(command->words[i], slice_of(text));
}

long long command_number(const struct command *command, size_t i)
{
    char text[32] = "";
    char *end = text;
    if (i < command->n && command->words[i].n < sizeof(text)) {
        memcpy(text, command->words[i].p, command->words[i].n);
    }
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0') {
        abort();
    }
    return value;
}
