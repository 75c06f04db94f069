/* gzip.h - gzip bytes for tests. */
#ifndef TESTS_LIB_GZIP_H
#define TESTS_LIB_GZIP_H

#include <stddef.h>

/* One gzip member of @n bytes; the caller frees it. */
char *gzip_member(const char *p, size_t n, size_t *ret_n);

#endif
