#include "storage/fold/streams.h"

#include <criterion/criterion.h>

#include "tests/lib/fake_streams.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(streams, .timeout = 60);

#define A "00000000000000aa"
#define B "00000000000000bb"

static struct core *core;
static struct session session;
static struct streams streams;
static struct batch batch;

static void setup(void)
{
    core = fold_core_make(3);
    session.redis = stand_in_redis();
    fake_streams_stand_in();
}

static void teardown(void)
{
    batch_release(&batch);
    streams_release(&streams);
    fold_core_drop(core);
}

static struct stream *stream_at(const char *id, uint64_t folded)
{
    struct stream *stream = streams_find(&streams, id);
    cr_assert_not_null(stream);
    stream->folded = folded;
    return stream;
}

static const struct batch_log *read_piece(struct stream *stream, uint64_t to)
{
    batch_clear(&batch);
    cr_assert_eq(streams_read(&streams, core, &session, 0, stream, 0, to, &batch), REDIS_OK_STATUS);
    cr_assert_eq(batch.n_logs, 1u);
    return &batch.logs[0];
}

static void expect_log(
    const struct batch_log *log, uint64_t from, uint64_t to, bool more, bool broken)
{
    cr_expect_eq(log->from, from);
    cr_expect_eq(log->to, to);
    cr_expect_eq(log->more, more);
    cr_expect_eq(log->broken, broken);
    cr_expect(batch.n_entries == 0 || batch.entries[0].entry->era[0] == '\0');
}

Test(streams, without_a_head_are_forgotten, .init = setup, .fini = teardown)
{
    struct heads heads = {0};
    (void)fake_streams_add(A, 3);
    stream_at(B, 7)->is_known = true;
    stream_at(A, 2)->is_known = true;
    cr_assert_eq(streams_look(&streams, core, &session, 0, &heads), REDIS_OK_STATUS);
    cr_expect_eq(heads.n, 1u);
    cr_expect_eq(streams.n, 1u);
    cr_expect(streams_find(&streams, A)->folded == 2 && streams_find(&streams, A)->is_known);
    cr_expect(streams_find(&streams, B)->folded == 0 && !streams_find(&streams, B)->is_known);
    fake_streams.is_lost = true;
    cr_expect_eq(streams_look(&streams, core, &session, 0, &heads), REDIS_LOST);
    heads_release(&heads);
}

/* A cursor "n:i" says that entry n is not whole. */
Test(streams, are_folded_as_far_as_the_least_cursor, .init = setup, .fini = teardown)
{
    static const struct {
        const char *cursor;
        uint64_t folded;
    } cases[] = {{NULL, 0}, {"7", 7}, {"7:2", 6}, {"1:1", 0}};
    struct fake_stream_log *log = fake_streams_add(A, 9);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct stream *stream = stream_at(A, 99);
        log->cursor = cases[i].cursor;
        cr_assert_eq(streams_learn(core, &session, 0, stream), REDIS_OK_STATUS);
        cr_expect_eq(stream->folded, cases[i].folded);
        cr_expect(stream->is_known);
    }
    log->cursor = "7:";
    cr_expect_eq(streams_learn(core, &session, 0, stream_at(A, 0)), REDIS_LOST);
}

Test(streams, are_read_behind_what_is_folded, .init = setup, .fini = teardown)
{
    (void)fake_streams_add(A, 9);
    expect_log(read_piece(stream_at(A, 2), 7), 2, 7, false, false);
    cr_expect_str_eq(fake_streams.last, "3 7 64");
    cr_assert_eq(batch.n_entries, 5u);
    cr_expect_eq(batch.entries[0].entry->n, 3u);
    cr_expect_str_eq(batch.entries[0].entry->id, A);
}

/* Numbers that are missing were jumped over, or are lost for good. */
Test(streams, may_lack_entries, .init = setup, .fini = teardown)
{
    struct fake_stream_log *log = fake_streams_add(A, 9);
    log->has[3] = log->has[4] = log->has[8] = log->has[9] = false;
    expect_log(read_piece(stream_at(A, 2), 9), 2, 9, false, false);
    cr_expect_eq(batch.n_entries, 3u);
    expect_log(read_piece(stream_at(A, 7), 9), 7, 9, false, false);
    cr_expect_eq(batch.n_entries, 0u);
}

Test(streams, are_read_in_pieces, .init = setup, .fini = teardown)
{
    (void)fake_streams_add(A, 200);
    expect_log(read_piece(stream_at(A, 0), 200), 0, 64, true, false);
    expect_log(read_piece(stream_at(A, 64), 200), 64, 192, true, false);
    cr_expect_str_eq(fake_streams.last, "65 200 128", "small entries: twice as many");
    expect_log(read_piece(stream_at(A, 192), 200), 192, 200, false, false);
}

Test(streams, end_at_an_entry_that_is_none, .init = setup, .fini = teardown)
{
    struct fake_stream_log *log = fake_streams_add(A, 9);
    log->is_foreign[5] = true;
    expect_log(read_piece(stream_at(A, 2), 9), 2, 4, true, true);
    cr_expect_eq(batch.n_entries, 2u);
    expect_log(read_piece(stream_at(A, 4), 9), 4, 4, true, true);
    expect_log(read_piece(stream_at(A, 5), 9), 5, 9, false, false);
}

Test(streams, that_cannot_be_read, .init = setup, .fini = teardown)
{
    (void)fake_streams_add(A, 9);
    fake_streams.refuses = true;
    cr_expect_eq(
        streams_read(&streams, core, &session, 0, stream_at(A, 0), 0, 9, &batch), REDIS_LOST);
    fake_streams.refuses = false;
    batch_clear(&batch);
    for (unsigned i = 0; i < BATCH_LOGS; i++) {
        cr_assert_not_null(batch_add_log(&batch, B, 0));
    }
    fake_streams.n_ranges = 0;
    cr_expect_eq(
        streams_read(&streams, core, &session, 0, stream_at(A, 0), 0, 9, &batch), REDIS_OK_STATUS);
    cr_expect_eq(fake_streams.n_ranges, 0u, "the batch is full: in the next one");
}
