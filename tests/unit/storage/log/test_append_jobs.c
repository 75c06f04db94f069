#include "storage/log/append.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/log/append.h"
#include "tests/lib/fake_wire.h"
#include "tests/lib/stand_in.h"

/* How the jobs of entries end.  Time and Redis are the test's own; test_append.c tries everything
 * at random, and these are its findings, and what it cannot tell from luck. */
TestSuite(append_jobs, .timeout = 60);

#define JOBS 80

static struct world {
    int64_t now_us;
    struct core *core;
    struct unfolded unfolded;
    struct appender appender;
    struct session session;
    struct fake_log redis;
    struct fake_wire wire, late; /* late: what is left of the connection before */
    struct storage_job jobs[JOBS];
    bool is_done[JOBS];
} w;

static int64_t test_now_us(void)
{
    return w.now_us;
}

static const struct reply *take_registration(const struct buffer *out, size_t i)
{
    static struct fake_reply reply;
    struct commands commands;
    (void)i;
    cr_assert(commands_read(out, &commands) && commands.n == 1);
    fake_log_run(&w.redis, &commands.commands[0], &reply);
    commands_release(&commands);
    return &reply.reply;
}

static void connect_to_redis(void)
{
    w.session.redis = stand_in_redis();
    cr_assert(appender_connected(&w.appender, &w.session, INT64_MAX));
}

static void setup(void)
{
    w.now_us = INT64_C(1000000000);
    stand_in.now_us = test_now_us;
    stand_in.answer = take_registration;
    w.core = calloc(1, sizeof(*w.core));
    cr_assert_not_null(w.core);
    core_init(w.core);
    partitions_make(1, &w.core->partitions);
    atomic_store(&w.core->go_back_ms, 2000);
    unfolded_init(&w.unfolded, &w.core->stats);
    appender_init(&w.appender, w.core, 0, &w.unfolded);
    fake_log_init(&w.redis);
    fake_log_scripts(&w.session.scripts);
    connect_to_redis();
}

static void teardown(void)
{
    fake_wire_clear(&w.wire);
    fake_wire_clear(&w.late);
    appender_release(&w.appender);
    unfolded_release(&w.unfolded);
    core_release(w.core);
    free(w.core);
    fake_log_release(&w.redis);
}

static void job_is_done(struct storage_job *job)
{
    cr_expect_not(w.is_done[job - w.jobs], "answered twice");
    w.is_done[job - w.jobs] = true;
    storage_job_free_chunk(job);
}

/* An entry of job @i alone, which has @patience_ms. */
static void add(unsigned i, int64_t patience_ms)
{
    char *chunk = malloc(1);
    cr_assert_not_null(chunk);
    *chunk = (char)i;
    w.jobs[i] = (struct storage_job){.op = STORAGE_WRITE,
        .deadline_ms = w.now_us / 1000 + patience_ms,
        .u.write = {.n = 1},
        .done = job_is_done,
        .cost = 1,
        .chunk = {chunk, 1}};
    cr_assert(appender_add(&w.appender, &w.jobs[i], 1));
    const struct buffer *packed = &w.appender.last->packed;
    cr_expect(packed->capacity == packed->n && packed->p != w.appender.scratch.packed.p,
        "what is held has memory of its own, and none to spare");
}

static void send(void)
{
    cr_assert(appender_pump(&w.appender, &w.session, w.now_us / 1000));
    cr_assert(w.appender.n_out == 0 || fake_wire_send(&w.wire, &w.appender.out));
}

/* Redis takes @n commands, and the appender their replies.  False: the connection is given up. */
static bool take(unsigned n)
{
    bool ok = true;
    for (unsigned i = 0; i < n; i++) {
        cr_assert(fake_wire_deliver(&w.wire, &w.redis, true));
        ok = appender_take_reply(&w.appender, fake_wire_read(&w.wire)) && ok;
    }
    return ok;
}

static void take_error(const char *text)
{
    struct reply error = {.type = REPLY_ERROR, .text = slice_of(text)};
    cr_assert(appender_take_reply(&w.appender, &error));
    fake_wire_cut(&w.wire, 0);
}

/* The connection is lost, and what was on the way will arrive late.  Of an earlier one nothing
 * will. */
static void lose(void)
{
    fake_wire_clear(&w.late);
    w.late = w.wire;
    w.wire = (struct fake_wire){.n_packets = 0};
    appender_lost(&w.appender);
}

static void pass(int64_t ms)
{
    w.now_us += ms * 1000;
    (void)appender_answer_late(&w.appender, w.now_us / 1000);
    appender_let_go(&w.appender);
}

static void expect_done(unsigned i, enum storage_err err)
{
    cr_expect(w.is_done[i], "job %u", i);
    cr_expect_eq(w.jobs[i].err, err, "job %u: %s", i, storage_err_text(w.jobs[i].err));
}

Test(append_jobs, an_answered_entry_waits_for_its_fold, .init = setup, .fini = teardown)
{
    add(0, 1000);
    send();
    cr_assert(take(1));
    pass(0);
    expect_done(0, STORAGE_OK);
    cr_expect_eq(w.unfolded.logs[0].n, 1u);
    cr_expect_eq(w.unfolded.logs[0].last, 1u);
}

/* They are answered at their deadlines, so the writer sleeps until the next one. */
Test(append_jobs, are_due_at_the_earliest_deadline, .init = setup, .fini = teardown)
{
    const int64_t now_ms = w.now_us / 1000;
    cr_expect_eq(appender_answer_late(&w.appender, now_ms), INT64_MAX);
    add(0, 700);
    add(1, 300);
    send();
    cr_expect_eq(appender_answer_late(&w.appender, now_ms), now_ms + 300);
    cr_expect_eq(appender_answer_late(&w.appender, now_ms + 300), now_ms + 700);
    expect_done(1, STORAGE_UNKNOWN);
    cr_assert(take(2));
    cr_expect_eq(appender_answer_late(&w.appender, now_ms + 300), INT64_MAX);
    expect_done(0, STORAGE_OK);
}

/* Entries that are held for seconds would keep new requests waiting for as long again, two at a
 * time. */
Test(append_jobs, go_again_in_one_stream, .init = setup, .fini = teardown)
{
    const unsigned n = JOBS - 1;
    for (unsigned i = 0; i < n; i++) {
        add(i, 60000);
        send();
        cr_assert(take(1));
    }
    pass(0);
    expect_done(n - 1, STORAGE_OK);
    lose();
    connect_to_redis();
    add(n, 60000);
    send();
    cr_expect_eq(w.appender.n_sent, 2u, "it may refuse them");
    cr_assert(take(1));
    send();
    cr_expect_eq(w.appender.n_sent, 64u);
    cr_assert(take(19));
    send();
    cr_expect_eq(w.appender.n_sent, n - 20, "all but the new one");
    cr_assert(take(n - 20 - 1));
    send();
    cr_expect_eq(w.appender.n_sent, 2u);
    cr_assert(take(2));
    pass(0);
    expect_done(n, STORAGE_OK);
    cr_expect_null(w.appender.open);
    for (unsigned i = 0; i <= n; i++) {
        cr_expect_eq(fake_log_has(&w.redis, (uint8_t)i), 1u, "job %u", i);
    }
}

/* Another connection, which has taken an entry. */
static void lose_and_prove(void)
{
    lose();
    connect_to_redis();
    send();
    cr_assert(take(1));
}

/* A stream of large entries has a bound in bytes, too. */
Test(append_jobs, large_ones_go_again_some_at_a_time, .init = setup, .fini = teardown)
{
    for (unsigned i = 0; i < 10; i++) {
        add(i, 60000);
        struct log_entry *entry = w.appender.last;
        size_t before = entry_bytes(entry);
        entry->packed.p = realloc(entry->packed.p, 300000);
        cr_assert_not_null(entry->packed.p);
        entry->packed.capacity = 300000;
        w.core->held_bytes += entry_bytes(entry) - before;
        send();
        cr_assert(take(1));
    }
    lose_and_prove();
    send();
    cr_expect_eq(w.appender.n_sent, 4u, "%zu: 1.2 MB", w.appender.n_sent);
    while (w.appender.open != NULL) {
        cr_assert(take(1));
        send();
        cr_expect_leq(w.appender.n_sent, 4u);
    }
}

/* A server that has no room is not asked with 64 entries again and again. */
Test(append_jobs, go_again_few_at_a_time_where_they_are_refused, .init = setup, .fini = teardown)
{
    unsigned n_sent = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        add(i, 60000);
        send();
        cr_assert(take(1));
    }
    lose_and_prove();
    w.redis.is_full = true;
    for (unsigned i = 0; i < 50; i++) {
        w.now_us += 20000;
        send();
        n_sent += (unsigned)w.appender.n_out;
        cr_assert(take((unsigned)w.appender.n_awaited));
    }
    cr_expect_leq(n_sent, 64u + 50 * 3, "%u commands in a second", n_sent);
}

/* A late copy of entry 1 comes behind the refusal of entry 1, so Redis takes entry 2 while entry 1
 * is not answered. */
Test(append_jobs, are_answered_in_order, .init = setup, .fini = teardown)
{
    add(0, 5000);
    send();
    lose();
    connect_to_redis();
    add(1, 5000);
    send();
    w.redis.is_full = true;
    cr_assert(take(1));
    w.redis.is_full = false;
    cr_assert(fake_wire_deliver(&w.late, &w.redis, false));
    cr_assert(take(1));
    pass(100);
    cr_expect_not(w.is_done[0] || w.is_done[1]);
    send();
    cr_assert(take(2));
    pass(0);
    expect_done(0, STORAGE_OK);
    expect_done(1, STORAGE_OK);
    cr_expect_eq(w.unfolded.logs[0].entries[0]->n, 1u);
    cr_expect_eq(w.unfolded.logs[0].last, 2u);
    cr_expect_null(w.appender.open);
    cr_expect_eq(fake_log_has(&w.redis, 0), 1u);
    cr_expect_eq(fake_log_has(&w.redis, 1), 1u);
}

Test(append_jobs, a_refused_entry_is_given_up, .init = setup, .fini = teardown)
{
    add(0, 5000);
    add(1, 5000);
    send();
    w.redis.is_full = true;
    cr_assert(take(2));
    pass(0);
    expect_done(0, STORAGE_OOM);
    expect_done(1, STORAGE_OOM);
    cr_expect_null(w.appender.first);
    cr_expect_eq(w.appender.next_n, 1u);
}

/* An error that is no refusal: the script may have set the record of a key before it broke off. */
Test(append_jobs, an_entry_whose_script_broke_off_is_in_doubt, .init = setup, .fini = teardown)
{
    add(0, 500);
    send();
    take_error("ERR user_script:46: something broke");
    pass(0);
    cr_expect_not(w.is_done[0]);
    pass(500);
    expect_done(0, STORAGE_UNKNOWN);
    cr_expect_not_null(w.appender.first, "it goes again");
    send();
    cr_assert(take(1));
    cr_expect_eq(fake_log_has(&w.redis, 0), 1u);
}

Test(append_jobs, a_redis_that_loads_is_waited_for, .init = setup, .fini = teardown)
{
    add(0, 500);
    send();
    take_error("LOADING Redis is loading the dataset in memory");
    pass(0);
    cr_expect_not(w.is_done[0]);
    pass(500);
    expect_done(0, STORAGE_LATE);
    cr_expect_null(w.appender.first);
}

static void close_log(void)
{
    fake_log_fold(&w.redis);
    fake_log_close(&w.redis, fake_log_find(&w.redis, slice_of(w.appender.id)));
}

/* The log was closed.  Entry 1 was on a lost connection, so it may have been counted; entry 2 was
 * not. */
Test(append_jobs, go_into_a_new_log_unless_in_doubt, .init = setup, .fini = teardown)
{
    add(0, 5000);
    send();
    lose();
    connect_to_redis();
    add(1, 5000);
    send();
    close_log();
    cr_assert_not(take(2), "the next connection registers a log");
    lose();
    expect_done(0, STORAGE_UNKNOWN);
    cr_expect_not(w.is_done[1]);
    connect_to_redis();
    send();
    cr_assert(take(1));
    pass(0);
    expect_done(1, STORAGE_OK);
    cr_expect_eq(w.unfolded.logs[0].last, 1u, "the first entry of its log");
    cr_expect_eq(fake_log_has(&w.redis, 1), 1u);
}

/* While there is no connection nobody comes by to answer them. */
Test(append_jobs, are_answered_when_the_connection_is_lost, .init = setup, .fini = teardown)
{
    add(0, 5000);
    send();
    cr_assert(take(1));
    lose();
    expect_done(0, STORAGE_OK);
}

Test(
    append_jobs, are_late_where_nothing_was_sent_and_in_doubt_else, .init = setup, .fini = teardown)
{
    add(0, 1000);
    send();
    add(1, 500);
    cr_expect(appender_has_jobs(&w.appender));
    pass(500);
    expect_done(1, STORAGE_LATE);
    cr_expect_not(w.is_done[0]);
    cr_expect_eq(w.appender.next_n, 2u);
    pass(500);
    expect_done(0, STORAGE_UNKNOWN);
    cr_expect_not(appender_has_jobs(&w.appender));
}
