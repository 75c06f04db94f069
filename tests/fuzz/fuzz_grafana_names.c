/* fuzz_grafana_names.c - libFuzzer target: any names, escaped as Grafana does, given to
 * grafana_names().
 *
 *     clang -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -I. tests/fuzz/fuzz_grafana_names.c \
 *         handlers/grafana/names.c -ljansson
 *     ./a.out tests/fuzz/corpus/grafana_names
 *
 * The input is names, separated by NUL.  As a variable with one value or with several they must
 * come back the same; the input as it stands must do no harm.
 */
#include "handlers/grafana/names.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* What escapeRegex() of Grafana makes of @n bytes; returns how many it wrote. */
static size_t escape(const char *name, size_t n, char *to)
{
    size_t written = 0;
    for (size_t i = 0; i < n; i++) {
        if (strchr("\\^$*+?.()|[]{}/", name[i]) != NULL) {
            to[written++] = '\\';
        }
        to[written++] = name[i];
    }
    return written;
}

static json_t *read_back(const char *text, size_t n)
{
    json_t *value = json_stringn(text, n);
    json_t *names = grafana_names(value);
    require(names != NULL);
    json_decref(value);
    return names;
}

/* The names as JSON: what a variable of these values must come to. */
static json_t *expected(const char *data, size_t size)
{
    json_t *list = json_array();
    char *escaped = malloc(2 * size + 1);
    for (size_t at = 0; at < size; at += strnlen(data + at, size - at) + 1) {
        size_t n = escape(data + at, strnlen(data + at, size - at), escaped);
        json_array_append_new(list, json_stringn(escaped, n));
    }
    free(escaped);
    json_t *names = grafana_names(list); /* without those that are there twice, and those for all */
    json_decref(list);
    return names;
}

static void check_choice(const char *data, size_t size, const json_t *names)
{
    char *text = malloc(2 * size + 3);
    size_t n = 0;
    text[n++] = '(';
    for (size_t at = 0; at < size; at += strnlen(data + at, size - at) + 1) {
        n += at > 0 ? 1 : 0;
        text[n - 1] = at > 0 ? '|' : text[n - 1];
        n += escape(data + at, strnlen(data + at, size - at), text + n);
    }
    text[n++] = ')';
    json_t *got = read_back(text, n);
    require(json_equal(got, names) == 1);
    json_decref(got);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    json_t *valid = json_stringn(text, size);
    if (valid == NULL) { /* not UTF-8 */
        return 0;
    }
    json_decref(grafana_names(valid));
    json_decref(valid);
    size_t first = strnlen(text, size);
    char *escaped = malloc(2 * first + 1);
    json_t *one = read_back(escaped, escape(text, first, escaped));
    require(json_array_size(one) <= 1);
    if (json_array_size(one) == 1) {
        const json_t *name = json_array_get(one, 0);
        require(
            json_string_length(name) == first && memcmp(json_string_value(name), text, first) == 0);
    }
    json_decref(one);
    free(escaped);
    json_t *names = expected(text, size);
    if (first < size && json_array_size(names) >= 2) {
        check_choice(text, size, names);
    }
    json_decref(names);
    return 0;
}
