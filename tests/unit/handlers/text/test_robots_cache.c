#include "handlers/text/robots_cache.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const unsigned char key[ROBOTS_CACHE_KEY_BYTES] = {1, 2, 3};

/* The first time, and again, whatever else was looked at between. */
Test(robots_cache, says_what_the_search_says)
{
    static struct robots_cache cache;
    robots_cache_init(&cache, key);
    static const struct {
        const char *agent;
        bool is_robot;
    } rows[] = {
        {"Googlebot/2.1", true},
        {"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", false},
        {"curl/7.88.1", false},
        {"x", false},
        {"bot", true},
    };
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            cr_expect_eq(robots_cache_known(&cache, slice_of(rows[i].agent)), rows[i].is_robot,
                "round %u: %s", round, rows[i].agent);
        }
    }
    cr_expect_not(robots_cache_known(&cache, (struct slice){NULL, 0}));
}

/* More agents than there are places: each takes another's. */
Test(robots_cache, a_flood_changes_no_answer)
{
    static struct robots_cache cache;
    robots_cache_init(&cache, key);
    char text[32];
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 5 * ROBOTS_CACHE_SLOTS; i++) {
            (void)snprintf(text, sizeof(text), i % 3 == 0 ? "%u bot" : "%u boat", i);
            cr_assert_eq(robots_cache_known(&cache, slice_of(text)), i % 3 == 0, "%s", text);
        }
    }
}

/* Agents that are alike as far as they are looked at are the same. */
Test(robots_cache, long_agents)
{
    static struct robots_cache cache;
    robots_cache_init(&cache, key);
    char text[ROBOTS_LOOKED_AT + 16];
    memset(text, 'x', sizeof(text));
    cr_expect_not(robots_cache_known(&cache, (struct slice){text, ROBOTS_LOOKED_AT}));
    memcpy(text + ROBOTS_LOOKED_AT, "Googlebot/2.1", 13);
    cr_expect_not(robots_cache_known(&cache, (struct slice){text, sizeof(text)}));
    memcpy(text + ROBOTS_LOOKED_AT - 9, "Googlebot", 9);
    cr_expect(robots_cache_known(&cache, (struct slice){text, ROBOTS_LOOKED_AT}));
    cr_expect(robots_cache_known(&cache, (struct slice){text, sizeof(text)}));
}

static void *look(void *cache)
{
    char text[32];
    size_t wrong = 0;
    for (unsigned i = 0; i < 200000; i++) {
        (void)snprintf(text, sizeof(text), "%u%s", i % 9000, i % 2 == 0 ? "bot" : "");
        wrong += robots_cache_known(cache, slice_of(text)) != (i % 2 == 0);
    }
    return wrong == 0 ? NULL : cache;
}

Test(robots_cache, threads_share_it)
{
    static struct robots_cache cache;
    robots_cache_init(&cache, key);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, look, &cache), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *wrong;
        cr_assert_eq(pthread_join(threads[i], &wrong), 0);
        cr_expect_null(wrong);
    }
}
