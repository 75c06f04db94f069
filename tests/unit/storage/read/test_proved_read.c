/* What a proved reading remembers, and when it relies on what it recalls.  (The conversation with
 * Redis is tried by tests/integration/test_cache.py and those beside it.) */
#include "storage/read/proved_read.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "storage/base/clock.h"

TestSuite(proved_read, .timeout = 60);

#define HOUR_S INT64_C(3600)
#define NOON_S (20000 * 24 * HOUR_S + 12 * HOUR_S)

static struct core core;
static struct proved_partition known[PARTITIONS_MAX];
static struct bucket hours[] = {
    {LEVEL_HOUR, NOON_S - 2 * HOUR_S, NOON_S - HOUR_S}, {LEVEL_HOUR, NOON_S - HOUR_S, NOON_S}};
static const struct cover cover = {.buckets = hours, .n = 2};
static const struct remembered_run run = {.n = 2, .proof = PROOF_VER};

/* A reading that was planned by a state in which all hours up to noon are closed. */
static struct proved_read planned(void)
{
    struct proved_read r = {.core = &core, .zone = zone_utc(), .known = known};
    core.cache = core.cache != NULL ? core.cache : cache_new(1 << 16);
    known[3] = (struct proved_partition){.view = {.known = true,
                                             .state = rollup_state_initial(zone_utc(), NOON_S),
                                             .ver = {2, "v1"},
                                             .over = {2, "o1"}}};
    return r;
}

static void note(void *data, const void *value, size_t n)
{
    (void)value;
    *(size_t *)data = n;
}

static bool recalls(struct proved_read *r, const struct remembered_run *of)
{
    struct cache_id id = cache_id(core.cache, "run", 3);
    size_t n = 0;
    return proved_recall(r, 3, of, &id, note, &n) && n == 5;
}

static bool keeps(struct proved_read *r, const struct remembered_run *of)
{
    struct cache_id id = cache_id(core.cache, "run", 3);
    return proved_keep(r, 3, &cover, of, &id, "value", 5);
}

Test(proved_read, what_is_kept_is_recalled_by_the_same_proof)
{
    struct proved_read r = planned();
    cr_assert(proved_may_recall(&r, 3));
    cr_expect_not(recalls(&r, &run), "nothing was kept");
    cr_expect_eq(known[3].unproved, 0);
    cr_expect(keeps(&r, &run));
    cr_expect(recalls(&r, &run));
    cr_expect_eq(known[3].unproved, 1u << PROOF_VER, "the next reply must have it");
    known[3].view.ver.text[1] = '2';
    cr_expect_not(recalls(&r, &run), "another ver");
    known[3].view.ver.text[1] = '1';
    known[3] = (struct proved_partition){.view = known[3].view, .seen = true};
    cr_expect(recalls(&r, &run));
    cr_expect_eq(known[3].unproved, 0, "a reply of this question has had the proof");
    cache_free(core.cache);
}

Test(proved_read, what_no_one_proof_stands_for_is_not_kept)
{
    struct proved_read r = planned();
    known[3].changed = 1u << PROOF_OVER;
    cr_expect(keeps(&r, &run), "another proof has changed");
    known[3].changed = 1u << PROOF_VER;
    cr_expect_not(keeps(&r, &run));
    known[3].changed = 0;
    known[3].view.state.readers_s[LEVEL_HOUR] -= HOUR_S;
    cr_expect_not(keeps(&r, &run), "an hour is open");
    cache_free(core.cache);
}

Test(proved_read, some_readings_recall_nothing)
{
    struct proved_read r = planned();
    r.forgetful = true;
    cr_expect_not(proved_may_recall(&r, 3));
    r = planned();
    r.full = true;
    cr_expect_not(proved_may_recall(&r, 3));
    r = planned();
    known[3].view.known = false;
    cr_expect_not(proved_may_recall(&r, 3), "an empty partition proves nothing");
    r = planned();
    known[3].view.over_held = false;
    struct remembered_run minutes = {.n = 2, .proof = PROOF_OVER};
    struct cache_id id = cache_id(core.cache, "run", 3);
    cache_put(core.cache, &id, &known[3].view.over, "value", 5);
    cr_expect_not(recalls(&r, &minutes), "over is about to change");
    known[3].view.over_held = true;
    cr_expect(recalls(&r, &minutes));
    cache_free(core.cache);
    core.cache = NULL;
    cr_expect_not(proved_may_recall(&r, 3), "there is no cache");
}

Test(proved_read, an_attempt_holds_until_the_minute_ends)
{
    struct window_question asked = {.to_is_now = true};
    struct proved_read r = {.asked = &asked, .window = {NOON_S - HOUR_S, NOON_S}};
    r.first_s = NOON_S - 1;
    cr_expect(proved_holds(&r));
    r.first_s = NOON_S;
    cr_expect_not(proved_holds(&r), "the next minute has begun");
    asked.to_is_now = false;
    cr_expect(proved_holds(&r));
    r.stale = true;
    cr_expect_not(proved_holds(&r));
}

/* ---- a piece that is void ---- */

/* A connection over which @text is the reply to whatever is asked. */
static struct redis *connection_that_says(const char *text)
{
    char error[160];
    char directory[] = "/tmp/tallyd-unit-XXXXXX";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct redis_endpoint endpoint = {.unix_path = ""};
    struct redis_look none = {0};
    cr_assert_not_null(mkdtemp(directory));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
    memcpy(endpoint.unix_path, address.sun_path, sizeof(endpoint.unix_path));
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    cr_assert_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    cr_assert_eq(listen(listener, 1), 0);
    struct redis *redis =
        redis_connect(&endpoint, &none, monotonic_ms() + 10000, error, sizeof(error));
    cr_assert_not_null(redis, "%s", error);
    int fd = accept(listener, NULL, NULL);
    cr_assert_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    (void)close(listener);
    (void)unlink(address.sun_path);
    (void)rmdir(directory);
    return redis; /* fd ends with the test's process */
}

/* Two pieces of the same partition that read a minute of the open hour.  @ver is behind the first
 * one's data.  True: the partition may be remembered. */
static bool remembers_behind(const char *ver, bool expect_void)
{
    static struct bucket minute[] = {{LEVEL_MINUTE, NOON_S, NOON_S + 60}};
    static const struct cover one = {.buckets = minute, .n = 1};
    static const char data[] = "*1\r\n$1\r\n5\r\n*3\r\n$2\r\n%s\r\n$2\r\no1\r\n$2\r\nf1\r\n";
    struct proved_read r = planned();
    struct proved_piece pieces[2];
    struct session session = {.redis = NULL};
    struct storage_job job = {.deadline_ms = monotonic_ms() + 10000};
    const struct reply *items = NULL;
    char text[256];
    bool lost = false;
    int n = snprintf(text, sizeof(text), data, ver);
    (void)snprintf(text + n, sizeof(text) - (size_t)n, data, "v1");
    session.redis = connection_that_says(text);
    known[3].view.fold = (struct ver){2, "f1"};
    known[3].view.over_held = known[3].view.fold_held = known[3].view.ver_held = true;
    known[3].view.seen_ms = r.begun_ms = monotonic_ms();
    for (int i = 0; i < 2; i++) {
        pieces[i] = (struct proved_piece){
            .partition = 3, .cover = &one, .n = 1, .n_commands = 1, .kind = PIECE_PLAIN};
    }
    r.session = &session;
    r.job = &job;
    r.ret_lost = &lost;
    r.pieces = pieces;
    r.n_pieces = r.n_sent = 2;
    cr_assert_eq(proved_take(&r, &items, NULL), STORAGE_OK);
    cr_expect_eq(items == NULL, expect_void);
    cr_expect_eq(r.stale, expect_void);
    cr_assert_eq(proved_take(&r, &items, NULL), STORAGE_OK);
    cr_expect_not_null(items, "the second piece holds");
    cr_expect_eq(r.stale, expect_void, "and does not mend the first");
    redis_close(session.redis);
    return keeps(&r, &run);
}

Test(proved_read, a_void_piece_leaves_its_partition_unremembered)
{
    cr_expect(remembers_behind("v1", false));
    cr_expect_not(remembers_behind("v2", true));
    cache_free(core.cache);
}
