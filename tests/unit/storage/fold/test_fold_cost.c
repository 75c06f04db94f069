#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/fold/share.h"
#include "tests/lib/commands.h"
#include "tests/lib/dice.h"
#include "tests/lib/fold_fixture.h"

/* What an event costs: how many commands a fold comes to, and how many bytes, where most pages and
 * minutes are new.  12,500 events in arrays of 1000, 10,000 pages near Zipf's law, 1,000,000 users,
 * cut as for Redis. */
TestSuite(fold_cost, .timeout = 60);

#define PARTITIONS 16
#define ARRAYS     12
#define ARRAY      1000
#define PAGES      10000
#define PAGE_TEXT  24
#define LIMIT_US   1500
#define LOG        "00000000000000aa"

struct cost {
    size_t commands, bytes, events, transactions;
};

static char pages[PAGES][PAGE_TEXT];

/* @age_s: the events are so old, up to twice as much. */
static struct log_entry *make_array(
    struct dice *dice, uint64_t n, int64_t age_s, struct event *events)
{
    static char users[ARRAY][PAGE_TEXT];
    for (size_t i = 0; i < ARRAY; i++) {
        double page = exp((double)dice_below(dice, 1000000) / 1e6 * log(PAGES));
        int64_t user = dice_below(dice, 1000000);
        (void)snprintf(users[i], PAGE_TEXT, "user-%08d", (int)user);
        events[i] = (struct event){.at_s = FOLD_NOW_S - age_s - dice_below(dice, age_s + 1),
            .site = SLICE("shop"),
            .page = slice_of(pages[(size_t)page % PAGES]),
            .user = slice_of(users[i]),
            .address = {.len = 4, .bytes = {10, (uint8_t)user, (uint8_t)(user >> 8), 1}}};
    }
    return fold_entry_of(LOG, n, FOLD_NOW_S, events, ARRAY);
}

/* Nobody and nothing was there before. */
static void answer(struct share *share, const struct command *question, size_t i)
{
    struct reply reply = {.type = REPLY_INTEGER, .integer = 0};
    struct reply *items = calloc(question->n, sizeof(*items));
    cr_assert_not_null(items);
    for (size_t k = 0; k < question->n; k++) {
        items[k].type = REPLY_NIL;
    }
    if (i == 0) {
        static char st[ROLLUP_STATE_TEXT];
        struct rollup_state closed = rollup_state_initial(FOLD_NOW_S);
        (void)rollup_state_print(&closed, st);
        items[0] = fold_text(FOLD_CFG);
        items[1] = fold_text(st);
        items[2] = fold_text("v");
    }
    if (command_is(question, 0, "HMGET")) {
        reply = fold_array(items, question->n - 2);
    }
    cr_assert(share_take(share, SHARE_STATE, i, &reply));
    free(items);
}

static void ask(struct share *share)
{
    struct commands questions;
    struct buffer out;
    buffer_init(&out);
    size_t n = share_write(share, SHARE_STATE, &out);
    cr_assert(commands_read(&out, &questions));
    for (size_t i = 0; i < n; i++) {
        answer(share, &questions.commands[i], i);
    }
    commands_release(&questions);
    buffer_release(&out);
}

static void fold_cut(
    struct share *share, const struct batch *batch, const struct cut *cut, struct cost *cost)
{
    enum log_fate fates[BATCH_LOGS] = {LOG_COUNTS};
    struct storage_stats stats = {0};
    uint32_t log;
    struct buffer out;
    cr_assert(share_begin(share, batch, cut));
    ask(share);
    cr_assert_eq(share_decide(share, fates, FOLD_NOW_S * 1000, &log), SHARE_FOLDS);
    buffer_init(&out);
    cost->commands += share_write_commands(share, &out);
    cost->bytes += out.n;
    share_show(share, &stats);
    cost->events += (size_t)stats.fold_events;
    cr_assert_not(out.failed);
    share_learn(share);
    buffer_release(&out);
}

static struct cost fold_arrays(int64_t age_s)
{
    static struct shared_memory shared; /* nobody is known */
    static struct fold_memory memory = {.shared = &shared};
    static struct batch batch;
    struct event *events = calloc(ARRAY, sizeof(*events));
    struct dice dice = dice_make(4711);
    struct core *core = fold_core_make(PARTITIONS);
    core->config.retention.keep_s[LEVEL_MINUTE] = 172800;
    struct share *share = share_new(core, &memory);
    struct cost cost = {0};
    struct cut_left left = {0};
    struct cutter cutter;
    struct cut cuts[CUTS_MAX];
    bool last = false;
    cr_assert(events != NULL && share != NULL && batch_add_log(&batch, LOG, 0) != NULL);
    for (size_t i = 0; i < PAGES; i++) {
        (void)snprintf(pages[i], PAGE_TEXT, "/page/number/%07zu", i);
    }
    for (uint64_t n = 1; n <= ARRAYS; n++) {
        cr_assert(batch_add(&batch, make_array(&dice, n, age_s, events)));
    }
    cr_assert(batch_finish(&batch, core));
    cut_all_left(&left, core);
    cutter_begin(&cutter, core, &batch, &left, 0);
    while (!last) {
        unsigned n = cutter_next(&cutter, &fold_no_pace, LIMIT_US, cuts, &last);
        cost.transactions++;
        for (unsigned i = 0; i < n; i++) {
            cr_assert_leq(cuts[i].us, 2 * LIMIT_US);
            fold_cut(share, &batch, &cuts[i], &cost);
        }
    }
    cr_assert_eq(cost.events, ARRAYS * ARRAY);
    share_free(share);
    batch_release(&batch);
    fold_memory_forget(&memory);
    fold_memory_release(&memory);
    fold_core_drop(core);
    free(events);
    return cost;
}

static void expect_at_most(const struct cost *cost, double commands, double bytes)
{
    double n = ARRAYS * ARRAY;
    cr_expect_leq((double)cost->commands / n, commands,
        "%.2f commands an event in %zu transactions", (double)cost->commands / n,
        cost->transactions);
    cr_expect_leq((double)cost->bytes / n, bytes, "%.0f bytes an event", (double)cost->bytes / n);
}

Test(fold_cost, old_events)
{
    struct cost cost = fold_arrays(3600);
    expect_at_most(&cost, 7.5, 850);
}

Test(fold_cost, live_events)
{
    struct cost cost = fold_arrays(0);
    expect_at_most(&cost, 1.7, 300);
}
