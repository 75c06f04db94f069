/* command_words.h - writes commands as arguments of a script.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 */
#ifndef STORAGE_REDIS_COMMAND_WORDS_H
#define STORAGE_REDIS_COMMAND_WORDS_H

#include "storage/base/buffer.h"
#include "storage/base/slice.h"

/* Append the commands in @commands (written with resp.h) to @out as words, each command behind the
 * number of its words.  Returns the number of all words. */
size_t command_words(struct slice commands, struct buffer *out);

#endif
