#include "storage/read/cache.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "tests/lib/dice.h"

static struct ver ver_of(const char *text)
{
    struct ver ver = {.n = (uint8_t)strlen(text)};
    memcpy(ver.text, text, ver.n);
    return ver;
}

struct seen {
    char bytes[64];
    size_t n;
};

static void look(void *data, const void *value, size_t n)
{
    struct seen *seen = data;
    seen->n = n;
    memcpy(seen->bytes, value, n < sizeof(seen->bytes) ? n : sizeof(seen->bytes));
}

static bool has(struct cache *cache, const char *name, const char *ver_text, const char *value)
{
    struct seen seen = {.n = 0};
    struct cache_id id = cache_id(cache, name, strlen(name));
    struct ver ver = ver_of(ver_text);
    return cache_get(cache, &id, &ver, look, &seen) && seen.n == strlen(value) &&
           memcmp(seen.bytes, value, seen.n) == 0;
}

static void put(struct cache *cache, const char *name, const char *ver_text, const char *value)
{
    struct cache_id id = cache_id(cache, name, strlen(name));
    struct ver ver = ver_of(ver_text);
    cache_put(cache, &id, &ver, value, strlen(value));
}

Test(cache, gives_what_was_put_under_the_same_ver_only)
{
    struct cache *cache = cache_new(1 << 20);
    cr_assert_not(has(cache, "a", "v1", ""));
    put(cache, "a", "v1", "one");
    cr_assert(has(cache, "a", "v1", "one"));
    cr_assert_not(has(cache, "a", "v2", "one"));
    cr_assert_not(has(cache, "a", "v", "one"));
    cr_assert_not(has(cache, "b", "v1", "one"));
    put(cache, "a", "v2", "two!");
    cr_assert(has(cache, "a", "v2", "two!"));
    cr_assert_not(has(cache, "a", "v1", "one"), "the older one is overwritten");
    cache_free(cache);
}

Test(cache, keeps_nothing_without_a_ver)
{
    struct cache *cache = cache_new(1 << 20);
    put(cache, "a", "", "one");
    cr_assert_eq(cache_bytes(cache), 0);
    cr_assert_not(has(cache, "a", "", "one"));
    cache_free(cache);
}

/* Windows that end now have other minutes each minute, and need one value, not one a minute. */
Test(cache, ranges_under_one_name_replace_each_other)
{
    struct cache *cache = cache_new(1 << 20);
    struct cache_id one = cache_id(cache, "a", 1), two = one;
    struct ver ver = ver_of("v1");
    struct seen seen = {.n = 0};
    cr_assert_eq(one.range, 0u);
    one.range = 1;
    two.range = 2;
    cache_put(cache, &one, &ver, "one", 3);
    size_t bytes = cache_bytes(cache);
    cr_assert(cache_get(cache, &one, &ver, look, &seen));
    cr_assert_not(cache_get(cache, &two, &ver, look, &seen), "another range");
    cr_assert_not(has(cache, "a", "v1", "one"), "no range");
    cache_put(cache, &two, &ver, "two", 3);
    cr_assert(cache_get(cache, &two, &ver, look, &seen));
    cr_expect_eq(memcmp(seen.bytes, "two", 3), 0);
    cr_assert_not(cache_get(cache, &one, &ver, look, &seen));
    cr_expect_eq(cache_bytes(cache), bytes);
    cache_free(cache);
}

/* Values of 4 KiB, put between small ones, do not drop the small ones.  With no small ones they
 * have the whole cache. */
Test(cache, large_values_make_room_first)
{
    enum { LIMIT = 256 * 1024, SMALL = 1000, LARGE = 4096 };
    static char value[LARGE];
    struct cache *cache = cache_new(LIMIT);
    struct ver ver = ver_of("v");
    size_t large = 0, small = 0;
    struct seen seen;
    for (int i = 0; i < 1000; i++) {
        struct cache_id id = cache_id(cache, &i, sizeof(i));
        cache_put(cache, &id, &ver, value, LARGE);
    }
    cr_expect_gt(
        cache_bytes(cache), LIMIT - 16384 - LARGE - 1000); /* but for the heads of chains */
    for (int i = 1000; i < 1150; i++) {
        struct cache_id id = cache_id(cache, &i, sizeof(i));
        cache_put(cache, &id, &ver, value, SMALL);
    }
    for (int i = 1150; i < 2000; i++) {
        struct cache_id id = cache_id(cache, &i, sizeof(i));
        cache_put(cache, &id, &ver, value, LARGE);
    }
    for (int i = 0; i < 2000; i++) {
        struct cache_id id = cache_id(cache, &i, sizeof(i));
        bool found = cache_get(cache, &id, &ver, look, &seen);
        small += found && seen.n == SMALL;
        large += found && seen.n == LARGE;
        cr_expect(found || i < 1999, "the newest is there");
    }
    cr_expect_eq(small, 150u);
    cr_expect_geq(large, 10u);
    cache_free(cache);
}

Test(cache, of_no_bytes_keeps_nothing)
{
    struct cache *cache = cache_new(0);
    put(cache, "a", "v", "one");
    cr_assert_not(has(cache, "a", "v", "one"));
    cr_assert_eq(cache_bytes(cache), 0);
    cache_free(cache);
}

/* Ids differ from cache to cache: what collides in one does not in another. */
Test(cache, ids_are_keyed)
{
    struct cache *a = cache_new(1024);
    struct cache *b = cache_new(1024);
    struct cache_id in_a = cache_id(a, "page", 4);
    struct cache_id in_b = cache_id(b, "page", 4);
    struct cache_id again = cache_id(a, "page", 4);
    cr_assert_eq(memcmp(&in_a, &again, sizeof(in_a)), 0);
    cr_assert_neq(memcmp(&in_a, &in_b, sizeof(in_a)), 0);
    cache_free(a);
    cache_free(b);
}

Test(cache, drops_what_was_not_used_for_longest)
{
    struct cache *cache = cache_new(4096);
    char name[16];
    put(cache, "used", "v", "always");
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        put(cache, name, "v", name);
        cr_assert(has(cache, name, "v", name), "the newest is there");
        cr_assert(has(cache, "used", "v", "always"), "after %d others", i);
    }
    cr_assert_not(has(cache, "n0", "v", "n0"));
    cr_assert(has(cache, "n98", "v", "n98"));
    cr_assert_leq(cache_bytes(cache), 4096);
    cache_free(cache);
}

/* Against a model: never more than the limit, never another value than the last one put, and
 * nothing goes while there is room. */
Test(cache, behaves_like_a_bounded_map)
{
    enum { NAMES = 200, LIMIT = 64 * 1024 };
    struct dice dice = dice_make(dice_seed());
    struct cache *cache = cache_new(LIMIT);
    struct {
        int ver, size;
    } model[NAMES] = {{0}};
    static char value[40000];
    size_t hits = 0;
    for (int i = 0; i < 20000; i++) {
        int name = (int)dice_below(&dice, NAMES);
        struct cache_id id = cache_id(cache, &name, sizeof(name));
        char text[16];
        (void)snprintf(text, sizeof(text), "v%d", model[name].ver);
        struct ver ver = ver_of(text);
        if (dice_chance(&dice, 400)) {
            model[name].ver = i + 1;
            model[name].size = (int)dice_below(&dice, dice_chance(&dice, 20) ? 40000 : 1500);
            (void)snprintf(text, sizeof(text), "v%d", model[name].ver);
            ver = ver_of(text);
            memset(value, name, sizeof(value));
            cache_put(cache, &id, &ver, value, (size_t)model[name].size);
        }
        struct seen seen = {.n = 0};
        if (model[name].ver > 0 && cache_get(cache, &id, &ver, look, &seen)) {
            hits++;
            cr_assert_eq(seen.n, (size_t)model[name].size);
            cr_assert(seen.n == 0 || seen.bytes[0] == (char)name);
        }
        cr_assert_leq(cache_bytes(cache), LIMIT);
    }
    cr_assert_gt(hits, 1000);
    cr_assert_gt(cache_bytes(cache), LIMIT / 3);
    cache_free(cache);
}

static void *hammer(void *data)
{
    struct cache *cache = data;
    struct dice dice = dice_make((uint64_t)(uintptr_t)&dice);
    for (int i = 0; i < 20000; i++) {
        char name[16], text[16];
        (void)snprintf(name, sizeof(name), "n%d", (int)dice_below(&dice, 50));
        (void)snprintf(text, sizeof(text), "v%d", (int)dice_below(&dice, 2));
        struct cache_id id = cache_id(cache, name, strlen(name));
        struct ver ver = ver_of(text);
        struct seen seen = {.n = 0};
        if (cache_get(cache, &id, &ver, look, &seen)) {
            cr_assert(seen.n == strlen(name) && memcmp(seen.bytes, name, seen.n) == 0);
        } else {
            cache_put(cache, &id, &ver, name, strlen(name));
        }
    }
    return NULL;
}

Test(cache, is_thread_safe)
{
    struct cache *cache = cache_new(4096);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, hammer, cache), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    cache_free(cache);
}
