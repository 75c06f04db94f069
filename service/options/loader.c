#include "service/options/loader.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/log/escape.h"
#include "service/options/option_table.h"
#include "service/options/option_text.h"

bool loader_fail(const struct loader *loader, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(loader->error, OPTIONS_ERROR, format, arguments);
    va_end(arguments);
    escape_in_place(loader->error); /* names and values stand in it as they were given */
    return false;
}

size_t loader_find(struct slice name)
{
    for (size_t i = 0; i < option_table_n; i++) {
        if (slice_equal(slice_of(option_table[i].name), name)) {
            return i;
        }
    }
    return LOADER_NONE;
}

/* The form that a character of an option's name takes in the environment. */
static char environment_form(char c)
{
    return c == '-' ? '_' : (char)toupper((unsigned char)c); /* the locale is always C */
}

bool loader_is_variable(const char *option, struct slice name)
{
    if (strlen(option) != name.n) {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] != environment_form(option[i])) {
            return false;
        }
    }
    return true;
}

void loader_place(
    const struct loader *loader, size_t at, enum option_source source, char *text, size_t room)
{
    const char *name = option_table[at].name;
    switch (source) {
    case OPTION_DEFAULT:
        (void)snprintf(text, room, "default of %s", name);
        break;
    case OPTION_FILE:
        (void)snprintf(text, room, "%s:%u: %s", loader->path, loader->lines[at], name);
        break;
    case OPTION_ENVIRONMENT:
        (void)snprintf(text, room, LOADER_PREFIX "%s", name);
        for (char *p = text; *p != '\0'; p++) {
            *p = environment_form(*p);
        }
        break;
    case OPTION_FLAG:
        (void)snprintf(text, room, "--%s", name);
        break;
    }
}

bool loader_set(struct loader *loader, size_t at, const char *text, enum option_source source)
{
    char *copy = strdup(text);
    if (copy == NULL) {
        return loader_fail(loader, "out of memory");
    }
    if (!option_set(&option_table[at], copy, loader->options)) {
        free(copy);
        char where[OPTIONS_ERROR / 4], shown[LOADER_SHOWN_MAX], allowed[OPTIONS_ERROR / 2];
        loader_place(loader, at, source, where, sizeof(where));
        option_show(&option_table[at], text, shown, sizeof(shown));
        option_describe(&option_table[at], text, allowed, sizeof(allowed));
        return loader_fail(loader, "%s: \"%s\" is refused%s: %s", where, shown,
            option_table[at].is_judged ? "" : ", allowed", allowed);
    }
    struct option_origin *origin = &loader->options->origins[at];
    free(origin->text);
    *origin = (struct option_origin){copy, source, loader->lines[at]};
    return true;
}
