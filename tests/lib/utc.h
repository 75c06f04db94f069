/* utc.h - instants as a test writes them. */
#ifndef TESTS_LIB_UTC_H
#define TESTS_LIB_UTC_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <time.h>

/* "2026-03-29 02:30", in UTC. */
static inline int64_t utc(const char *text)
{
    struct tm tm = {0};
    cr_assert_not_null(strptime(text, "%Y-%m-%d %H:%M", &tm), "%s", text);
    return timegm(&tm);
}

#endif
