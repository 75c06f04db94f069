/* test_entry_users.c - which users may have events in an entry: storage/log/entry_users.h */
#include "storage/log/entry_users.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/log/chunk.h"
#include "tests/lib/fold_fixture.h"

#define EVENTS_MAX 3000
#define NAME_MAX_  32

static char names[EVENTS_MAX][NAME_MAX_];
static struct log_entry *entry;
static struct core *core;

static struct slice name_of(size_t i)
{
    (void)snprintf(names[i], NAME_MAX_, "user-%zu", i);
    return slice_of(names[i]);
}

/* An entry of @n events, each of a user of its own. */
static void make(size_t n)
{
    struct event *events = calloc(n, sizeof(*events));
    cr_assert_not_null(events);
    for (size_t i = 0; i < n; i++) {
        events[i] = (struct event){
            .at_s = FOLD_NOW_S, .site = SLICE("shop"), .page = SLICE("/"), .user = name_of(i)};
    }
    core = fold_core_make(1);
    entry = fold_entry_of("00000000000000aa", 1, FOLD_NOW_S, events, n);
    free(events);
}

static void drop(void)
{
    entry_release(entry);
    fold_core_drop(core);
}

/* Of how many of @n users that are not there the filter says that they may be. */
static size_t wrong(size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        char name[NAME_MAX_];
        (void)snprintf(name, sizeof(name), "other-%zu", i);
        found += entry_may_have(entry, SLICE("shop"), slice_of(name));
    }
    return found;
}

static void check_all(size_t n)
{
    make(n);
    for (size_t i = 0; i < n; i++) {
        cr_assert(entry_may_have(entry, SLICE("shop"), name_of(i)), "user %zu", i);
    }
    cr_expect_lt(wrong(10000), 300u, "3 of 100");
    drop();
}

Test(entry_users, finds_each_and_few_others)
{
    check_all(1);
    check_all(30);
    check_all(EVENTS_MAX);
}

Test(entry_users, another_site_has_other_users)
{
    make(1);
    cr_expect_not(entry_may_have(entry, SLICE("blog"), name_of(0)));
    drop();
}

static void count_user(void *data, const struct chunk_event *event)
{
    size_t *n = data;
    *n += event->user.n > 0;
}

Test(entry_users, reads_chunks_where_a_text_stands)
{
    size_t n = 0;
    make(30);
    cr_assert(entry_each_near(entry, SLICE("user-7"), count_user, &n));
    cr_expect_eq(n, 30u, "its requests without a key are read together");
    cr_assert(entry_each_near(entry, SLICE("nobody"), count_user, &n));
    cr_expect_eq(n, 30u);
    drop();
}

static void *ask(void *data)
{
    size_t *n = data;
    for (size_t i = 0; i < EVENTS_MAX; i++) {
        char name[NAME_MAX_];
        (void)snprintf(name, sizeof(name), "user-%zu", i);
        *n += entry_may_have(entry, SLICE("shop"), slice_of(name));
    }
    return NULL;
}

/* Both may make the filter; one is kept, the other freed. */
Test(entry_users, two_threads_ask_at_once)
{
    for (int round = 0; round < 20; round++) {
        pthread_t threads[2];
        size_t n[2] = {0};
        make(EVENTS_MAX);
        for (int t = 0; t < 2; t++) {
            cr_assert_eq(pthread_create(&threads[t], NULL, ask, &n[t]), 0);
        }
        for (int t = 0; t < 2; t++) {
            cr_assert_eq(pthread_join(threads[t], NULL), 0);
            cr_expect_eq(n[t], (size_t)EVENTS_MAX);
        }
        drop();
    }
}
