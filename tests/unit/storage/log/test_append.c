#include "storage/log/append.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/log/record.h"
#include "storage/schema/key.h"
#include "tests/lib/dice.h"
#include "tests/lib/fake_wire.h"
#include "tests/lib/stand_in.h"

/* A simulation: the appender, Redis in memory, and a seeded schedule of everything that can go
 * wrong between them.  Some thousand short histories; the seed of one that fails is printed, and
 * TALLYD_TEST_SEED begins with it. */
TestSuite(append, .timeout = 120);

#define HISTORIES  8000
#define SCHEDULE   160
#define REQUESTS   60 /* of a history, at most */
#define KEYS       4
#define LATE_WIRES 3
#define GO_BACK    2000  /* ms, of a history with fsync everysec */
#define HOLD       10000 /* ms, of a history in which a replica may take over */
#define SLEEP_MS   31000
#define SILENCE    5000 /* as in loop.c */
#define READS      8

struct request {
    struct storage_job job;
    struct request_key keyed;
    unsigned key;    /* from 1; 0: none */
    bool is_foreign; /* another process's */
    bool is_handed;  /* to the appender */
    bool is_done;
    enum storage_err err;
};

static struct world {
    uint64_t seed;
    struct dice dice;
    int64_t now_us;
    struct core *core;
    struct unfolded unfolded;
    struct appender appender;
    struct session session;
    struct fake_log redis;

    struct fake_wire wires[1 + LATE_WIRES]; /* the connection, and what is left of earlier ones */
    bool is_connected;
    bool is_dead;   /* Redis was restarted since: nothing sent on the connection arrives */
    bool must_fail; /* give the connection up */
    int64_t heard_ms, next_connect_ms;

    struct request requests[REQUESTS];
    size_t n_requests;
    struct job_queue queue;
    bool may_lose; /* what is acknowledged: Redis has gone back too far, or the like */
    bool went_back_far;
    bool went_back; /* at all: what replicas had is gone with it */
    unsigned depth; /* permille of faults */

    /* Somebody has read what Redis had, and wants to know that it cannot be lost. */
    struct read {
        int64_t from_ms;
        bool is_lost;
    } reads[READS];
    size_t n_reads, n_proved;
} w;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, __VA_ARGS__);                                                    \
            cr_assert_fail(": TALLYD_TEST_SEED=%" PRIu64, w.seed);                                 \
        }                                                                                          \
    } while (0)

static int64_t sim_now_us(void)
{
    return w.now_us;
}

static int64_t now_ms(void)
{
    return w.now_us / 1000;
}

static const char *sodium_name(void)
{
    return "dice";
}

static uint32_t sodium_u32(void)
{
    return (uint32_t)dice_u64(&w.dice);
}

static void sodium_bytes(void *const bytes, const size_t n)
{
    dice_bytes(&w.dice, bytes, n);
}

/* ---- requests ---- */

static struct key_digest digest_of(unsigned number)
{
    struct key_digest digest;
    memset(&digest, (int)number, sizeof(digest));
    return digest;
}

/* How often what came under @key is in Redis. */
static unsigned key_has(unsigned key)
{
    unsigned n = 0;
    for (size_t i = 0; i < w.n_requests; i++) {
        n += w.requests[i].key == key ? fake_log_has(&w.redis, (uint8_t)i) : 0;
    }
    return n;
}

static bool is_never(enum storage_err err)
{
    return err != STORAGE_OK && err != STORAGE_UNKNOWN;
}

/* What an answer promises, at the moment it is given. */
static void request_done(struct storage_job *job)
{
    struct request *r = (struct request *)job;
    uint8_t number = (uint8_t)(r - w.requests);
    CHECK(!r->is_done, "request %u is answered twice", number);
    r->is_done = true;
    r->err = job->err;
    storage_job_free_chunk(job);
    CHECK(
        !is_never(r->err) || !w.redis.appended[number], "503 for request %u, which is in", number);
    if (r->err != STORAGE_OK) {
        return;
    }
    bool is_mine = r->key == 0 || r->keyed.outcome == KEY_MINE;
    CHECK(!is_mine || w.redis.appended[number], "202 for request %u, which never was in", number);
    if (!w.is_dead) {
        unsigned n = fake_log_has(&w.redis, number);
        CHECK(n == (is_mine ? 1 : 0), "202 for request %u, which is in %u times", number, n);
        CHECK(!is_mine || w.core->config.ack_replicas == 0 || w.went_back ||
                  fake_log_received(&w.redis, number),
            "202 for request %u, which the replica has not", number);
        CHECK(r->key == 0 || key_has(r->key) == 1, "an answer to key %u, which is in %u times",
            r->key, key_has(r->key));
    }
    CHECK(r->keyed.outcome != KEY_REPLAY || r->keyed.replay[0] == 'a' + (char)r->key, "a replay");
}

static struct request *new_request(unsigned key)
{
    if (w.n_requests == REQUESTS) {
        return NULL;
    }
    struct request *r = &w.requests[w.n_requests];
    static const char answers[] = "abcdefgh";
    *r = (struct request){.key = key,
        .job = {.op = STORAGE_WRITE,
            .deadline_ms = now_ms() + 100 + dice_below(&w.dice, 3000),
            .u.write = {.n = 1, .keyed = key == 0 ? NULL : &r->keyed},
            .done = request_done,
            .cost = 1},
        .keyed = {.key = digest_of(key),
            .body = digest_of(dice_chance(&w.dice, 100) ? 1 : 0),
            .answer = {answers + key, 1}}};
    w.n_requests++;
    return r;
}

static void submit(void)
{
    unsigned key = dice_chance(&w.dice, 400) ? 1 + (unsigned)dice_below(&w.dice, KEYS) : 0;
    struct request *r = new_request(key);
    char *chunk = r == NULL ? NULL : malloc(1);
    if (chunk != NULL) {
        *chunk = (char)(r - w.requests);
        r->job.chunk = (struct slice){chunk, 1};
        job_queue_append(&w.queue, &r->job);
    }
}

/* Another process appends a request with a key. */
static void append_foreign(void)
{
    struct request *r = new_request(1 + (unsigned)dice_below(&w.dice, KEYS));
    if (r == NULL || w.redis.is_full || w.redis.is_loading) {
        w.n_requests -= r != NULL;
        return;
    }
    struct log_entry entry = {.id = "ffffffffffffffff", .n = w.n_requests};
    struct entry_keyed keyed = {
        .key = r->keyed.key, .body = r->keyed.body, .answer = r->keyed.answer};
    struct buffer word;
    struct key key;
    entry.keyed = &keyed;
    buffer_init(&word);
    record_put(&word, &entry, 0);
    key_record(&key, w.core->partitions.tag[0], &r->keyed.key);
    key.p[key.n] = '\0';
    r->is_foreign = r->is_done = true;
    struct slice record = {strstr(word.p, "\r\n") + 2, 0};
    record.n = (size_t)(word.p + word.n - 2 - record.p);
    (void)fake_log_append_foreign(&w.redis, key.p, record, (uint8_t)(r - w.requests));
    buffer_release(&word);
}

/* ---- the connection ---- */

/* What was on the way arrives late, in part, or never. */
static void disconnect(void)
{
    struct fake_wire *wire = &w.wires[0];
    struct fake_wire *late = &w.wires[1 + dice_below(&w.dice, LATE_WIRES)];
    if (dice_chance(&w.dice, 600)) {
        fake_wire_cut(wire, (size_t)dice_below(&w.dice, (int64_t)fake_wire_pending(wire) + 1));
    }
    if (dice_chance(&w.dice, 500) || w.is_dead) {
        while (fake_wire_deliver(wire, &w.redis, false)) { /* before the next connection */
        }
    }
    wire->n_read = wire->n_replies = 0;
    fake_wire_clear(late);
    *late = *wire;
    *wire = (struct fake_wire){.n_packets = 0};
    appender_lost(&w.appender);
    w.is_connected = w.is_dead = w.must_fail = false;
    w.next_connect_ms = now_ms() + dice_below(&w.dice, 300);
}

/* A small write, HSETNX. */
static const struct reply *answer_registration(const struct buffer *out, size_t i)
{
    static struct fake_reply reply;
    struct commands commands;
    (void)i;
    CHECK(commands_read(out, &commands) && commands.n == 1, "not one command");
    bool arrives = !dice_chance(&w.dice, w.depth);
    if (arrives) {
        fake_log_run(&w.redis, &commands.commands[0], &reply);
    }
    commands_release(&commands);
    return arrives && !dice_chance(&w.dice, w.depth) ? &reply.reply : NULL;
}

static void connect_again(void)
{
    w.session.redis = stand_in_redis();
    w.is_connected =
        w.redis.now.n_logs < FAKE_LOGS && appender_connected(&w.appender, &w.session, INT64_MAX);
    w.heard_ms = now_ms();
    w.next_connect_ms = now_ms() + 100;
}

/* ---- invariants ---- */

static void check_entry(const struct log_entry *entry)
{
    struct fake_stream *log = fake_log_find(&w.redis, slice_of(entry->id));
    if (entry->era[0] == '\0' || log == NULL || log->n < entry->n ||
        strcmp(log->era, entry->era) != 0) {
        return; /* a fold would not take the entry from memory */
    }
    const struct fake_entry *is = NULL;
    for (size_t i = 0; i < log->n_entries; i++) {
        is = log->entries[i].n == entry->n ? &log->entries[i] : is;
    }
    CHECK(is != NULL, "entry %" PRIu64 " is in memory only", entry->n);
    struct arena arena = {0};
    size_t n = 0;
    for (size_t c = 0; c <= entry->n_keyed; c++) {
        struct slice chunk;
        CHECK(entry_chunks(entry, c, &arena, &chunk) == PACKED_OK, "entry %" PRIu64 " is broken",
            entry->n);
        CHECK(n + chunk.n <= is->n_requests &&
                  slice_equal((struct slice){(const char *)is->requests + n, chunk.n}, chunk),
            "entry %" PRIu64 " is another one in Redis", entry->n);
        n += chunk.n;
    }
    arena_release(&arena);
    CHECK(n == is->n_requests, "entry %" PRIu64 " has %zu of %u requests", entry->n, n,
        is->n_requests);
}

/* A request whose key stands in Redis may be acknowledged by whoever repeats the request.  So its
 * entry is among those that are answered, or told to whom it concerns. */
static void check_shown(void)
{
    const struct fake_stream *log = fake_log_find(&w.redis, slice_of(w.appender.id));
    uint64_t shown = unfolded_shown(&w.unfolded, 0);
    bool waits = shown > w.unfolded.logs[0].last;
    for (size_t i = 0; log != NULL && i < log->n_entries; i++) {
        const struct fake_entry *entry = &log->entries[i];
        for (unsigned r = 0; r < entry->n_requests; r++) {
            CHECK(w.requests[entry->requests[r]].key == 0 || entry->n <= shown,
                "entry %" PRIu64 " may be acknowledged, and nobody knows", entry->n);
        }
    }
    CHECK(unfolded_await_shown(&w.unfolded, 0) == !waits, "what is shown is awaited");
}

/* Jobs wait at entries that are not acknowledged, and those are the last ones; @n_open of them are
 * not answered. */
static void check_unacknowledged(size_t n_open)
{
    const struct appender *a = &w.appender;
    size_t n = 0;
    bool has_jobs = false;
    for (const struct log_entry *e = a->first; e != a->unacknowledged; e = e->next) {
        has_jobs = has_jobs || e->jobs != NULL;
    }
    for (const struct log_entry *e = a->unacknowledged; e != NULL; e = e->next) {
        n++;
    }
    CHECK(!has_jobs, "an acknowledged entry has jobs");
    CHECK(n >= n_open, "%zu entries are open, and %zu not acknowledged", n_open, n);
    CHECK(
        w.core->config.ack_replicas > 0 || n == n_open, "without replicas they are the open ones");
}

static void check_state(void)
{
    const struct appender *a = &w.appender;
    size_t n_open = 0;
    bool open = false;
    uint64_t before = 0;
    for (const struct log_entry *e = a->first; e != NULL; e = e->next) {
        open = open || e == a->open;
        n_open += open;
        CHECK(before == 0 || e->n == before + 1, "a gap behind entry %" PRIu64, before);
        CHECK(open || e->state == ENTRY_ANSWERED, "entry %" PRIu64 " is not open", e->n);
        before = e->n;
        check_entry(e);
    }
    check_unacknowledged(n_open);
    check_shown();
    CHECK(before == 0 || a->next_n == before + 1, "the next number is %" PRIu64, a->next_n);
    for (size_t i = 0; i < w.unfolded.logs[0].n; i++) {
        struct log_entry *const *at = &w.unfolded.logs[0].entries[w.unfolded.logs[0].first + i];
        CHECK(i == 0 || at[-1]->n < at[0]->n, "entries that wait are out of order");
        check_entry(*at);
    }
}

/* The next one's time is up at @due_ms. */
static void check_deadlines(int64_t due_ms)
{
    for (size_t i = 0; i < w.n_requests; i++) {
        const struct request *r = &w.requests[i];
        if (r->is_handed && !r->is_done) {
            CHECK(r->job.deadline_ms > now_ms(), "request %zu is late", i);
            CHECK(r->job.deadline_ms >= due_ms, "request %zu is due before %" PRId64, i, due_ms);
        }
    }
}

/* Nothing is in twice, and nothing that was refused. */
static void check_counts(void)
{
    for (size_t i = 0; i < w.n_requests; i++) {
        const struct request *r = &w.requests[i];
        unsigned n = fake_log_has(&w.redis, (uint8_t)i);
        CHECK(n <= 1, "request %zu is in %u times", i, n);
        CHECK(!r->is_done || !is_never(r->err) || !w.redis.appended[i],
            "request %zu was appended after a 503", i);
    }
    for (unsigned key = 1; key <= KEYS; key++) {
        CHECK(key_has(key) <= 1, "key %u is in %u times", key, key_has(key));
    }
    CHECK(!w.redis.has_jumped || w.went_back_far, "a number was left out");
}

/* Was @r acknowledged, and nothing of it is there? */
static bool is_lost(const struct request *r)
{
    if (!r->is_done || r->is_foreign || r->err != STORAGE_OK ||
        (r->key != 0 && r->keyed.outcome != KEY_MINE)) {
        return false;
    }
    return r->key == 0 ? fake_log_has(&w.redis, (uint8_t)(r - w.requests)) == 0
                       : key_has(r->key) == 0;
}

static bool any_is_lost(void)
{
    for (size_t i = 0; i < w.n_requests; i++) {
        if (is_lost(&w.requests[i])) {
            return true;
        }
    }
    return false;
}

/* ---- what was read, and must not be lost ---- */

static void read_something(void)
{
    if (w.n_reads < READS && w.core->hold_ms == 0) {
        w.reads[w.n_reads++] = (struct read){.from_ms = now_ms()};
        standing_want(&w.core->standing, now_ms() + 1 + atomic_load(&w.core->go_back_ms));
    }
}

/* What is proved now was not lost before, and is not lost any more. */
static void check_reads(void)
{
    int64_t go_back_ms = atomic_load(&w.core->go_back_ms);
    for (size_t i = 0; i < w.n_reads; i++) {
        const struct read *read = &w.reads[i];
        if (!standing_held(&w.core->standing, read->from_ms, read->from_ms + 1 + go_back_ms)) {
            continue;
        }
        CHECK(!read->is_lost, "what was read at %" PRId64 " is proved, and lost", read->from_ms);
        CHECK(now_ms() - go_back_ms >= read->from_ms, "Redis can go back behind it still");
        w.n_proved++;
        w.reads[i--] = w.reads[--w.n_reads];
    }
}

/* Redis went back to what was at @ms; @far: further than anybody reckons with. */
static void lose_reads(int64_t ms, bool far)
{
    w.n_reads = far ? 0 : w.n_reads;
    for (size_t i = 0; i < w.n_reads; i++) {
        w.reads[i].is_lost = w.reads[i].is_lost || ms < w.reads[i].from_ms;
    }
}

/* ---- the writer's thread, as in loop.c ---- */

static void fail_late(struct storage_job *list)
{
    while (list != NULL) {
        struct storage_job *next = list->next;
        job_done(list, STORAGE_LATE);
        list = next;
    }
}

static void make_entry(void)
{
    struct storage_job *jobs = job_queue_take(&w.queue, 1 + (size_t)dice_below(&w.dice, 4));
    for (struct storage_job *job = jobs; job != NULL; job = job->next) {
        ((struct request *)job)->is_handed = true;
    }
    CHECK(jobs == NULL || appender_add(&w.appender, jobs, redis_clock_ms(&w.core->clock)),
        "no memory");
}

static void read_replies(size_t n)
{
    const struct reply *reply;
    while (n-- > 0 && !w.must_fail && (reply = fake_wire_read(&w.wires[0])) != NULL) {
        w.heard_ms = now_ms();
        w.must_fail = !appender_take_reply(&w.appender, reply);
    }
}

static void turn(void)
{
    if (!w.is_connected && now_ms() >= w.next_connect_ms) {
        connect_again();
    }
    if (w.is_connected && !w.must_fail) {
        w.heard_ms = w.appender.n_awaited == 0 ? now_ms() : w.heard_ms;
        w.must_fail = now_ms() - w.heard_ms > SILENCE;
    }
    if (w.is_connected && !w.must_fail) {
        if (w.queue.first != NULL && appender_has_room(&w.appender)) {
            make_entry();
        }
        CHECK(appender_pump(&w.appender, &w.session, now_ms()), "no memory");
        if (w.appender.n_out > 0) {
            CHECK(fake_wire_send(&w.wires[0], &w.appender.out), "no commands");
        }
        if (w.is_dead) {
            fake_wire_cut(&w.wires[0], 0);
        }
    }
    fail_late(job_queue_take_late(&w.queue, now_ms()));
    int64_t due_ms = appender_answer_late(&w.appender, now_ms());
    appender_let_go(&w.appender);
    if (w.is_connected && w.must_fail) {
        disconnect();
    }
    check_state();
    check_deadlines(due_ms);
}

/* ---- Redis, and others ---- */

static void deliver_one(void)
{
    if (dice_chance(&w.dice, 200)) {
        (void)fake_wire_deliver(&w.wires[1 + dice_below(&w.dice, LATE_WIRES)], &w.redis, false);
    } else {
        (void)fake_wire_deliver(&w.wires[0], &w.redis, true);
    }
}

/* Redis crashes, and comes back as it was a while ago. */
static void restart_redis(void)
{
    bool far = dice_chance(&w.dice, 150);
    int64_t most_ms = atomic_load(&w.core->go_back_ms);
    most_ms = w.core->hold_ms > most_ms ? w.core->hold_ms : most_ms;
    int64_t back_ms = dice_below(&w.dice, 1 + (far ? 20000 : most_ms));
    const struct fake_stream *log = fake_log_find(&w.redis, slice_of(w.appender.id));
    bool had_head = log != NULL;
    for (unsigned i = 0; i <= LATE_WIRES; i++) {
        fake_wire_cut(&w.wires[i], 0);
    }
    fake_log_go_back(&w.redis, now_ms() - back_ms, far);
    lose_reads(now_ms() - back_ms, far);
    w.went_back = true;
    log = fake_log_find(&w.redis, slice_of(w.appender.id));
    w.went_back_far = w.went_back_far || far;
    w.may_lose = w.may_lose || far || (had_head && log == NULL);
    w.is_dead = w.is_connected;
    w.redis.is_loading = dice_chance(&w.dice, 300);
}

/* The replica takes over, as it is.  What was acknowledged it has, whatever else is lost, and
 * however long it had received nothing. */
static void fail_over(void)
{
    if (w.core->config.ack_replicas == 0) {
        return;
    }
    bool had_head = fake_log_find(&w.redis, slice_of(w.appender.id)) != NULL;
    for (unsigned i = 0; i <= LATE_WIRES; i++) {
        fake_wire_cut(&w.wires[i], 0);
    }
    bool lost_before = any_is_lost();
    fake_log_fail_over(&w.redis);
    CHECK(w.went_back || lost_before || w.may_lose || !any_is_lost(),
        "a failover takes what was acknowledged");
    w.may_lose = w.may_lose || (w.went_back && had_head &&
                                   fake_log_find(&w.redis, slice_of(w.appender.id)) == NULL);
    w.is_dead = w.is_connected;
}

/* The process sleeps; meanwhile its log is counted and closed. */
static void sleep_long(void)
{
    w.now_us += (SLEEP_MS + dice_below(&w.dice, 5000)) * 1000;
    struct fake_stream *log = fake_log_find(&w.redis, slice_of(w.appender.id));
    if (log != NULL && now_ms() - log->time_ms > 30000) {
        /* a reply of before the restart may still be read, and acknowledge what was lost */
        w.may_lose = w.may_lose || any_is_lost() || w.is_dead;
        fake_log_fold(&w.redis);
        fake_log_close(&w.redis, log);
    }
}

static void fold(void)
{
    check_counts();
    fake_log_fold(&w.redis);
    const struct fake_stream *log = fake_log_find(&w.redis, slice_of(w.unfolded.logs[0].id));
    if (log != NULL && dice_chance(&w.dice, 500)) {
        unfolded_done(&w.unfolded, 0, log->id, log->cursor);
    }
}

static void fault(void)
{
    switch (dice_below(&w.dice, 9)) {
    case 0:
    case 1:
        w.must_fail = w.is_connected;
        break;
    case 2:
        restart_redis();
        break;
    case 3:
        w.redis.is_full = !w.redis.is_full;
        break;
    case 4:
        w.redis.is_loading = !w.redis.is_loading;
        break;
    case 5:
        if (dice_chance(&w.dice, 300)) {
            sleep_long();
        }
        break;
    case 6:
        w.redis.is_alone = !w.redis.is_alone;
        break;
    case 7:
        fail_over();
        break;
    default:
        w.redis.is_full = w.redis.is_loading = false;
        break;
    }
}

static void step(void)
{
    w.now_us += dice_below(&w.dice, dice_chance(&w.dice, 50) ? 2000000 : 30000);
    if (dice_chance(&w.dice, w.depth)) {
        fault();
    }
    switch (dice_below(&w.dice, 8)) {
    case 0:
        submit();
        break;
    case 1:
        append_foreign();
        read_something();
        break;
    case 2:
        fold();
        break;
    case 3:
    case 4:
        read_replies(1 + (size_t)dice_below(&w.dice, 3));
        break;
    default:
        deliver_one();
        break;
    }
    if (dice_chance(&w.dice, 700)) {
        turn();
    }
    check_reads();
}

/* ---- histories ---- */

static void begin(uint64_t seed)
{
    w.seed = seed;
    w.dice = dice_make(seed);
    w.now_us = INT64_C(1000000000);
    w.core = calloc(1, sizeof(*w.core));
    cr_assert_not_null(w.core);
    core_init(w.core);
    partitions_make(1, &w.core->partitions);
    atomic_store(&w.core->go_back_ms, dice_chance(&w.dice, 700) ? GO_BACK : 0);
    w.core->hold_ms = dice_chance(&w.dice, 300) ? HOLD : 0;
    w.core->config.ack_replicas = dice_chance(&w.dice, 500) ? 1 : 0;
    unfolded_init(&w.unfolded, &w.core->stats);
    appender_init(&w.appender, w.core, 0, &w.unfolded);
    fake_log_init(&w.redis);
    fake_log_scripts(&w.session.scripts);
    w.is_connected = w.is_dead = w.must_fail = w.may_lose = w.went_back_far = false;
    w.went_back = false;
    w.next_connect_ms = 0;
    w.n_requests = w.n_reads = 0;
    w.queue = (struct job_queue){0};
    w.depth = dice_chance(&w.dice, 300) ? 0 : (unsigned)dice_below(&w.dice, 150);
}

/* Nobody waits for a proof that will come. */
static bool are_reads_judged(void)
{
    bool any = false;
    int64_t go_back_ms = atomic_load(&w.core->go_back_ms);
    for (size_t i = 0; i < w.n_reads; i++) {
        int64_t from_ms = w.reads[i].from_ms;
        any = any || standing_awaits(&w.core->standing, from_ms, from_ms + 1 + go_back_ms);
    }
    return !any;
}

static bool is_at_rest(void)
{
    size_t late = 0;
    for (unsigned i = 1; i <= LATE_WIRES; i++) {
        late += fake_wire_pending(&w.wires[i]);
    }
    return late == 0 && appender_has_room(&w.appender) && w.queue.first == NULL &&
           !appender_has_jobs(&w.appender) && w.appender.first == NULL && w.is_connected &&
           !w.is_dead && are_reads_judged();
}

/* Nothing goes wrong any more: all that is held is appended, proved and let go. */
static void come_to_rest(void)
{
    w.redis.is_full = w.redis.is_loading = w.redis.is_alone = false;
    w.depth = 0;
    for (unsigned i = 0; !is_at_rest(); i++) {
        CHECK(i < 2000, "it does not come to rest");
        w.now_us += dice_below(&w.dice, 200000);
        deliver_one();
        deliver_one();
        read_replies(2);
        turn();
        check_reads();
    }
    CHECK(atomic_load(&w.core->unsafe_since_us[0]) == 0, "each entry is safe once");
    CHECK(unfolded_await_shown(&w.unfolded, 0), "nothing is waited for in vain");
}

static void end(void)
{
    check_counts();
    fake_log_fold(&w.redis);
    check_counts();
    for (size_t i = 0; i < w.n_requests; i++) {
        CHECK(w.requests[i].is_done, "request %zu has no answer", i);
        CHECK(
            w.may_lose || !is_lost(&w.requests[i]), "request %zu was acknowledged, and is lost", i);
        request_key_release(&w.requests[i].keyed);
    }
    for (unsigned i = 0; i <= LATE_WIRES; i++) {
        fake_wire_clear(&w.wires[i]);
    }
    appender_release(&w.appender);
    unfolded_release(&w.unfolded);
    core_release(w.core);
    free(w.core);
}

Test(append, keeps_its_promises_whatever_happens)
{
    static struct randombytes_implementation random = {
        .implementation_name = sodium_name, .random = sodium_u32, .buf = sodium_bytes};
    uint64_t seed = dice_seed();
    stand_in.now_us = sim_now_us;
    stand_in.answer = answer_registration;
    cr_assert_eq(randombytes_set_implementation(&random), 0);
    for (unsigned i = 0; i < HISTORIES; i++) {
        begin(seed + i);
        for (unsigned s = 0; s < SCHEDULE; s++) {
            step();
        }
        come_to_rest();
        end();
    }
    cr_expect_gt(w.n_proved, (size_t)HISTORIES, "%zu proofs", w.n_proved);
    fake_log_release(&w.redis);
}
