/* Which connections are ended to make room for others. */
#include "service/http/reaper.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "storage/base/clock.h"
#include "tests/lib/stand_in.h"

TestSuite(reaper, .timeout = 60);

#define HEAD_MS 60000
#define IDLE_MS 600000
#define MOST    20 /* connections of a test */

static int64_t now_ms;

static int64_t frozen_us(void)
{
    return now_ms * 1000;
}

struct end {
    struct reaper_entry entry; /* the server's */
    int server, client;
};

static struct reaper *reaper;
static struct end ends[MOST];
static unsigned n_ends, n_told;

static void count_farewell(const struct reaper_entry *entry, bool for_room)
{
    (void)entry;
    n_told += for_room;
}

static void setup(void)
{
    now_ms = monotonic_ms();
    stand_in.now_us = frozen_us;
    n_ends = n_told = 0;
    reaper = reaper_start(HEAD_MS, IDLE_MS, count_farewell);
    cr_assert_not_null(reaper);
}

static void teardown(void)
{
    for (unsigned i = 0; i < n_ends; i++) {
        reaper_forget(reaper, &ends[i].entry);
        (void)close(ends[i].server);
        (void)close(ends[i].client);
    }
    reaper_stop(reaper);
}

/* A connection that was made @ago_ms before. */
static struct end *connect_new(int64_t ago_ms)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t n = sizeof(address);
    struct end *e = &ends[n_ends++];
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    cr_assert(bind(listening, (struct sockaddr *)&address, n) == 0 && listen(listening, 1) == 0 &&
              getsockname(listening, (struct sockaddr *)&address, &n) == 0);
    e->client = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(connect(e->client, (struct sockaddr *)&address, n), 0);
    e->server = accept(listening, NULL, NULL);
    cr_assert_geq(e->server, 0);
    (void)close(listening);
    reaper_watch(reaper, &e->entry, e->server, now_ms - ago_ms);
    return e;
}

/* The client sends @n bytes, and the connection's thread reads them. */
static void take(struct end *e, size_t n)
{
    char bytes[16] = {0};
    cr_assert_eq(send(e->client, bytes, n, 0), (ssize_t)n);
    cr_assert_eq(recv(e->server, bytes, n, MSG_WAITALL), (ssize_t)n);
}

/* One whose first request, of 5 bytes, was over @ago_ms before. */
static struct end *connect_used(int64_t ago_ms)
{
    struct end *e = connect_new(2 * ago_ms);
    take(e, 5);
    reaper_idle(&e->entry, now_ms - ago_ms, 5);
    return e;
}

static bool ended(const struct end *e)
{
    return atomic_load(&e->entry.due_ms) == REAPER_ENDED;
}

/* Room is asked for. */
static bool makes_room_of(const struct end *e)
{
    reaper_make_room(reaper);
    return ended(e);
}

Test(reaper, a_new_connection_is_spared_for_a_moment, .init = setup, .fini = teardown)
{
    const struct end *e = connect_new(0);
    now_ms += 249;
    cr_expect_not(makes_room_of(e));
    now_ms += 1;
    cr_expect(makes_room_of(e));
    cr_expect_eq(n_told, 0u, "nothing came of a request");
}

Test(reaper, a_used_one_is_spared_for_a_second, .init = setup, .fini = teardown)
{
    const struct end *e = connect_used(999);
    cr_expect_not(makes_room_of(e));
    now_ms += 1;
    cr_expect(makes_room_of(e));
    cr_expect_eq(reaper_count(reaper).shed, 1u);
}

Test(reaper, a_request_that_comes_slowly_is_told_so, .init = setup, .fini = teardown)
{
    struct end *e = connect_used(5000);
    cr_assert(reaper_busy(&e->entry, now_ms - 999 + HEAD_MS));
    cr_expect_not(makes_room_of(e));
    now_ms += 1;
    cr_expect(makes_room_of(e));
    cr_expect_eq(n_told, 1u);
}

Test(reaper, an_answer_that_goes_slowly_ends_without_a_word, .init = setup, .fini = teardown)
{
    struct end *e = connect_used(5000);
    cr_assert(reaper_answer(&e->entry, now_ms - 999, now_ms + 5000));
    cr_expect_not(makes_room_of(e));
    now_ms += 1;
    cr_expect(makes_room_of(e));
    cr_expect_eq(n_told, 0u);
}

Test(reaper, a_request_that_waits_for_storage_is_spared, .init = setup, .fini = teardown)
{
    struct end *e = connect_used(5000);
    cr_assert(reaper_busy(&e->entry, REAPER_NEVER));
    cr_expect_not(makes_room_of(e));
    cr_assert(reaper_answer(&e->entry, now_ms - 5000, REAPER_NEVER));
    cr_expect_not(makes_room_of(e), "its last answer is on the way");
}

/* Its thread is late, not the client. */
Test(reaper, what_is_not_read_yet_spares_its_connection, .init = setup, .fini = teardown)
{
    struct end *e = connect_used(5000);
    cr_assert(reaper_busy(&e->entry, now_ms - 5000 + HEAD_MS));
    cr_assert_eq(send(e->client, "G", 1, 0), 1);
    cr_expect_not(makes_room_of(e));
    cr_assert_eq(recv(e->server, &(char){0}, 1, MSG_WAITALL), 1);
    cr_expect(makes_room_of(e));
}

Test(reaper, a_next_request_that_has_just_begun_is_spared, .init = setup, .fini = teardown)
{
    struct end *e = connect_used(10000);
    take(e, 3);
    cr_expect_not(makes_room_of(e), "nobody has noticed it before");
    now_ms += 2000;
    cr_expect(makes_room_of(e));
    cr_expect_eq(n_told, 1u);
}

/* Of those that have waited, the ones that have waited for less than half as long stay. */
Test(reaper, only_those_that_have_waited_longest_go, .init = setup, .fini = teardown)
{
    struct end *begun = connect_used(20000);
    take(begun, 3);
    atomic_store(&begun->entry.head_from_ms, now_ms - 500);
    const struct end *half = connect_used(4000);
    const struct end *shorter = connect_used(3999);
    for (int i = 0; i < 16; i++) {
        (void)connect_new(0);
    }
    const struct end *longest = connect_used(8000);
    cr_expect(makes_room_of(longest) && ended(half));
    cr_expect(!ended(shorter) && !ended(begun));
}

/* One that is ended already has made room, too. */
Test(reaper, a_sixteenth_goes_at_most, .init = setup, .fini = teardown)
{
    for (int i = 0; i < MOST; i++) {
        (void)connect_used(5000);
    }
    reaper_make_room(reaper);
    cr_expect_eq(reaper_count(reaper).shed, 2u);
    reaper_make_room(reaper);
    cr_expect_eq(reaper_count(reaper).shed, 2u, "they have not left");
    reaper_forget(reaper, &ends[--n_ends].entry);
    cr_expect(ended(&ends[n_ends]), "the newest is the first");
    (void)close(ends[n_ends].server);
    (void)close(ends[n_ends].client);
    reaper_make_room(reaper);
    cr_expect_eq(reaper_count(reaper).shed, 3u);
}
