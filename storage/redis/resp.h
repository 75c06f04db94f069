/* resp.h - commands for Redis, written into a buffer.
 *
 * Layer: storage, pure.  A command is a head that counts its words, and then the words.  Whether
 * memory was short is a matter of the buffer: its `failed` is checked once, before the sending.
 * Format: RESP2 requests (redis.io, "Redis serialization protocol").
 */
#ifndef STORAGE_REDIS_RESP_H
#define STORAGE_REDIS_RESP_H

#include "storage/base/buffer.h"

/* The head of a command of @n words; then @n words. */
void resp_head(struct buffer *b, size_t n);
void resp_word(struct buffer *b, const void *bytes, size_t n);
void resp_text(struct buffer *b, const char *text);
void resp_decimal(struct buffer *b, int64_t value);

/* A whole command of C strings, ended by NULL. */
void resp_command(struct buffer *b, ...) __attribute__((sentinel));

#endif
