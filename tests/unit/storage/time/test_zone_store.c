#include "storage/time/zone_store.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A TZif file of version 1: one type, one hour ahead. */
static const char one_hour[] = "TZif\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                               "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4"
                               "\0\0\x0e\x10\0\0ONE";

static char directory[64];

static void write_file(const char *name, const char *bytes, size_t n)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(bytes, 1, n, file), n);
    cr_assert_eq(fclose(file), 0);
}

static void setup(void)
{
    char path[128];

    (void)snprintf(directory, sizeof(directory), "/tmp/zone_store.XXXXXX");
    cr_assert_not_null(mkdtemp(directory));
    (void)snprintf(path, sizeof(path), "%s/Some", directory);
    cr_assert_eq(mkdir(path, 0700), 0);
    write_file("Some/Where", one_hour, sizeof(one_hour));
    write_file("localtime", one_hour, sizeof(one_hour));
    write_file("Text", "no zone file", 12);
    write_file("Short", one_hour, sizeof(one_hour) - 5);
}

static void teardown(void)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(zone_store, .init = setup, .fini = teardown);

Test(zone_store, reads_a_file_once)
{
    struct zone_store *store = zone_store_new(directory);
    const char *fault = NULL;
    const struct zone *zone = zone_store_get(store, SLICE("Some/Where"), &fault);

    cr_assert_not_null(zone, "%s", fault);
    cr_expect_str_eq(zone_name(zone), "Some/Where");
    cr_expect_eq(zone_offset_s(zone, 0), 3600);
    write_file("Some/Where", "gone", 4);
    cr_expect_eq(zone_store_get(store, SLICE("Some/Where"), &fault), zone);
    cr_expect_eq(zone_store_get(store, SLICE("UTC"), &fault), zone_utc(), "needs no file");
    zone_store_free(store);
}

Test(zone_store, tzdir_is_honoured)
{
    const char *fault = "as it was";

    cr_assert_eq(setenv("TZDIR", directory, 1), 0);
    struct zone_store *store = zone_store_new(NULL);
    cr_expect_not_null(zone_store_get(store, SLICE("Some/Where"), &fault));
    cr_expect_str_eq(fault, "as it was");
    zone_store_free(store);
}

Test(zone_store, what_is_none)
{
    static const char *const names[] = {"Some/Other", "some/where", "Some", "Text", "Short",
        "localtime", "../zone_store", "Some/../Some/Where", "/Some/Where", "Some//Where", "Some/",
        ".", "", "Some/Where ", "+01:00", "Some\\Where"};
    struct zone_store *store = zone_store_new(directory);

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *fault = NULL;

        cr_expect_null(zone_store_get(store, slice_of(names[i]), &fault), "\"%s\"", names[i]);
        cr_expect_not_null(fault, "\"%s\"", names[i]);
    }
    zone_store_free(store);
}

Test(zone_store, names)
{
    char longest[ZONE_NAME_MAX + 2];

    memset(longest, 'A', sizeof(longest));
    cr_expect(zone_name_is_valid(SLICE("America/Argentina/ComodRivadavia")));
    cr_expect(zone_name_is_valid(SLICE("Etc/GMT+12")));
    cr_expect(zone_name_is_valid((struct slice){longest, ZONE_NAME_MAX}));
    cr_expect_not(zone_name_is_valid((struct slice){longest, ZONE_NAME_MAX + 1}));
    cr_expect_not(zone_name_is_valid((struct slice){"A\0B", 3}));
}

Test(zone_store, characters_of_names)
{
    for (int c = 1; c < 256; c++) {
        char name[] = {'A', (char)c, 'b', '\0'};
        bool expected =
            strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/", c) != NULL;
        cr_expect_eq(zone_name_is_valid(slice_of(name)), expected, "%d", c);
    }
    cr_expect_not(zone_name_is_valid(SLICE("localtime")));
    cr_expect_not(zone_name_is_valid(SLICE("posixrules")));
    cr_expect_not(zone_name_is_valid(SLICE("a//b")));
    cr_expect_not(zone_name_is_valid(SLICE("/a")));
    cr_expect_not(zone_name_is_valid(SLICE("a/")));
    cr_expect_not(zone_name_is_valid(SLICE("")));
}
