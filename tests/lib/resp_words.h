/* resp_words.h - the words of a buffer written with resp_word(), read back strictly.
 */
#ifndef TESTS_LIB_RESP_WORDS_H
#define TESTS_LIB_RESP_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/buffer.h"
#include "storage/base/slice.h"
#include "storage/redis/resp.h"

/* Words in order, and the one that comes next.  They point into the buffer. */
struct resp_words {
    struct slice *words; /* owned */
    size_t n, next;
    bool failed; /* read behind the end, or a word was no number: sticky */
};

/* False if @b is not bulk strings and nothing else, or failed.  Release also after that. */
bool resp_words_read(const struct buffer *b, struct resp_words *ret);
void resp_words_release(struct resp_words *words);

/* The next word; an empty one behind the end. */
struct slice resp_words_take(struct resp_words *words);
/* The next word as a canonical decimal number; 0 if it is none. */
int64_t resp_words_number(struct resp_words *words);
/* All read, and nothing failed. */
bool resp_words_over(const struct resp_words *words);

#endif
