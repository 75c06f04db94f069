#include "storage/write/delivery.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/schema/hashed_event.h"

TestSuite(delivery, .timeout = 60);

#define NOW_S INT64_C(1795190400)

/* One flush under way, its parts in one script: of a request with a key and one without. */
struct scene {
    struct core core;
    struct flush_maker *maker;
    struct delivery delivery;
    struct session session;
    struct storage_job job;
    struct claim claim;
};

static void note_done(struct storage_job *job)
{
    job->data = NULL;
}

static void set_up(struct scene *s)
{
    static const struct secret secret = {{1}};
    static struct event events[] = {{.at_s = NOW_S, .page = {"/a", 2}, .user = {"u1", 2}},
        {.at_s = NOW_S, .page = {"/b", 2}, .user = {"u2", 2}}};
    memset(s, 0, sizeof(*s));
    s->core.one_node = true;
    for (int level = 0; level < LEVELS; level++) {
        s->core.config.retention.keep_s[level] = KEEP_FOREVER;
    }
    partitions_make(16, &s->core.partitions);
    core_init(&s->core);
    cr_assert(site_zones_init(&s->core.sites));
    core_time_seen(&s->core, NOW_S * 1000000);
    struct job_rows *rows = malloc(sizeof(*rows) + 2 * sizeof(rows->rows[0]));
    cr_assert_not_null(rows);
    rows->n = 2;
    for (size_t i = 0; i < 2; i++) {
        events[i].site = EVENT_SITE_DEFAULT;
        row_make(
            &events[i], &secret, ROTATE_NEVER, &s->core.partitions, &s->core.sites, &rows->rows[i]);
        s->job.parts_all |= row_partitions(&rows->rows[i]);
    }
    s->claim = (struct claim){.gen_ms = NOW_S * 1000, .until_ms = NOW_S * 1000 + 60000};
    s->job.op = STORAGE_WRITE;
    s->job.u.write = (struct write_job){.events = events, .n = 2, .claim = &s->claim};
    s->job.rows = rows;
    s->job.cost = 2;
    s->job.done = note_done;
    s->job.deadline_ms = INT64_MAX;
    cr_assert(delivery_init(&s->delivery, &s->core, NULL));
    s->maker = flush_maker_new(&s->core, &s->delivery.pace);
    cr_assert_not_null(s->maker);
    struct flush *flush = flush_make(s->maker, &s->job, NOW_S * 1000);
    cr_assert(flush != NULL && flush->n_parts >= 2);
    delivery_add(&s->delivery, flush);
    cr_assert(delivery_pump(&s->delivery, &s->session, monotonic_ms()));
    cr_assert_eq(s->delivery.sent_scripts, 1, "all parts are in one script");
}

static void tear_down(struct scene *s)
{
    delivery_release(&s->delivery);
    flush_maker_free(s->maker);
    core_release(&s->core);
}

static struct reply number(int64_t value)
{
    return (struct reply){.type = REPLY_INTEGER, .integer = value};
}

/* The reply to the script: @codes one a part, the last one again for those that follow.  Is the
 * connection kept? */
static bool answer(struct scene *s, const int64_t *codes, size_t n)
{
    struct reply items[3 + 2 * 64] = {number(NOW_S), number(0), number(100)};
    size_t n_items = 3;
    for (size_t i = 0; i < s->delivery.sent.n; i++) {
        items[n_items++] = number(codes[i < n ? i : n - 1]);
        items[n_items++] =
            (struct reply){.type = REPLY_TEXT, .text = SLICE("1 0")}; /* unit 1: no task yet */
    }
    struct reply reply = {.type = REPLY_ARRAY, .items = items, .n = n_items};
    return delivery_take_reply(&s->delivery, &reply);
}

/* ---- what write.lua answers, part by part ---- */

Test(delivery, an_emptied_partition_gives_the_connection_up_whatever_the_next_part_says)
{
    static const int64_t emptied_then_keyed_again[] = {5, 7};
    struct scene s;
    set_up(&s);
    cr_expect_not(answer(&s, emptied_then_keyed_again, 2));
    tear_down(&s);
}

Test(delivery, a_request_with_a_key_that_was_applied_before_keeps_the_connection)
{
    static const int64_t keyed_again[] = {7};
    struct scene s;
    set_up(&s);
    cr_expect(answer(&s, keyed_again, 1));
    tear_down(&s);
}
