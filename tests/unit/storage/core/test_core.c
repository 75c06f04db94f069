#include "storage/core/core.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(core, .timeout = 60);

static unsigned notices;
static char noticed[128];

static void take_notice(void *data, enum storage_notice what, const char *detail)
{
    (void)data;
    (void)what;
    notices++;
    (void)snprintf(noticed, sizeof(noticed), "%s", detail);
}

static struct reply text(const char *p)
{
    return (struct reply){
        .type = p != NULL ? REPLY_TEXT : REPLY_NIL, .text = p != NULL ? slice_of(p) : SLICE("")};
}

/* What a partition with @over has. */
static struct partition_view parse(struct core *core, const char *over)
{
    struct reply fields[] = {text("the settings"), text("36000 36000 0 0 0 0"), text("v.1"),
        text(NULL), text(over), text("f.1")};
    struct reply reply = {.type = REPLY_ARRAY, .items = fields, .n = STATE_FIELDS};
    struct partition_view view;
    (void)snprintf(core->cfg, sizeof(core->cfg), "the settings");
    cr_assert(core_parse_state(core, &reply, &view));
    cr_assert(view.known);
    return view;
}

Test(core, minutes_are_over_up_to_an_instant_with_an_id)
{
    static struct core core;
    struct partition_view view = parse(&core, "01773140160 0123456789abcdef.17");
    cr_expect_eq(view.over_s, 1773140160);
    cr_expect(ver_equal(&view.over, &(struct ver){31, "01773140160 0123456789abcdef.17"}));
}

Test(core, what_is_no_instant_and_id_proves_nothing)
{
    static struct core core;
    static const char *const none[] = {
        NULL, "", "01773140160", "x", "-0000000001 a", "0177314016x a"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        struct partition_view view = parse(&core, none[i]);
        cr_expect(view.over.n == 0 || view.over_s <= 0, "%s", none[i] != NULL ? none[i] : "nil");
    }
}

Test(core, what_was_the_same_twice_is_held)
{
    static struct core core;
    core_init(&core);
    struct partition_view view = parse(&core, "01773140160 a.1");
    core_set_view(&core, 3, &view);
    cr_expect_not(view.over_held, "nothing was known before");
    core_set_view(&core, 3, &view);
    cr_expect(view.over_held && core_view(&core, 3).over_held);
    struct partition_view other = parse(&core, "01773140220 a.2");
    core_set_view(&core, 3, &other);
    cr_expect_not(other.over_held);
    struct partition_view none = parse(&core, NULL);
    core_set_view(&core, 3, &none);
    core_set_view(&core, 3, &none);
    cr_expect_not(none.over_held, "nothing proves nothing");
    struct partition_view unfolded = parse(&core, NULL);
    unfolded.fold.n = 0;
    core_set_view(&core, 3, &unfolded);
    core_set_view(&core, 3, &unfolded);
    cr_expect_not(unfolded.fold_held, "nothing was counted yet");
    core_release(&core);
}

/* A loss is told and counted once, until a reply says that the state is there again. */
Test(core, partitions_that_have_lost_their_states)
{
    static struct core core;
    char sentence[LOST_STATE_TEXT];
    struct reply fields[] = {
        text(NULL), text(NULL), text(NULL), text(NULL), text(NULL), text(NULL)};
    struct reply reply = {.type = REPLY_ARRAY, .items = fields, .n = STATE_FIELDS};
    core.config.notice = take_notice;
    partitions_make(1024, &core.partitions);
    cr_expect_not(core_state_lost(&core, 3, &reply), "one Redis makes its states anew");
    core.is_spread = true;
    cr_expect_not(core_lost_text(&core, sentence));
    for (int again = 0; again < 2; again++) {
        cr_expect(core_state_lost(&core, 1023, &reply));
    }
    cr_expect_eq(notices, 1);
    cr_expect_eq(atomic_load(&core.stats.partitions_without_state), 1);
    cr_assert(core_lost_text(&core, sentence));
    cr_expect_str_eq(sentence, noticed);
    cr_expect_eq(sentence[strlen(sentence) - 1], '`', "the longest sentence fits: %s", sentence);
    core_note_state(&core, 64, true);
    cr_expect_eq(partition_marks_next(&core.lost_states, 0), 64);
    cr_expect_eq(partition_marks_next(&core.lost_states, 65), 1023);
    fields[0] = text("the settings");
    cr_expect_not(core_state_lost(&core, 1023, &reply));
    core_note_state(&core, 64, false);
    cr_expect_not(core_lost_text(&core, sentence));
    cr_expect_eq(atomic_load(&core.stats.partitions_without_state), 0);
}

/* Hours were kept for a shorter time before: what is older is gone, by the partition that kept the
 * least, until the change is long enough ago. */
Test(core, what_was_gone_when_it_was_to_be_kept_longer_is_too_old)
{
    static struct core core;
    static const int64_t before_h[] = {50, 10, 30, 100, 0};
    const int64_t now_s = 1000 * 3600;
    core_init(&core);
    core.config.retention.keep_s[LEVEL_HOUR] = 100 * 3600;
    for (unsigned p = 0; p < sizeof(before_h) / sizeof(before_h[0]); p++) {
        struct partition_view view = {.known = true, .retention = core.config.retention};
        view.retention.before_s[LEVEL_HOUR] = before_h[p] * 3600;
        view.retention.until_s[LEVEL_HOUR] = before_h[p] > 0 ? now_s + 3600 : 0;
        core_set_view(&core, p, &view);
        int64_t oldest_h = p == 0 ? 950 : 990;
        cr_expect_eq(core_oldest_s(&core, LEVEL_HOUR, now_s), oldest_h * 3600, "%u", p);
    }
    cr_expect_eq(core_oldest_s(&core, LEVEL_HOUR, now_s + 20 * 3600), now_s + 3600);
    cr_expect_eq(core_oldest_s(&core, LEVEL_HOUR, now_s + 200 * 3600), now_s + 100 * 3600);
    core_release(&core);
}

/* What was acknowledged later may be lost, and says nothing of what was acknowledged before. */
Test(core, what_may_be_lost_was_acknowledged_since_an_instant)
{
    static struct core core;
    core.n_logs = 2;
    core.is_spread = true;
    cr_expect_not(core_may_lose(&core, INT64_MAX), "all is safe");
    atomic_store(&core.unsafe_since_us[1], 500);
    cr_expect_not(core_may_lose(&core, 499));
    cr_expect(core_may_lose(&core, 500));
    atomic_store(&core.unsafe_since_us[0], 300);
    cr_expect_not(core_may_lose(&core, 299));
    cr_expect(core_may_lose(&core, 300), "the log of any place");
}

/* One partition that lags is a lag, whichever partition it is. */
Test(core, the_partition_that_lags_most_tells)
{
    static struct core core;
    core_init(&core);
    cr_assert(site_zones_init(&core.sites));
    core.partitions.n = 3;
    const int64_t now_s = 20000 * INT64_C(86400) + 12 * 3600 + 600;
    for (unsigned behind = 0; behind < core.partitions.n; behind++) {
        for (unsigned p = 0; p < core.partitions.n; p++) {
            struct partition_view view = {.known = true, .state = rollup_state_initial(now_s)};
            view.state.readers_s[LEVEL_HOUR] -= p == behind ? 7200 : 0;
            core_set_view(&core, p, &view);
        }
        cr_expect_eq(core_rollup_lag_s(&core, LEVEL_HOUR), 0, "the time is not known");
        (void)redis_clock_seen(&core.clock, now_s * 1000000);
        cr_expect_eq(core_rollup_lag_s(&core, LEVEL_HOUR), 7200, "partition %u", behind);
        cr_expect_eq(core_rollup_lag_s(&core, LEVEL_DAY), 0);
        atomic_store(&core.clock.ahead_us, 0);
    }
    core_release(&core);
}

/* What one reader found out of date, another one may have learnt anew. */
Test(core, only_the_ver_that_was_wrong_is_forgotten)
{
    static struct core core;
    core_init(&core);
    struct partition_view view = parse(&core, NULL);
    core_set_view(&core, 3, &view);
    core_forget_ver(&core, 3, &(struct ver){3, "v.0"});
    cr_expect_eq(core_view(&core, 3).ver.n, 3u);
    core_forget_ver(&core, 3, &(struct ver){3, "v.1"});
    cr_expect_eq(core_view(&core, 3).ver.n, 0u);
    core_release(&core);
}
