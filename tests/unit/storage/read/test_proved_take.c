/* Replies to plain pieces: which hold, and what is learnt of their partition. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "storage/base/clock.h"
#include "storage/read/proved_read.h"
#include "storage/redis/connect.h"
#include "storage/time/units.h"

TestSuite(proved_take, .timeout = 60);

#define NOON_S (20000 * 24 * HOUR_S + 12 * HOUR_S)
#define PIECES 2

/* A reading of minutes of an open hour in partition 3, and the connection that it is asked over. */
static struct taking {
    struct core *core;
    struct proved_partition known[4];
    struct proved_piece pieces[PIECES];
    struct session session;
    struct storage_job job;
    bool lost;
    int server; /* the other end */
    struct proved_read read;
} t;

static void connect_to_nobody(void)
{
    char error[160];
    char directory[] = "/tmp/tallyd-unit-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct redis_endpoint endpoint = {.db = 0};
    struct redis_look none = {0};
    cr_assert_not_null(mkdtemp(directory));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
    memcpy(endpoint.address.host, address.sun_path, sizeof(address.sun_path));
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(listener, 1), 0);
    t.session.redis =
        redis_connect(&endpoint, NULL, &none, monotonic_ms() + 10000, error, sizeof(error));
    cr_assert_not_null(t.session.redis, "%s", error);
    t.server = accept(listener, NULL, NULL);
    (void)close(listener);
    (void)unlink(address.sun_path);
    (void)rmdir(directory);
}

static void setup(void)
{
    static struct bucket minute[] = {{LEVEL_MINUTE, NOON_S, NOON_S + 60}};
    static const struct cover one = {.buckets = minute, .n = 1};
    t.core = calloc(1, sizeof(*t.core));
    cr_assert_not_null(t.core);
    core_init(t.core);
    t.core->cache = cache_new(1 << 16);
    connect_to_nobody();
    t.job.deadline_ms = monotonic_ms() + 10000;
    t.known[3].view = (struct partition_view){.known = true,
        .state = rollup_state_initial(NOON_S),
        .ver = {2, "v1"},
        .over = {14, "00000000000 o1"},
        .fold = {2, "f1"},
        .ver_held = true,
        .over_held = true,
        .fold_held = true,
        .seen_ms = monotonic_ms()};
    t.core->views[3] = t.known[3].view;
    for (int i = 0; i < PIECES; i++) {
        t.pieces[i] = (struct proved_piece){
            .partition = 3, .cover = &one, .n = 1, .n_commands = 1, .kind = PIECE_PLAIN};
        for (unsigned proof = PROOF_VER; proof < N_PROOFS; proof++) {
            t.pieces[i].planned[proof] = ver_hash(proof_ver(&t.known[3].view, proof));
        }
    }
    t.read = (struct proved_read){.core = t.core,
        .session = &t.session,
        .job = &t.job,
        .ret_lost = &t.lost,
        .zone = zone_utc(),
        .begun_ms = monotonic_ms(),
        .now_s = NOON_S,
        .latest_s = NOON_S,
        .known = t.known,
        .pieces = t.pieces,
        .n_pieces = PIECES,
        .n_sent = PIECES};
}

static void teardown(void)
{
    redis_close(t.session.redis);
    (void)close(t.server);
    cache_free(t.core->cache);
    core_release(t.core);
    free(t.core);
}

/* Redis says @data to the next piece, and these ids behind it.  True: the piece holds. */
static bool take(const char *data, const char *ver, const char *fold)
{
    const struct reply *items = NULL;
    char text[256];
    int n = snprintf(text, sizeof(text),
        "*1\r\n%s\r\n*3\r\n$2\r\n%s\r\n$14\r\n00000000000 o1\r\n$2\r\n%s\r\n", data, ver, fold);
    cr_assert_eq(send(t.server, text, (size_t)n, MSG_NOSIGNAL), (ssize_t)n);
    cr_assert_eq(proved_take(&t.read, &items, NULL), STORAGE_OK);
    return items != NULL;
}

static bool keeps(void)
{
    static struct bucket hour[] = {{LEVEL_HOUR, NOON_S - HOUR_S, NOON_S}};
    static const struct cover closed = {.buckets = hour, .n = 1};
    struct remembered_run run = {.n = 1, .proof = PROOF_VER};
    struct cache_id id = cache_id(t.core->cache, "run", 3);
    proved_keep(&t.read, 3, &closed, &run, &id, "value", 5);
    return proved_may_keep(&t.read, 3, &closed, &run);
}

Test(proved_take, pieces_with_the_same_ids_hold, .init = setup, .fini = teardown)
{
    cr_expect(take("$1\r\n5", "v1", "f1"));
    cr_expect(take("$1\r\n5", "v1", "f1"));
    cr_expect_not(t.read.stale);
    cr_expect(keeps());
}

Test(proved_take, a_void_piece_leaves_its_partition_unremembered, .init = setup, .fini = teardown)
{
    cr_expect_not(take("$1\r\n5", "v2", "f1"));
    cr_expect(t.read.stale && t.read.careful);
    cr_expect(take("$1\r\n5", "v1", "f1"), "the second piece holds");
    cr_expect(t.read.stale, "and does not mend the first");
    cr_expect_not(keeps());
}

/* Of several servers an earlier piece may be carried out later, and say so of a later time. */
Test(proved_take, what_an_earlier_piece_says_proves_nothing, .init = setup, .fini = teardown)
{
    t.known[3].view.ver = (struct ver){2, "v2"};
    cr_expect_not(take("$1\r\n5", "v2", "f1"));
    cr_expect(t.read.stale && t.read.careful);
    cr_expect_not(keeps());
}

Test(proved_take, minutes_hold_and_are_not_remembered, .init = setup, .fini = teardown)
{
    t.known[3].view.fold = (struct ver){2, "f2"};
    cr_expect(take("$1\r\n5", "v1", "f2"));
    cr_expect_eq(t.known[3].changed, 1u << PROOF_FOLD);
    cr_expect(keeps(), "by the other id");
}

/* A transaction about a partition without data, at @now_s by Redis's clock. */
static void take_moment(int64_t now_s)
{
    const struct reply *items = NULL;
    char text[256];
    t.pieces[t.read.next].kind = PIECE_MULTI;
    int n = snprintf(text, sizeof(text),
        "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n*6\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-"
        "1\r\n"
        "$1\r\n5\r\n*2\r\n$10\r\n%" PRId64 "\r\n$1\r\n0\r\n",
        now_s);
    cr_assert_eq(send(t.server, text, (size_t)n, MSG_NOSIGNAL), (ssize_t)n);
    cr_assert_eq(proved_take(&t.read, &items, NULL), STORAGE_OK);
}

/* Plain pieces are kept for two hours from the attempt's clock on, by that clock. */
Test(proved_take, a_clock_that_leaps_makes_the_attempt_void, .init = setup, .fini = teardown)
{
    take_moment(NOON_S + HOUR_S);
    cr_expect_not(t.read.stale);
    t.read.first_s = 0;
    take_moment(NOON_S + HOUR_S + 1);
    cr_expect(t.read.stale);
}

/* The answer to a question that is just asked again needs no look at the state: nothing is new. */
Test(proved_take, what_was_just_seen_is_not_learnt_again, .init = setup, .fini = teardown)
{
    t.known[3].view.seen_ms = t.core->views[3].seen_ms = t.read.begun_ms - 50;
    cr_expect(take("$1\r\n5", "v1", "f1"));
    cr_expect_eq(t.core->views[3].seen_ms, t.read.begun_ms - 50);
    cr_expect(t.known[3].seen);
}

/* Open minutes are recalled by what was seen within FOLD_STEADY_MS: so it is said that it was. */
Test(proved_take, what_was_seen_a_while_ago_is_seen_anew, .init = setup, .fini = teardown)
{
    t.known[3].view.seen_ms = t.core->views[3].seen_ms = t.read.begun_ms - FOLD_STEADY_MS / 2;
    cr_expect(take("$1\r\n5", "v1", "f1"));
    cr_expect_geq(t.core->views[3].seen_ms, t.read.begun_ms);
}

/* The same id for the second time: from now on it is expected to stay. */
Test(proved_take, an_id_that_stays_is_noted, .init = setup, .fini = teardown)
{
    t.known[3].view.fold_held = t.core->views[3].fold_held = false;
    cr_expect(take("$1\r\n5", "v1", "f1"));
    cr_expect(t.core->views[3].fold_held);
    t.known[3].view.over_held = t.core->views[3].over_held = false;
    cr_expect(take("$1\r\n5", "v1", "f1"));
    cr_expect(t.core->views[3].over_held);
}

Test(proved_take, a_new_id_is_learnt, .init = setup, .fini = teardown)
{
    cr_expect(take("$1\r\n5", "v1", "f2"));
    cr_expect_eq(memcmp(t.core->views[3].fold.text, "f2", 2), 0);
    cr_expect_not(t.core->views[3].fold_held);
    cr_expect_eq(t.known[3].changed, 1u << PROOF_FOLD);
    cr_expect(keeps(), "by the other id");
}

/* Partitions that were planned earlier took hours for empty that are not. */
Test(proved_take, a_later_horizon_does_not_hold, .init = setup, .fini = teardown)
{
    t.core->latest_s = NOON_S + 48 * HOUR_S;
    (void)take("$1\r\n5", "v1", "f2");
    cr_expect(t.read.stale);
}

/* An error reply among the data is refused with Redis's words. */
Test(proved_take, an_error_is_refused, .init = setup, .fini = teardown)
{
    static const char text[] = "-WRONGTYPE no string\r\n*3\r\n$2\r\nv1\r\n$14\r\n00000000000 o1\r\n"
                               "$2\r\nf1\r\n";
    const struct reply *items = NULL;
    cr_assert_eq(send(t.server, text, sizeof(text) - 1, MSG_NOSIGNAL), (ssize_t)sizeof(text) - 1);
    cr_expect_neq(proved_take(&t.read, &items, NULL), STORAGE_OK);
    cr_expect_null(items);
    cr_expect_str_eq(t.job.detail, "WRONGTYPE no string");
    cr_expect_eq(t.known[3].changed, ~0u);
}
