#include "handlers/grafana/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/reply/json_body.h"

static bool is_escaped(const char *p, const char *end)
{
    return *p == '\\' && p + 1 < end && strchr("\\^$*+?.()|[]{}/", p[1]) != NULL && p[1] != '\0';
}

static bool stands_for_all(struct slice name)
{
    return name.n == 0 || slice_equal(name, SLICE("$__all")) || slice_equal(name, SLICE("All")) ||
           slice_equal(name, SLICE("*"));
}

/* Add one name, which is still escaped, to @names.  It is unescaped to @room, which has text.n
 * bytes.  False: out of memory. */
static bool add_name(json_t *names, struct slice text, char *room)
{
    size_t n = 0;
    const char *end = text.p + text.n;
    for (const char *p = text.p; p < end; p++) {
        p += is_escaped(p, end) ? 1 : 0;
        room[n++] = *p;
    }
    struct slice name = {room, n};
    return stands_for_all(name) || json_object_setn_new(names, name.p, name.n, json_true()) == 0;
}

/* Has @text the form "(a|b)": alternatives, in parentheses that are not escaped? */
static bool is_choice(struct slice text)
{
    bool choice = false;
    const char *end = text.p + text.n;
    if (text.n < 3 || text.p[0] != '(' || end[-1] != ')') {
        return false;
    }
    for (const char *p = text.p + 1; p < end - 1; p++) {
        if (is_escaped(p, end)) {
            p++;
            if (p == end - 1) {
                return false; /* the last parenthesis is escaped: part of a name */
            }
        } else if (*p == '(' || *p == ')') {
            return false;
        } else if (*p == '|') {
            choice = true;
        }
    }
    return choice;
}

static bool add_choices(json_t *names, struct slice text, char *room)
{
    const char *end = text.p + text.n;
    const char *begin = text.p;
    for (const char *p = text.p; p < end; p++) {
        if (is_escaped(p, end)) {
            p++;
        } else if (*p == '|') {
            if (!add_name(names, (struct slice){begin, (size_t)(p - begin)}, room)) {
                return false;
            }
            begin = p + 1;
        }
    }
    return add_name(names, (struct slice){begin, (size_t)(end - begin)}, room);
}

static bool add_text(json_t *names, struct slice text)
{
    char *room = malloc(text.n + 1);
    if (room == NULL) {
        return false;
    }
    bool ok = is_choice(text) ? add_choices(names, (struct slice){text.p + 1, text.n - 2}, room)
                              : add_name(names, text, room);
    free(room);
    return ok;
}

static bool add_value(json_t *names, const json_t *value)
{
    char digits[32];
    if (json_is_string(value)) {
        return add_text(names, json_text_of(value));
    }
    if (json_is_integer(value)) {
        int n = snprintf(digits, sizeof(digits), "%lld", (long long)json_integer_value(value));
        return add_text(names, (struct slice){digits, (size_t)n});
    }
    return true;
}

bool grafana_may_be_names(const json_t *value)
{
    size_t i;
    const json_t *one;
    if (!json_is_array(value)) {
        return value == NULL || json_is_null(value) || json_is_string(value) ||
               json_is_integer(value);
    }
    json_array_foreach(value, i, one)
    {
        if (!json_is_string(one) && !json_is_integer(one)) {
            return false;
        }
    }
    return true;
}

json_t *grafana_names(const json_t *value)
{
    json_t *names = json_object();
    size_t i;
    const json_t *one;
    bool ok = names != NULL;
    if (json_is_array(value)) {
        json_array_foreach(value, i, one)
        {
            ok = ok && add_value(names, one);
        }
    } else {
        ok = ok && add_value(names, value);
    }
    if (!ok) {
        json_decref(names);
        return NULL;
    }
    return names;
}

struct slice grafana_first_name(json_t *names)
{
    void *first = json_object_iter(names);
    struct slice name = {0};
    if (first != NULL) {
        name = (struct slice){json_object_iter_key(first), json_object_iter_key_len(first)};
    }
    return name;
}
