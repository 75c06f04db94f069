/* text_lines.h - what a module wrote, and what a model expects, as sets of lines to compare.
 */
#ifndef TESTS_LIB_TEXT_LINES_H
#define TESTS_LIB_TEXT_LINES_H

#include <stddef.h>

/* Zeroed it is empty. */
struct text_lines {
    char **lines; /* owned, as are the lines */
    size_t n, capacity;
};

/* Add a line.  Aborts without memory. */
void text_lines_add(struct text_lines *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Sort, and drop what stands there twice. */
void text_lines_unite(struct text_lines *lines);
/* Sort. */
void text_lines_sort(struct text_lines *lines);
void text_lines_clear(struct text_lines *lines);
void text_lines_release(struct text_lines *lines);

/* The first line that only one of two sorted sets has; NULL: they are the same. */
const char *text_lines_difference(const struct text_lines *a, const struct text_lines *b);

#endif
