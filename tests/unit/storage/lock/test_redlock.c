/* The rules of time and of quorums: redlock.h; and the token: lock.h. */
#include "storage/lock/redlock.h"

#include <criterion/criterion.h>
#include <sodium.h>

TestSuite(redlock, .timeout = 60);

/* validity = lease - elapsed - drift, drift = 1 % of the lease (cut off) + 2 ms */
Test(redlock, validity)
{
    static const int64_t cases[][4] = {/* asked, lease, now, validity */
        {0, 10000, 0, 9898}, {0, 10000, 1500, 8398}, {5000, 10000, 5000, 9898}, {0, 8000, 0, 7918},
        {0, 100, 0, 97}, {0, 99, 0, 97}, {0, 199, 0, 196}, {0, 10000, 9898, 0},
        {0, 10000, 20000, -10102}, {0, 2, 0, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(lock_until_ms(cases[i][0], cases[i][1]) - cases[i][2], cases[i][3], "%zu", i);
    }
}

Test(redlock, a_quorum_is_more_than_half)
{
    static const unsigned quorums[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
    for (unsigned n = 1; n < 10; n++) {
        cr_expect_eq(redlock_quorum(n), quorums[n]);
        cr_expect_gt(2 * redlock_quorum(n), n);
    }
}

/* Mine with a quorum, lost once no quorum is possible any more, unknown in between. */
Test(redlock, every_count_of_answers)
{
    for (unsigned n = 1; n <= LOCK_SERVERS_MAX; n++) {
        for (unsigned yes = 0; yes <= n; yes++) {
            for (unsigned no = 0; yes + no <= n; no++) {
                enum lock_answer answer = redlock_judge(n, yes, no);
                bool may = n - no >= n / 2 + 1; /* those that are silent may have said yes */
                cr_expect_eq(answer == LOCK_MINE, yes >= n / 2 + 1, "%u of %u", yes, n);
                cr_expect_eq(answer == LOCK_OTHERS, !may, "%u no of %u", no, n);
            }
        }
    }
    cr_expect_eq(redlock_judge(0, 0, 0), LOCK_MINE, "without servers there is nothing to ask");
}

Test(redlock, when_a_quorum_is_free)
{
    cr_expect_eq(redlock_left_ms(3, (int64_t[]){9000, 0, 7000}), 7000);
    cr_expect_eq(redlock_left_ms(3, (int64_t[]){0, 0, 7000}), 0);
    cr_expect_eq(redlock_left_ms(3, (int64_t[]){5, 5, 5}), 5);
    cr_expect_eq(redlock_left_ms(1, (int64_t[]){4}), 4);
    cr_expect_eq(redlock_left_ms(5, (int64_t[]){50, 10, 40, 20, 30}), 30);
    cr_expect_eq(redlock_left_ms(4, (int64_t[]){1, 2, 3, 4}), 3);
    cr_expect_eq(redlock_left_ms(0, NULL), 0);
}

/* 200 ms and at most as much again, by chance: two that tried at once do not do so again. */
Test(redlock, retries_are_spread)
{
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        int64_t ms = lock_retry_ms(i * 2654435761u);
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    cr_expect(least >= 200 && least < 210, "%d", (int)least);
    cr_expect(most <= 400 && most > 390, "%d", (int)most);
    cr_expect_leq(lock_retry_ms(UINT32_MAX), 400);
}

Test(redlock, lists_of_servers)
{
    struct redlock redlock;
    cr_expect(redlock_init(&redlock, "", NULL) && redlock.n == 0);
    cr_expect(
        redlock_init(&redlock, "redis://a:1,unix:/b,redis://:p%2Cq@c:3/4", NULL) && redlock.n == 3);
    cr_expect_str_eq(redlock.servers[1].endpoint.address.host, "/b");
    cr_expect_str_eq(redlock.servers[2].endpoint.login.password, "p,q");
    static const char *const bad[] = {",", "redis://a:1,", ",redis://a:1", "redis://a:1,,unix:/b",
        "a",
        "unix:/1,unix:/2,unix:/3,"
        "unix:/4,unix:/5,unix:/6,unix:/7,unix:/8,unix:/9,unix:/10"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_not(redlock_init(&redlock, bad[i], NULL), "%s", bad[i]);
    }
}

/* 128 random bits, and a name for people. */
Test(redlock, tokens)
{
    struct lock a = {.lease_ms = 1};
    struct lock b = {.lease_ms = 1};
    cr_assert(sodium_init() >= 0);
    lock_draw(&a, "host:1");
    lock_draw(&b, "host:1");
    cr_expect_eq(strspn(a.token, "0123456789abcdef"), 32);
    cr_expect_str_eq(a.token + 32, " host:1");
    cr_expect_neq(strncmp(a.token, b.token, 32), 0);
    cr_expect(slice_equal(lock_holder(slice_of(a.token)), SLICE("host:1")));
    cr_expect(slice_equal(lock_holder(SLICE("whatever")), SLICE("whatever")));
}
