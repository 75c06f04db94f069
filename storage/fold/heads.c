#include "storage/fold/heads.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"

void heads_release(struct heads *heads)
{
    free(heads->heads);
    *heads = (struct heads){0};
}

/* Cut the word before the next blank, or the end, off the front of @rest. */
static struct slice take_word(struct slice *rest)
{
    const char *blank = rest->n == 0 ? NULL : memchr(rest->p, ' ', rest->n);
    struct slice word = {rest->p, blank == NULL ? rest->n : (size_t)(blank - rest->p)};
    size_t taken = blank == NULL ? word.n : word.n + 1;
    rest->p += taken;
    rest->n -= taken;
    return word;
}

static bool copy_id(struct slice text, char ret[LOG_ID_TEXT + 1])
{
    if (text.n > LOG_ID_TEXT) {
        return false;
    }
    memcpy(ret, text.p, text.n);
    ret[text.n] = '\0';
    return true;
}

static bool parse_head(const struct reply *id, const struct reply *value, struct log_head *ret)
{
    struct slice rest = value->text;
    if (id->type != REPLY_TEXT || id->text.n != LOG_ID_TEXT || value->type != REPLY_TEXT) {
        return false;
    }
    const struct reply n = {.type = REPLY_TEXT, .text = take_word(&rest)};
    struct slice era = take_word(&rest);
    const struct reply time = {.type = REPLY_TEXT, .text = rest};
    int64_t number = reply_integer(&n, -1);
    ret->n = (uint64_t)number;
    ret->time_ms = reply_integer(&time, -1);
    return number >= 0 && ret->time_ms >= 0 && copy_id(id->text, ret->id) && copy_id(era, ret->era);
}

bool heads_take(struct heads *heads, const struct reply *reply)
{
    heads->n = 0;
    bool ok = reply->type == REPLY_ARRAY && reply->n % 2 == 0;
    for (size_t i = 0; ok && i < reply->n; i += 2) {
        ok = array_reserve(&heads->heads, &heads->capacity, heads->n, sizeof(*heads->heads)) &&
             parse_head(&reply->items[i], &reply->items[i + 1], &heads->heads[heads->n]);
        heads->n += ok;
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
