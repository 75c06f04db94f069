/* commands.h - the commands in a buffer written with resp.h, read back strictly.
 */
#ifndef TESTS_LIB_COMMANDS_H
#define TESTS_LIB_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "storage/base/buffer.h"
#include "storage/base/slice.h"

/* A command: its words point into the buffer. */
struct command {
    struct slice *words; /* owned */
    size_t n;
};

struct commands {
    struct command *commands; /* owned */
    size_t n;
};

/* False: @b is not commands and nothing else, or failed.  Release also after that. */
bool commands_read(const struct buffer *b, struct commands *ret);
void commands_release(struct commands *commands);

/* Is word @i of the command this text?  False also where it has no such word. */
bool command_is(const struct command *command, size_t i, const char *text);

/* Word @i as a decimal number; aborts if it is none. */
long long command_number(const struct command *command, size_t i);

#endif
