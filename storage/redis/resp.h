/* resp.h - writes commands for Redis into a buffer.
 *
 * Layer: storage, pure.  Thread-safe for different buffers.
 *
 * A command is a head that says how many words there are, and then these words.  These functions do
 * not report a lack of memory: the buffer remembers it, and redis_queue() refuses such a buffer.
 * Format: RESP2 requests (redis.io, "Redis serialization protocol").
 */
#ifndef STORAGE_REDIS_RESP_H
#define STORAGE_REDIS_RESP_H

#include "storage/base/buffer.h"

/* Write the head of a command of @n words, the command's name included.  @n words must follow. */
void resp_head(struct buffer *b, size_t n);

/* Write one word: any bytes, a slice, a C string, or the decimal digits of a number. */
void resp_word(struct buffer *b, const void *bytes, size_t n);
void resp_slice(struct buffer *b, struct slice word);
void resp_text(struct buffer *b, const char *text);
void resp_decimal(struct buffer *b, int64_t value);

/* Write the beginning of a command about @key: its name and the key.  @n words must follow. */
void resp_begin(struct buffer *b, const char *name, struct slice key, size_t n);

/* Write a whole command.  Its words are C strings, and NULL follows the last one. */
void resp_command(struct buffer *b, ...) __attribute__((sentinel));

#endif
