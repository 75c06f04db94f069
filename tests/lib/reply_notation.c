#include "tests/lib/reply_notation.h"

#include <string.h>

#define LEVELS 7
#define PARTS  10000

struct notation {
    struct arena *arena;
    struct slice left;
    unsigned parts;
};

static void skip_blanks(struct notation *n)
{
    while (n->left.n > 0 && (*n->left.p == ' ' || *n->left.p == '\n' || *n->left.p == '\r')) {
        n->left.p++;
        n->left.n--;
    }
}

static bool take(struct notation *n, char c)
{
    skip_blanks(n);
    if (n->left.n == 0 || *n->left.p != c) {
        return false;
    }
    n->left.p++;
    n->left.n--;
    return true;
}

static bool read_integer(struct notation *n, struct reply *ret)
{
    bool minus = take(n, '-');
    int digits = 0;
    ret->type = REPLY_INTEGER;
    for (; n->left.n > 0 && *n->left.p >= '0' && *n->left.p <= '9' && digits < 18; digits++) {
        ret->integer = ret->integer * 10 + (*n->left.p - '0');
        n->left.p++;
        n->left.n--;
    }
    ret->integer = minus ? -ret->integer : ret->integer;
    return digits > 0;
}

/* Up to the closing quote; a copy with a NUL behind it, of exactly the size. */
static bool read_string(struct notation *n, struct reply *ret)
{
    const char *end = n->left.n == 0 ? NULL : memchr(n->left.p, '\'', n->left.n);
    size_t size = end == NULL ? 0 : (size_t)(end - n->left.p);
    char *copy = end == NULL ? NULL : arena_alloc(n->arena, size + 1);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, n->left.p, size);
    copy[size] = '\0';
    ret->text = (struct slice){copy, size};
    n->left.p += size + 1;
    n->left.n -= size + 1;
    return true;
}

static bool read_value(struct notation *n, struct reply *ret, unsigned level);

static bool read_array(struct notation *n, struct reply *ret, unsigned level)
{
    size_t room = 0;
    ret->type = REPLY_ARRAY;
    if (take(n, ']')) {
        return true;
    }
    do {
        if (ret->n == room) {
            room = room == 0 ? 4 : 2 * room;
            struct reply *more = arena_alloc(n->arena, room * sizeof(*more));
            if (more == NULL) {
                return false;
            }
            if (ret->n > 0) {
                memcpy(more, ret->items, ret->n * sizeof(*more));
            }
            ret->items = more;
        }
        if (!read_value(n, &ret->items[ret->n], level + 1)) {
            return false;
        }
        ret->n++;
    } while (take(n, ','));
    return take(n, ']');
}

static bool read_value(struct notation *n, struct reply *ret, unsigned level)
{
    static const struct slice null = {"null", 4};
    *ret = (struct reply){.type = REPLY_NIL};
    if (level == LEVELS || n->parts++ == PARTS) {
        return false;
    }
    if (take(n, '[')) {
        return read_array(n, ret, level);
    }
    if (take(n, '\'')) {
        ret->type = REPLY_TEXT;
        return read_string(n, ret);
    }
    if (take(n, '!')) {
        ret->type = REPLY_ERROR;
        return take(n, '\'') && read_string(n, ret);
    }
    if (n->left.n >= null.n && memcmp(n->left.p, null.p, null.n) == 0) {
        n->left.p += null.n;
        n->left.n -= null.n;
        return true;
    }
    return read_integer(n, ret);
}

const struct reply *reply_read(struct arena *arena, struct slice text)
{
    struct notation n = {.arena = arena, .left = text};
    struct reply *reply = arena_alloc(arena, sizeof(*reply));
    if (reply == NULL || !read_value(&n, reply, 0)) {
        return NULL;
    }
    skip_blanks(&n);
    return n.left.n == 0 ? reply : NULL;
}
