#include "storage/fold/round.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/fake_streams.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

/* What a round gathers, from memory and from streams, and when it has reached its goal.  Its
 * transactions are the test's own: they move the cursors of fake_streams, by the rules of
 * transaction.h. */
TestSuite(round, .timeout = 60);

#define OWN   "00000000000000aa"
#define OTHER "00000000000000bb"
#define THIRD "00000000000000cc"

static struct core *core;
static struct unfolded unfolded;
static struct round fold_round;

static struct {
    enum fold_end ends[8]; /* of the next transactions; FOLD_DONE: by the rules */
    enum storage_err err;
    unsigned n, n_from_memory, n_trims;
    bool closes_other; /* the other's log is closed meanwhile */
    uint64_t other_n;  /* not 0: the other's log has lost what is behind */
    unsigned n_broken; /* notices.. */
    char broken[LOG_ID_TEXT + 1];
} seen;

static void note(void *data, enum storage_notice what, const char *detail)
{
    (void)data;
    if (what == STORAGE_LOG_BROKEN) {
        seen.n_broken++;
        (void)snprintf(seen.broken, sizeof(seen.broken), "%s", detail);
    }
}

static struct fake_stream_log *log_of(const char *id)
{
    for (size_t i = 0; i < fake_streams.n_logs; i++) {
        if (strcmp(fake_streams.logs[i].id, id) == 0) {
            return &fake_streams.logs[i];
        }
    }
    cr_assert_fail("no such log");
    return NULL;
}

static uint64_t cursor_of(const char *id)
{
    const char *cursor = log_of(id)->cursor;
    return cursor == NULL ? 0 : strtoull(cursor, NULL, 10);
}

static void count(const struct batch_log *log)
{
    static char texts[64][24];
    static unsigned n;
    char *text = texts[n++ % 64];
    (void)snprintf(text, sizeof(texts[0]), "%" PRIu64, log->to);
    if (cursor_of(log->id) < log->to) {
        log_of(log->id)->cursor = text;
    }
}

/* Missing entries, and more than Redis has, are stale. */
static struct fold_result run_transaction(
    const struct batch *batch, struct fold_cuts cuts, int trim, struct heads *heads)
{
    enum fold_end end = seen.ends[seen.n++ % 8];
    cr_assert_leq(seen.n, 8u, "the round does not end");
    cr_assert(cuts.n == 1 && cuts.cuts[0].end_stripe == LOG_STRIPES);
    if (seen.other_n > 0) {
        log_of(OTHER)->n = seen.other_n;
    }
    heads_clear(heads);
    cr_assert_eq(heads_add(heads, 0, fake_streams_heads()), STORAGE_OK);
    for (uint32_t l = 0; end == FOLD_DONE && l < batch->n_logs; l++) {
        const struct batch_log *log = &batch->logs[l];
        if (cursor_of(log->id) < log->from || log_of(log->id)->n < log->to) {
            return (struct fold_result){.end = FOLD_STALE, .log = l};
        }
    }
    for (uint32_t l = 0; end == FOLD_DONE && l < batch->n_logs; l++) {
        count(&batch->logs[l]);
    }
    for (size_t i = 0; end == FOLD_DONE && i < batch->n_entries; i++) {
        seen.n_from_memory += batch->entries[i].entry->era[0] != '\0';
    }
    if (end == FOLD_DONE && trim >= 0) {
        cr_expect_str_eq(batch->logs[trim].id, OWN, "only its own stream is cut");
        seen.n_trims++;
    }
    if (seen.closes_other) {
        log_of(OTHER)->has_head = false;
    }
    return (struct fold_result){.end = end, .err = seen.err};
}

static void setup(void)
{
    core = fold_core_make(1);
    core->config.notice = note;
    unfolded_init(&unfolded, &core->stats);
    unfolded_begin(&unfolded, 0, OWN);
    fake_streams_stand_in();
    stand_in.transaction = run_transaction;
    cr_assert(round_init(&fold_round, core, &unfolded, NULL));
    (void)fake_streams_add(OWN, 0);
}

static void teardown(void)
{
    round_release(&fold_round);
    unfolded_release(&unfolded);
    fold_core_drop(core);
}

/* Own entry @n was answered.  Not @in_memory: there was no memory for it. */
static void acknowledge(uint64_t n, bool in_memory)
{
    struct fake_stream_log *log = log_of(OWN);
    log->n = n;
    log->has[n] = true;
    if (in_memory) {
        struct log_entry *entry = fold_entry(OWN, n, FOLD_NOW_S, 1);
        entry->era[0] = 'e'; /* an entry from the stream has none */
        cr_assert(unfolded_put(&unfolded, 0, entry));
        entry_release(entry);
    }
}

static void expect_round(enum round_reach reach, enum storage_err err, unsigned transactions)
{
    seen.n = 0;
    enum storage_err is = round_run(&fold_round, reach);
    cr_expect_eq(is, err, "%s", storage_err_text(is));
    cr_expect_eq(seen.n, transactions, "%u transactions", seen.n);
}

/* ---- the own log ---- */

Test(round, counts_the_own_log_from_memory, .init = setup, .fini = teardown)
{
    acknowledge(1, true);
    acknowledge(2, true);
    expect_round(ROUND_OWN, STORAGE_OK, 1);
    cr_expect_eq(cursor_of(OWN), 2u);
    cr_expect_eq(seen.n_from_memory, 2u);
    cr_expect_eq(seen.n_trims, 1u);
    cr_expect_eq(fake_streams.n_ranges, 0u);
    cr_expect_eq(unfolded.logs[0].n, 0u);
    acknowledge(3, true);
    expect_round(ROUND_OWN, STORAGE_OK, 1);
    cr_expect_eq(cursor_of(OWN), 3u);
    expect_round(ROUND_OWN, STORAGE_OK, 0);
    cr_expect_eq(fake_streams.n_ranges, 0u);
}

static bool begin_another(void)
{
    unfolded_begin(&unfolded, 0, THIRD);
    return true;
}

/* Redis lost the log: its process begins another one while the round connects. */
Test(round, goes_on_where_another_own_log_begins, .init = setup, .fini = teardown)
{
    acknowledge(1, true);
    stand_in.connect = begin_another;
    expect_round(ROUND_ALL, STORAGE_OK, 1);
    cr_expect_eq(cursor_of(OWN), 1u);
    cr_expect_eq(seen.n_from_memory, 0u);
    expect_round(ROUND_ALL, STORAGE_OK, 0);
}

Test(round, reads_entries_that_memory_lacks, .init = setup, .fini = teardown)
{
    acknowledge(1, true);
    acknowledge(2, false);
    acknowledge(3, true);
    expect_round(ROUND_OWN, STORAGE_OK, 1); /* entry 1.. */
    cr_expect_eq(cursor_of(OWN), 1u);
    expect_round(ROUND_OWN, STORAGE_OK, 2); /* ..3 is stale, the rest of the stream */
    cr_expect_eq(cursor_of(OWN), 3u);
    cr_expect_eq(fake_streams.n_ranges, 1u);
    cr_expect_eq(unfolded.logs[0].n, 0u);
}

/* Redis went back: what memory has may be another entry than Redis has. */
Test(round, reads_what_memory_is_stale_for, .init = setup, .fini = teardown)
{
    acknowledge(1, true);
    acknowledge(2, true);
    seen.ends[0] = FOLD_STALE;
    expect_round(ROUND_OWN, STORAGE_OK, 2);
    cr_expect_eq(cursor_of(OWN), 2u);
    cr_expect_eq(seen.n_from_memory, 0u);
    cr_expect_str_eq(fake_streams.last, "1 2 64");
    seen.ends[0] = FOLD_DONE;
    acknowledge(3, true);
    expect_round(ROUND_OWN, STORAGE_OK, 1);
    cr_expect_eq(seen.n_from_memory, 1u, "entry 3 came after that");
}

/* Entry 2 is gone from Redis, and is appended again some time: nobody waits for it here. */
Test(round, does_not_wait_for_what_redis_lost, .init = setup, .fini = teardown)
{
    acknowledge(1, true);
    acknowledge(2, true);
    log_of(OWN)->n = 1;
    log_of(OWN)->has[2] = false;
    expect_round(ROUND_OWN, STORAGE_OK, 2);
    cr_expect_eq(cursor_of(OWN), 1u);
    cr_expect_eq(unfolded.logs[0].n, 1u, "entry 2 waits");
}

/* What is thought to be counted is not: all of it is read again. */
Test(round, learns_cursors_anew_when_it_was_wrong, .init = setup, .fini = teardown)
{
    acknowledge(1, true);
    acknowledge(2, true);
    expect_round(ROUND_OWN, STORAGE_OK, 1);
    log_of(OWN)->cursor = NULL;
    acknowledge(3, true);
    expect_round(ROUND_OWN, STORAGE_OK, 2);
    cr_expect_str_eq(fake_streams.last, "1 3 64");
    cr_expect_eq(cursor_of(OWN), 3u);
}

/* ---- the logs of others ---- */

Test(round, reaches_others_as_it_is_told, .init = setup, .fini = teardown)
{
    struct fake_stream_log *other = fake_streams_add(OTHER, 5);
    acknowledge(1, true);
    expect_round(ROUND_OWN, STORAGE_OK, 1);
    expect_round(ROUND_FORSAKEN, STORAGE_OK, 0);
    cr_expect_eq(cursor_of(OTHER), 0u);
    other->time_ms -= 1000;
    expect_round(ROUND_FORSAKEN, STORAGE_OK, 0);
    cr_expect_eq(cursor_of(OTHER), 0u, "its own process is there, as far as is known");
    other->time_ms -= 500;
    expect_round(ROUND_FORSAKEN, STORAGE_OK, 1);
    cr_expect_eq(cursor_of(OTHER), 5u);
    other->time_ms += 1500;
    other->n = 6;
    other->has[6] = true;
    expect_round(ROUND_FORSAKEN, STORAGE_OK, 0);
    acknowledge(2, true);
    expect_round(ROUND_ALL, STORAGE_OK, 1);
    cr_expect_eq(cursor_of(OTHER), 6u);
    cr_expect_eq(cursor_of(OWN), 2u);
    cr_expect_str_eq(fake_streams.last, "6 6 64");
}

Test(round, takes_a_log_that_was_closed_for_counted, .init = setup, .fini = teardown)
{
    (void)fake_streams_add(OTHER, 100); /* more than a piece */
    seen.closes_other = true;
    expect_round(ROUND_ALL, STORAGE_OK, 2);
}

Test(round, does_not_wait_for_what_another_log_lost, .init = setup, .fini = teardown)
{
    (void)fake_streams_add(OTHER, 5);
    seen.other_n = 3;
    expect_round(ROUND_ALL, STORAGE_OK, 2);
    cr_expect_eq(cursor_of(OTHER), 3u);
}

/* A batch that is given up has passed by nothing. */
Test(round, says_once_which_entries_are_missing, .init = setup, .fini = teardown)
{
    fake_streams_add(OTHER, 5)->has[2] = false;
    seen.ends[0] = FOLD_STALE;
    expect_round(ROUND_ALL, STORAGE_OK, 2);
    cr_expect_eq(cursor_of(OTHER), 5u);
    cr_expect_eq(atomic_load(&core->stats.entries_missing), 1);
}

static const struct reply *(*answer_before)(const struct buffer *out, size_t i);

/* The other's own process counts while its stream is read. */
static const struct reply *answer_and_count(const struct buffer *out, size_t i)
{
    unsigned n_ranges = fake_streams.n_ranges;
    const struct reply *reply = answer_before(out, i);
    if (fake_streams.n_ranges > n_ranges) {
        log_of(OTHER)->cursor = "4";
    }
    return reply;
}

/* Two entries were cut off, which had been counted; the next two were counted, too. */
Test(round, what_was_counted_and_cut_off_meanwhile_is_not_missing, .init = setup, .fini = teardown)
{
    struct fake_stream_log *other = fake_streams_add(OTHER, 5);
    other->has[1] = other->has[2] = false;
    answer_before = stand_in.answer;
    stand_in.answer = answer_and_count;
    expect_round(ROUND_ALL, STORAGE_OK, 1);
    cr_expect_eq(cursor_of(OTHER), 5u);
    cr_expect_eq(atomic_load(&core->stats.entries_missing), 0);
}

Test(round, a_broken_entry_stops_its_log_alone, .init = setup, .fini = teardown)
{
    fake_streams_add(OTHER, 5)->is_foreign[3] = true;
    (void)fake_streams_add(THIRD, 100);
    acknowledge(1, true);
    seen.n = 0;
    cr_expect_eq(round_run(&fold_round, ROUND_ALL), STORAGE_BEHIND);
    cr_expect_eq(cursor_of(OWN), 1u);
    cr_expect_eq(cursor_of(OTHER), 2u);
    cr_expect_eq(cursor_of(THIRD), 100u, "in a second piece");
    cr_expect_eq(seen.n_broken, 1u);
    cr_expect_str_eq(seen.broken, OTHER);
    acknowledge(2, true);
    expect_round(ROUND_ALL, STORAGE_BEHIND, 1);
    cr_expect_eq(cursor_of(OWN), 2u);
    cr_expect_eq(cursor_of(OTHER), 2u);
    cr_expect_eq(seen.n_broken, 1u, "it is told once");
    expect_round(ROUND_OWN, STORAGE_OK, 0);
}

/* A process of a later version can read what this one cannot. */
Test(round, a_broken_log_goes_on_behind_what_another_counts, .init = setup, .fini = teardown)
{
    fake_streams_add(OTHER, 5)->is_foreign[3] = true;
    expect_round(ROUND_ALL, STORAGE_BEHIND, 1);
    log_of(OTHER)->cursor = "3";
    expect_round(ROUND_ALL, STORAGE_OK, 1);
    cr_expect_eq(cursor_of(OTHER), 5u);
    cr_expect_eq(seen.n_broken, 1u);
    log_of(OTHER)->n = 7;
    log_of(OTHER)->has[6] = log_of(OTHER)->is_foreign[7] = log_of(OTHER)->has[7] = true;
    expect_round(ROUND_ALL, STORAGE_BEHIND, 1);
    cr_expect_eq(seen.n_broken, 2u, "another entry is told of");
}

/* ---- faults ---- */

Test(round, ends_with_a_connection, .init = setup, .fini = teardown)
{
    acknowledge(1, true);
    fake_streams.is_lost = true;
    expect_round(ROUND_OWN, STORAGE_DOWN, 0);
    fake_streams.is_lost = false;
    seen.ends[0] = FOLD_LOST;
    expect_round(ROUND_OWN, STORAGE_DOWN, 1);
    cr_expect_null(fold_round.session.redis);
    cr_expect_eq(fold_round.streams.n, 0u, "the next connection may tell otherwise");
    cr_expect_eq(unfolded.logs[0].n, 1u);
    seen.ends[0] = FOLD_DONE;
    expect_round(ROUND_OWN, STORAGE_OK, 1);
    cr_expect_eq(cursor_of(OWN), 1u);
}

Test(round, tells_why_nothing_was_counted, .init = setup, .fini = teardown)
{
    acknowledge(1, true);
    seen.ends[0] = FOLD_ERR;
    seen.err = STORAGE_OOM;
    expect_round(ROUND_OWN, STORAGE_OOM, 1);
    cr_expect_not_null(fold_round.session.redis);
    cr_expect_eq(unfolded.logs[0].n, 1u);
}

/* ---- what others have at the end of a round ---- */

Test(round, others_are_folded_or_not, .init = setup, .fini = teardown)
{
    (void)fake_streams_add(OTHER, 3);
    cr_assert_eq(round_run(&fold_round, ROUND_ALL), STORAGE_OK);
    cr_expect(round_others_are_folded(&fold_round));
    log_of(OWN)->n += 5;
    cr_expect(round_others_are_folded(&fold_round), "what its own log has is not asked");
    log_of(OTHER)->n++;
    cr_expect_not(round_others_are_folded(&fold_round), "something came");
    log_of(OTHER)->n--;
    cr_expect(round_others_are_folded(&fold_round));
    (void)fake_streams_add(THIRD, 1);
    cr_expect_not(round_others_are_folded(&fold_round), "another log began");
    log_of(THIRD)->has_head = false;
    cr_expect(round_others_are_folded(&fold_round), "a log that is closed is counted");
}
