/* address.h - the address at which a server listens: a host and a port, or a unix socket.
 *
 * Layer: storage, pure.  Thread-safe.
 */
#ifndef STORAGE_REDIS_ADDRESS_H
#define STORAGE_REDIS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

struct redis_address {
    char host[256]; /* a name, or an address without brackets, or a path */
    int port;       /* 0: `host` is the path of a unix socket, of at most 107 bytes */
};

/* Have both the same port, and the same host but for the case of letters?  Names are not looked
 * up. */
bool redis_address_equal(const struct redis_address *a, const struct redis_address *b);

/* Copy @word, which a server sent, and a NUL to @ret of @size bytes.  False, with @ret untouched:
 * the word is empty or too long, or holds a control character or a blank. */
bool redis_word_copy(struct slice word, char *ret, size_t size) MUST_CHECK;

/* Copy @host, which a server sent, into @address.  False, with @address untouched:
 * redis_word_copy() refuses the host. */
bool redis_address_set_host(struct redis_address *address, struct slice host) MUST_CHECK;

/* Write "host:port", "[v6]:port" or the path of a socket to @text of @size bytes, cut to fit. */
#define ADDRESS_TEXT_SIZE 266
void redis_address_print(const struct redis_address *address, char *text, size_t size);

#endif
