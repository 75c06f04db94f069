#include "storage/schema/heads.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"

void heads_clear(struct heads *heads)
{
    heads->n = 0;
    heads->n_closed = 0;
}

void heads_release(struct heads *heads)
{
    free(heads->all);
    *heads = (struct heads){0};
}

/* Add one field of a register. */
static enum storage_err add_field(
    struct heads *heads, unsigned place, struct slice name, struct slice value)
{
    uint64_t n_closed = 0;
    if (log_closed_parse(name, value, &n_closed)) {
        heads->n_closed += n_closed;
        return STORAGE_OK;
    }
    if (!array_reserve(&heads->all, &heads->capacity, heads->n, sizeof(*heads->all))) {
        return STORAGE_NOMEM;
    }
    if (!log_head_parse(name, value, &heads->all[heads->n])) {
        return STORAGE_REFUSED;
    }
    heads->all[heads->n++].place = place;
    return STORAGE_OK;
}

enum storage_err heads_add(struct heads *heads, unsigned place, const struct reply *reply)
{
    bool ok = reply->type == REPLY_ARRAY && reply->n % 2 == 0;
    enum storage_err err = ok ? STORAGE_OK : STORAGE_REFUSED;
    for (size_t i = 0; err == STORAGE_OK && i < reply->n; i += 2) {
        err = add_field(heads, place, reply->items[i].text, reply->items[i + 1].text);
    }
    if (err != STORAGE_OK) {
        heads_clear(heads);
    }
    return err;
}

struct log_head *heads_find(const struct heads *heads, const char *id, size_t hint)
{
    for (size_t i = 0; i < heads->n; i++) {
        struct log_head *head = &heads->all[(hint + i) % heads->n];
        if (memcmp(head->id, id, LOG_ID_TEXT) == 0) {
            return head;
        }
    }
    return NULL;
}
