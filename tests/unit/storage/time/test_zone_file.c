/* TZif files made byte by byte: RFC 8536's two blocks and footer, and whatever is no such file. */
#include "storage/time/zone_file.h"

#include <criterion/criterion.h>
#include <string.h>

#define HOUR INT64_C(3600)

TestSuite(zone_file, .timeout = 60);

struct file {
    unsigned char bytes[1024];
    size_t n;
};

static void put(struct file *f, uint64_t value, unsigned n)
{
    while (n-- > 0) {
        f->bytes[f->n++] = (unsigned char)(value >> 8 * n);
    }
}

struct change {
    int64_t at_s;
    unsigned type;
};

/* A block: types 0 and 1 are @offsets from UTC. */
static void put_block(struct file *f, char version, unsigned time_size,
    const struct change *changes, unsigned n, const int32_t offsets[2])
{
    memcpy(f->bytes + f->n, "TZif", 4);
    f->n += 4;
    put(f, (unsigned char)version, 1);
    put(f, 0, 8);
    put(f, 0, 7);
    put(f, 0, 4); /* ut */
    put(f, 0, 4); /* standard */
    put(f, 0, 4); /* leap seconds */
    put(f, n, 4);
    put(f, 2, 4);
    put(f, 4, 4);
    for (unsigned i = 0; i < n; i++) {
        put(f, (uint64_t)changes[i].at_s, time_size);
    }
    for (unsigned i = 0; i < n; i++) {
        put(f, changes[i].type, 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        put(f, (uint32_t)offsets[i], 4);
        put(f, i, 1); /* is it saving time? */
        put(f, 0, 1); /* name */
    }
    put(f, 0x41424300, 4); /* "ABC" */
}

static void put_footer(struct file *f, const char *text)
{
    memcpy(f->bytes + f->n, text, strlen(text));
    f->n += strlen(text);
}

static struct slice content_of(const struct file *f)
{
    return (struct slice){(const char *)f->bytes, f->n};
}

static const int32_t offsets[2] = {-3600, 7200};
static const struct change changes[] = {{0, 1}, {100 * 86400, 0}};

/* Version 2: the first block says nothing that is used. */
static struct file file_of(const struct change *list, unsigned n, const char *footer)
{
    static const int32_t others[2] = {1, 2};
    struct file f = {.n = 0};
    put_block(&f, '2', 4, NULL, 0, others);
    put_block(&f, '2', 8, list, n, offsets);
    put_footer(&f, footer);
    return f;
}

static struct zone *zone_of(const struct file *f)
{
    const char *fault = NULL;
    struct zone *zone = zone_from_file(content_of(f), "Some/Where", &fault);
    cr_assert(zone != NULL, "%s", fault);
    return zone;
}

static void expect_fault(const struct file *f, const char *expected)
{
    const char *fault = NULL;
    cr_expect_null(zone_from_file(content_of(f), "Some/Where", &fault));
    cr_assert_not_null(fault);
    cr_expect(strstr(fault, expected) != NULL, "%s", fault);
}

Test(zone_file, changes_of_the_second_block)
{
    struct file f = file_of(changes, 2, "\n\n");
    struct zone *zone = zone_of(&f);
    cr_expect_str_eq(zone_name(zone), "Some/Where");
    cr_expect_eq(zone_offset_s(zone, -1), -HOUR, "before the first change: type 0");
    cr_expect_eq(zone_offset_s(zone, 0), 2 * HOUR);
    cr_expect_eq(zone_offset_s(zone, 100 * 86400 - 1), 2 * HOUR);
    cr_expect_eq(zone_offset_s(zone, INT64_C(1) << 39), -HOUR, "the last one holds for ever");
    zone_free(zone);
}

Test(zone_file, the_first_version_has_times_of_32_bits)
{
    static const struct change early[] = {{-300 * 86400, 1}, {-86400, 0}, {0x7fffffff, 1}};
    struct file f = {.n = 0};
    put_block(&f, '\0', 4, early, 3, offsets);
    struct zone *zone = zone_of(&f);
    cr_expect_eq(zone_offset_s(zone, -301 * 86400), -HOUR);
    cr_expect_eq(zone_offset_s(zone, -86401), 2 * HOUR);
    cr_expect_eq(zone_offset_s(zone, -86400), -HOUR);
    cr_expect_eq(zone_offset_s(zone, 0x7fffffff), 2 * HOUR);
    zone_free(zone);
}

/* From the year of the last change on; without one from the beginning. */
Test(zone_file, the_rule_behind_the_last_change)
{
    static const struct change late[] = {{0, 1}, {INT64_C(1577836800), 0}}; /* 2020-01-01 */
    struct file f = file_of(late, 2, "\nABC-1DEF,M3.5.0,M10.5.0/3\n");
    struct zone *zone = zone_of(&f);
    cr_expect_eq(zone_offset_s(zone, INT64_C(1530000000)), 2 * HOUR, "2018: the file");
    cr_expect_eq(zone_offset_s(zone, INT64_C(1593561600)), 2 * HOUR, "July 2020: the rule");
    cr_expect_eq(zone_offset_s(zone, INT64_C(1609459200)), HOUR, "January 2021");
    cr_expect_eq(zone_offset_s(zone, INT64_C(4118083200)), 2 * HOUR, "July 2100");
    zone_free(zone);

    f = file_of(NULL, 0, "\nABC-1DEF,M3.5.0,M10.5.0/3\n");
    zone = zone_of(&f);
    cr_expect_eq(zone_offset_s(zone, INT64_C(15638400)), 2 * HOUR, "July 1970");
    cr_expect_eq(zone_offset_s(zone, INT64_C(1609459200)), HOUR);
    zone_free(zone);

    f = file_of(changes, 2, "\nABC1\n"); /* says what the last change has said */
    zone = zone_of(&f);
    cr_expect_eq(zone_offset_s(zone, INT64_C(1609459200)), -HOUR);
    zone_free(zone);
}

/* zic writes a change at the Big Bang. */
Test(zone_file, changes_beyond_all_times)
{
    static const struct change far[] = {{INT64_MIN, 1}, {0, 0}, {INT64_MAX, 1}};
    struct file f = file_of(far, 3, "\n\n");
    struct zone *zone = zone_of(&f);
    cr_expect_eq(zone_offset_s(zone, -1), 2 * HOUR);
    cr_expect_eq(zone_offset_s(zone, INT64_C(1) << 39), -HOUR);
    zone_free(zone);
}

Test(zone_file, cut_anywhere_it_is_none)
{
    struct file whole = file_of(changes, 2, "\nABC1\n");
    for (size_t n = 0; n < whole.n; n++) {
        struct file f = whole;
        f.n = n;
        expect_fault(&f, "no TZif file");
    }
}

Test(zone_file, what_is_none)
{
    static const struct change unknown[] = {{0, 2}};
    static const struct change back[] = {{200 * 86400, 1}, {0, 0}};
    static const char *const footers[] = {"", "x", "\n", "\nABC1", "xABC1\n", "\nABC\n", "\n1\n"};
    struct file f;
    for (size_t i = 0; i < sizeof(footers) / sizeof(footers[0]); i++) {
        f = file_of(changes, 2, footers[i]);
        expect_fault(&f, "no TZif file");
    }
    f = file_of(unknown, 1, "\n\n");
    expect_fault(&f, "no TZif file");
    f = file_of(back, 2, "\n\n");
    expect_fault(&f, "");
    f = file_of(changes, 2, "\n\n");
    f.bytes[0] = 't';
    expect_fault(&f, "no TZif file");

    f = (struct file){.n = 0};
    put_block(&f, '\0', 4, changes, 2, offsets);
    f.bytes[39] = 0; /* no types: nothing says what the time is */
    f.n += 12;
    expect_fault(&f, "no TZif file");

    f = (struct file){.n = 0};
    put_block(&f, '\0', 4, changes, 2, offsets);
    f.bytes[31] = 1; /* a leap second */
    f.n += 8;
    expect_fault(&f, "leap seconds");

    static char large[ZONE_FILE_MAX + 1];
    const char *fault = NULL;
    f = file_of(changes, 2, "\n\n");
    memcpy(large, f.bytes, f.n);
    struct zone *zone = zone_from_file((struct slice){large, ZONE_FILE_MAX}, "x", &fault);
    cr_expect_not_null(zone, "what lies behind the footer is nobody's");
    zone_free(zone);
    cr_expect_null(zone_from_file((struct slice){large, sizeof(large)}, "x", &fault));
}
