#include "handlers/text/split.h"

bool text_begins(struct slice text, struct slice head)
{
    return text.n >= head.n && slice_equal((struct slice){text.p, head.n}, head);
}

struct slice text_until(struct slice *rest, char end)
{
    const char *at = rest->n > 0 ? memchr(rest->p, end, rest->n) : NULL;
    struct slice head = {rest->p, at != NULL ? (size_t)(at - rest->p) : rest->n};
    size_t used = head.n + (at != NULL);
    if (used > 0) { /* else the pointer may be NULL */
        rest->p += used;
    }
    rest->n -= used;
    return head;
}

static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

struct slice text_trim(struct slice text, const char *blanks)
{
    while (text.n > 0 && is_one_of(text.p[0], blanks)) {
        text = (struct slice){text.p + 1, text.n - 1};
    }
    while (text.n > 0 && is_one_of(text.p[text.n - 1], blanks)) {
        text.n--;
    }
    return text;
}
