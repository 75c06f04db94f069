#include "storage/redis/address.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool redis_address_equal(const struct redis_address *a, const struct redis_address *b)
{
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

void redis_address_print(const struct redis_address *address, char *text, size_t size)
{
    bool v6 = strchr(address->host, ':') != NULL;
    if (address->port == 0) {
        (void)snprintf(text, size, "%s", address->host);
    } else {
        (void)snprintf(text, size, v6 ? "[%s]:%d" : "%s:%d", address->host, address->port);
    }
}

bool redis_word_copy(struct slice word, char *ret, size_t size)
{
    if (word.n == 0 || word.n >= size) {
        return false;
    }
    for (size_t i = 0; i < word.n; i++) {
        if ((unsigned char)word.p[i] <= ' ' || word.p[i] == 0x7f) {
            return false;
        }
    }
    memcpy(ret, word.p, word.n);
    ret[word.n] = '\0';
    return true;
}

bool redis_address_set_host(struct redis_address *address, struct slice host)
{
    return redis_word_copy(host, address->host, sizeof(address->host));
}
