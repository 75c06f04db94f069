#include "service/http/request_id.h"

#include <string.h>
#include <sys/random.h>

static const char digits[] = "0123456789abcdef";

bool request_ids_init(struct request_ids *ids)
{
    uint32_t random;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return false;
    }
    for (unsigned i = 0; i < 8; i++) {
        ids->prefix[i] = digits[random >> (4 * i) & 15];
    }
    ids->prefix[8] = '-';
    atomic_init(&ids->next, 1);
    return true;
}

void request_ids_next(struct request_ids *ids, char ret[static REQUEST_ID_MAX + 1])
{
    uint64_t count = atomic_fetch_add_explicit(&ids->next, 1, memory_order_relaxed);
    unsigned n = 1;
    while (n < 16 && count >> (4 * n) != 0) {
        n++;
    }
    memcpy(ret, ids->prefix, sizeof(ids->prefix));
    char *p = ret + sizeof(ids->prefix);
    for (unsigned i = n; i-- > 0;) {
        *p++ = digits[count >> (4 * i) & 15];
    }
    *p = '\0';
}
