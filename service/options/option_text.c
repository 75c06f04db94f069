#include "service/options/option_text.h"

#include <stdio.h>
#include <string.h>

#include "service/log/escape.h"
#include "service/options/option_value.h"
#include "service/options/redis_url.h"
#include "service/options/values.h"

_Static_assert(
    sizeof(enum redis_fsync) == sizeof(unsigned) && sizeof(enum guard_by) == sizeof(unsigned) &&
        sizeof(enum rotation) == sizeof(unsigned) && sizeof(enum log_syntax) == sizeof(unsigned) &&
        sizeof(enum log_level) == sizeof(unsigned),
    "option_set() writes enums as unsigned");

/* How the numbers of a type are written. */
struct number_form {
    bool (*parse)(const char *text, int64_t *ret);
    const char *(*format)(int64_t value, char *text);
    int64_t scale; /* so many units of parse() and format() are one unit of the field */
    const char *name, *examples;
};

static const struct number_form number_forms[] = {
    [OPTION_INTEGER] = {option_parse_integer, option_format_integer, 1, "a whole number", ""},
    [OPTION_SIZE] = {option_parse_size, option_format_size, 1, "a size",
        ", as 64KiB, 8MiB, 1GiB or a number of bytes"},
    [OPTION_SECONDS] = {option_parse_duration, option_format_duration, 1000,
        "a duration of whole seconds", ", as 10s, 30m, 48h or 62d"},
    [OPTION_MILLISECONDS] = {option_parse_duration, option_format_duration, 1, "a duration",
        ", as 500ms, 10s, 30m, 48h or 62d"},
};

static bool set_number(const struct option *option, const char *text, int64_t *ret)
{
    const struct number_form *form = &number_forms[option->type];
    int64_t value;
    if (option->word != NULL && strcmp(text, option->word) == 0) {
        *ret = option->word_value;
        return true;
    }
    if (!form->parse(text, &value) || value % form->scale != 0 ||
        value / form->scale < option->min || value / form->scale > option->max) {
        return false;
    }
    *ret = value / form->scale;
    return true;
}

static bool set_enum(const struct option *option, const char *text, unsigned *ret)
{
    for (unsigned i = 0; option->words[i] != NULL; i++) {
        if (strcmp(text, option->words[i]) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

static bool set_string(const struct option *option, const char *text, const char **ret)
{
    bool allowed = option->type == OPTION_PATH
                       ? *text != '\0'
                       : option->check == NULL || option->check(text) == NULL;
    if (allowed) {
        *ret = text;
    }
    return allowed;
}

bool option_set(const struct option *option, const char *text, struct options *options)
{
    void *field = (char *)options + option->offset;
    switch (option->type) {
    case OPTION_STRING:
    case OPTION_PATH:
        return set_string(option, text, field);
    case OPTION_BOOL:
        return option_parse_bool(text, field);
    case OPTION_INTEGER:
    case OPTION_SIZE:
    case OPTION_SECONDS:
    case OPTION_MILLISECONDS:
        return set_number(option, text, field);
    case OPTION_ENUM:
        return set_enum(option, text, field);
    }
    return false;
}

/* Write "NAME from MIN to MAX<EXAMPLES>, or WORD". */
static void describe_range(const struct option *option, char *text, size_t room)
{
    const struct number_form *form = &number_forms[option->type];
    char min[OPTION_VALUE_TEXT], max[OPTION_VALUE_TEXT];
    (void)snprintf(text, room, "%s from %s to %s%s%s%s", form->name,
        form->format(option->min * form->scale, min), form->format(option->max * form->scale, max),
        form->examples, option->word != NULL ? ", or " : "",
        option->word != NULL ? option->word : "");
}

static void describe_words(const struct option *option, char *text, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; option->words[i] != NULL && n < room; i++) {
        const char *separator = i == 0 ? "" : option->words[i + 1] == NULL ? " or " : ", ";
        int written = snprintf(text + n, room - n, "%s%s", separator, option->words[i]);
        n += written > 0 ? (size_t)written : 0;
    }
}

void option_describe(const struct option *option, const char *refused, char *text, size_t room)
{
    const char *fault = NULL;
    switch (option->type) {
    case OPTION_STRING:
        fault = option->check != NULL ? option->check(refused) : NULL;
        (void)snprintf(text, room, "%s", fault != NULL ? fault : "a text");
        break;
    case OPTION_PATH:
        (void)snprintf(text, room, "a path that is not empty");
        break;
    case OPTION_BOOL:
        (void)snprintf(text, room, "on, off, true or false");
        break;
    case OPTION_INTEGER:
    case OPTION_SIZE:
    case OPTION_SECONDS:
    case OPTION_MILLISECONDS:
        describe_range(option, text, room);
        break;
    case OPTION_ENUM:
        describe_words(option, text, room);
        break;
    }
}

void option_show(const struct option *option, const char *value, char *text, size_t room)
{
    char masked[1024];
    if (option->secret) {
        redis_url_mask(value, masked, sizeof(masked));
    }
    escape_string(option->secret ? masked : value, text, room);
}
