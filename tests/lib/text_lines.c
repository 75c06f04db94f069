#include "tests/lib/text_lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_lines_add(struct text_lines *lines, const char *format, ...)
{
    if (lines->n == lines->capacity) {
        lines->capacity = lines->capacity == 0 ? 256 : lines->capacity * 2;
        lines->lines = reallocarray(lines->lines, lines->capacity, sizeof(*lines->lines));
    }
    va_list values;
    va_start(values, format);
    if (lines->lines == NULL || vasprintf(&lines->lines[lines->n++], format, values) < 0) {
        abort();
    }
    va_end(values);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void text_lines_sort(struct text_lines *lines)
{
    if (lines->n > 0) {
        qsort(lines->lines, lines->n, sizeof(*lines->lines), compare);
    }
}

void text_lines_unite(struct text_lines *lines)
{
    size_t kept = 0;
    text_lines_sort(lines);
    for (size_t i = 0; i < lines->n; i++) {
        if (kept > 0 && strcmp(lines->lines[kept - 1], lines->lines[i]) == 0) {
            free(lines->lines[i]);
        } else {
            lines->lines[kept++] = lines->lines[i];
        }
    }
    lines->n = kept;
}

void text_lines_clear(struct text_lines *lines)
{
    while (lines->n > 0) {
        free(lines->lines[--lines->n]);
    }
}

void text_lines_release(struct text_lines *lines)
{
    text_lines_clear(lines);
    free(lines->lines);
    *lines = (struct text_lines){0};
}

const char *text_lines_difference(const struct text_lines *a, const struct text_lines *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        int order = strcmp(a->lines[i], b->lines[i]);
        if (order != 0) {
            return order < 0 ? a->lines[i] : b->lines[i];
        }
    }
    return a->n > b->n ? a->lines[b->n] : b->n > a->n ? b->lines[a->n] : NULL;
}
