#include "storage/redis/resolver.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <criterion/criterion.h>

#include "storage/base/clock.h"
#include "tests/lib/stand_in.h"

TestSuite(resolver, .timeout = 60);

/* A name server of our own, which answers when it is told to. */
static sem_t go, asked, gone;
static atomic_int n_asked;

static bool slow(const char *host, char address[RESOLVER_ADDRESS_MAX])
{
    (void)snprintf(address, RESOLVER_ADDRESS_MAX, "10.0.0.%d", ++n_asked);
    (void)sem_post(&asked);
    while (sem_wait(&go) != 0) {
    }
    (void)sem_post(&gone);
    return strcmp(host, "redis.example") == 0;
}

static void begin(void)
{
    cr_assert(
        sem_init(&go, 0, 0) == 0 && sem_init(&asked, 0, 0) == 0 && sem_init(&gone, 0, 0) == 0);
}

static int64_t soon(void)
{
    return monotonic_ms() + 20;
}

static int64_t in_good_time(void)
{
    return monotonic_ms() + 30000;
}

static void expect_found(struct resolver *r, int64_t deadline_ms, const char *wanted)
{
    char address[RESOLVER_ADDRESS_MAX];
    cr_expect(resolver_ask(r, deadline_ms, address), "%s", address);
    cr_expect_str_eq(address, wanted);
}

static void expect_late(struct resolver *r)
{
    char address[RESOLVER_ADDRESS_MAX];
    cr_expect_not(resolver_ask(r, soon(), address));
    cr_expect_str_eq(address, "the name servers do not answer");
}

Test(resolver, addresses_are_not_looked_up)
{
    static const char *const hosts[] = {"127.0.0.1", "::1", "2001:db8::17"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct resolver *r = resolver_new(hosts[i], slow);
        expect_found(r, 0, hosts[i]);
        resolver_free(r);
    }
    cr_expect_eq(n_asked, 0);
}

Test(resolver, the_systems_lookup)
{
    char address[RESOLVER_ADDRESS_MAX];
    struct resolver *r = resolver_new("localhost", NULL);
    expect_found(r, in_good_time(), "127.0.0.1");
    resolver_free(r);
    r = resolver_new("a name that cannot be", NULL);
    cr_expect_not(resolver_ask(r, in_good_time(), address));
    cr_expect(strlen(address) > 0 && strstr(address, "do not answer") == NULL, "%s", address);
    resolver_free(r);
}

Test(resolver, a_late_answer_serves_the_next_who_asks)
{
    begin();
    struct resolver *r = resolver_new("redis.example", slow);
    expect_late(r);
    expect_late(r); /* the same lookup still */
    while (sem_wait(&asked) != 0) {
    }
    cr_expect_eq(n_asked, 1);
    (void)sem_post(&go);
    expect_found(r, in_good_time(), "10.0.0.1");
    expect_found(r, 0, "10.0.0.1"); /* fresh: no other lookup */
    cr_expect_eq(n_asked, 1);
    resolver_free(r);
}

static _Atomic int64_t ahead_us; /* of the clock that the resolver sees */

static int64_t clock_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return ahead_us + (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A server may have moved: what its name meant is asked again after a while. */
Test(resolver, an_answer_does_not_serve_for_ever)
{
    begin();
    struct resolver *r = resolver_new("redis.example", slow);
    stand_in.now_us = clock_us;
    (void)sem_post(&go);
    expect_found(r, in_good_time(), "10.0.0.1");
    ahead_us = RESOLVER_FRESH_MS * 1000;
    (void)sem_post(&go);
    expect_found(r, in_good_time(), "10.0.0.2");
    resolver_free(r);
}

Test(resolver, why_not)
{
    begin();
    char address[RESOLVER_ADDRESS_MAX];
    struct resolver *r = resolver_new("other.example", slow);
    (void)sem_post(&go);
    cr_expect_not(resolver_ask(r, in_good_time(), address));
    cr_expect_str_eq(address, "10.0.0.1", "what the lookup said");
    resolver_free(r);
}

static void *ask(void *data)
{
    expect_found(data, in_good_time(), "10.0.0.1");
    return NULL;
}

Test(resolver, many_wait_for_one_lookup)
{
    begin();
    enum { N = 8 };
    pthread_t threads[N];
    struct resolver *r = resolver_new("redis.example", slow);
    for (size_t i = 0; i < N; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, ask, r), 0);
    }
    while (sem_wait(&asked) != 0) {
    }
    (void)sem_post(&go);
    for (size_t i = 0; i < N; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    }
    cr_expect_eq(n_asked, 1);
    resolver_free(r);
}

Test(resolver, freed_while_it_looks_up)
{
    begin();
    struct resolver *r = resolver_new("redis.example", slow);
    expect_late(r);
    resolver_free(r);
    (void)sem_post(&go);
    while (sem_wait(&gone) != 0) { /* the thread gives back what is left: a sanitizer looks */
    }
}
