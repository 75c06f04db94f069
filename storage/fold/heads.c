#include "storage/fold/heads.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"

void heads_release(struct heads *heads)
{
    free(heads->heads);
    *heads = (struct heads){0};
}

bool heads_take(struct heads *heads, const struct reply *reply)
{
    heads->n = 0;
    return heads_add(heads, 0, reply);
}

bool heads_add(struct heads *heads, unsigned place, const struct reply *reply)
{
    bool ok = reply->type == REPLY_ARRAY && reply->n % 2 == 0;
    for (size_t i = 0; ok && i < reply->n; i += 2) {
        struct slice name = reply->items[i].text;
        struct slice value = reply->items[i + 1].text;
        uint64_t ignored = 0;
        if (log_closed_parse(name, value, &ignored)) {
            continue;
        }
        ok = array_reserve(&heads->heads, &heads->capacity, heads->n, sizeof(*heads->heads)) &&
             log_head_parse(name, value, &heads->heads[heads->n]);
        if (ok) {
            heads->heads[heads->n++].place = place;
        }
    }
    if (!ok) {
        heads->n = 0;
    }
    return ok;
}

const struct log_head *heads_find(const struct heads *heads, const char *id)
{
    for (size_t i = 0; i < heads->n; i++) {
        if (strcmp(heads->heads[i].id, id) == 0) {
            return &heads->heads[i];
        }
    }
    return NULL;
}
