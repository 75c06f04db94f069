/* Clearing the bits of who was forgotten. */
#include "storage/users/forget.h"

#include <criterion/criterion.h>

#include "storage/read/operation.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(forget, .timeout = 60);

#define COMMANDS 4
#define BITMAPS                                                                                    \
    5000 /* more than a scan is asked for: a small set, as Redis is set up, comes whole */

static struct dispatcher dispatcher;
static struct session session = {.dispatcher = &dispatcher};
static enum dispatcher_kind kinds[COMMANDS];
static unsigned n_groups, n_replies;
static struct reply members[2 * BITMAPS]; /* of `acts`, with their scores */
static size_t n_members;

static void group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    cr_assert_lt(n_groups, COMMANDS);
    kinds[n_groups++] = kind;
}

/* One index stands in `gone`, and `acts` has the members. */
static const struct reply *dispatched(struct dispatcher *of)
{
    static struct reply gone[1];
    static struct reply scan[2];
    static struct reply replies[COMMANDS];
    (void)of;
    gone[0] = fold_text("s:5");
    scan[0] = fold_text("0");
    scan[1] = fold_array(members, n_members);
    replies[0] = fold_array(gone, 1);
    replies[1] = fold_array(scan, 2);
    replies[2] = replies[3] = (struct reply){.type = REPLY_INTEGER, .integer = 0};
    cr_assert_lt(n_replies, COMMANDS);
    return &replies[n_replies++];
}

/* A replica that has taken over may lack what was cleared: there nobody says that all is done. */
Test(forget, the_last_step_is_carried_out_where_all_others_were)
{
    struct core *core = fold_core_make(1);
    stand_in.group = group;
    stand_in.dispatched = dispatched;
    cr_expect(activity_sweep(core, &session, 0));
    cr_assert(n_groups == 3 && n_replies == 3);
    cr_expect_eq(kinds[0], DISPATCH_SINGLE);
    cr_expect_eq(kinds[1], DISPATCH_SINGLE);
    cr_expect_eq(kinds[2], DISPATCH_ORDERED);
    buffer_release(&dispatcher.bytes);
    fold_core_drop(core);
}

Test(forget, all_bitmaps_that_a_scan_names_are_cleared)
{
    struct core *core = fold_core_make(1);
    stand_in.group = group;
    stand_in.dispatched = dispatched;
    n_members = 2 * BITMAPS;
    for (size_t i = 0; i < n_members; i += 2) {
        members[i] = fold_text("s:buy:20261129");
        members[i + 1] = fold_text("20786");
    }
    cr_expect(activity_sweep(core, &session, 0));
    cr_assert(n_groups == COMMANDS && n_replies == COMMANDS);
    cr_expect_eq(kinds[2], DISPATCH_SINGLE);
    cr_expect_eq(kinds[3], DISPATCH_ORDERED);
    buffer_release(&dispatcher.bytes);
    fold_core_drop(core);
}

/* The replies to what a request to forget a user asks: its index, the bitmaps of its site, what was
 * cleared; then whoever else is forgotten half way, and the end. */
static const struct reply *to_a_request(struct dispatcher *of)
{
    static struct reply scan[2];
    static struct reply replies[5];
    (void)of;
    scan[0] = fold_text("0");
    scan[1] = fold_array(NULL, 0);
    replies[0] = (struct reply){.type = REPLY_INTEGER, .integer = 5};
    replies[1] = fold_array(scan, 2);
    replies[2] = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    replies[3] = fold_array(NULL, 0);
    replies[4] = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    cr_assert_lt(n_replies, 5);
    return &replies[n_replies++];
}

static void any_group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    (void)kind;
}

/* More than are read at once may be forgotten half way, and take longer than the request may. */
Test(forget, who_is_asked_for_is_cleared_before_what_others_have_left)
{
    struct core *core = fold_core_make(1);
    struct reader reader = {.core = core, .session = {.dispatcher = &dispatcher}};
    struct storage_job job = {.op = STORAGE_FORGET_USER, .deadline_ms = INT64_MAX / 2};
    bool lost = false;
    job.u.forget_user.site = SLICE("s");
    job.u.forget_user.user = SLICE("u");
    stand_in.group = any_group;
    stand_in.dispatched = to_a_request;
    cr_expect_eq(forget_user_run(&reader, &job, &lost), STORAGE_OK, "%s", job.detail);
    cr_expect_eq(n_replies, 5);
    cr_expect_eq(job.u.forget_user.bits, 1);
    buffer_release(&dispatcher.bytes);
    fold_core_drop(core);
}

/* The script has answered, and then the connection is lost.  Tried again, the user has no index. */
static const struct reply *to_one_that_is_cut(struct dispatcher *of)
{
    static struct reply replies[4];
    (void)of;
    replies[0] = (struct reply){.type = REPLY_INTEGER, .integer = 5};
    replies[1] = (struct reply){.type = REPLY_INTEGER, .integer = -1};
    replies[2] = fold_array(NULL, 0);
    replies[3] = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    unsigned i = n_replies++;
    cr_assert_lt(i, 5);
    return i == 1 ? NULL : &replies[i > 1 ? i - 1 : i];
}

Test(forget, who_was_known_at_the_first_try_was_known)
{
    struct core *core = fold_core_make(1);
    struct reader reader = {.core = core, .session = {.dispatcher = &dispatcher}};
    struct storage_job job = {.op = STORAGE_FORGET_USER, .deadline_ms = INT64_MAX / 2};
    struct forget_user_job *user = &job.u.forget_user;
    bool lost = false;
    user->site = SLICE("s");
    user->user = SLICE("u");
    stand_in.group = any_group;
    stand_in.dispatched = to_one_that_is_cut;
    cr_expect_neq(forget_user_run(&reader, &job, &lost), STORAGE_OK);
    cr_expect(user->sent, "the index is gone, though the bits are not");
    lost = false;
    cr_expect_eq(forget_user_run(&reader, &job, &lost), STORAGE_OK, "%s", job.detail);
    cr_expect(user->known && user->sent);
    cr_expect_eq(n_replies, 5);
    buffer_release(&dispatcher.bytes);
    fold_core_drop(core);
}

/* A script takes 500 bitmaps away. */
static const struct reply *to_a_sweep(struct dispatcher *of)
{
    static struct reply replies[4];
    (void)of;
    replies[0] = replies[1] = (struct reply){.type = REPLY_INTEGER, .integer = 500};
    replies[2] = (struct reply){.type = REPLY_INTEGER, .integer = 499};
    replies[3] = fold_array(NULL, 0);
    cr_assert_lt(n_replies, 4);
    return &replies[n_replies++];
}

Test(forget, bitmaps_are_swept_away_until_none_is_left)
{
    struct core *core = fold_core_make(1);
    core->config.retention.keep_s[LEVEL_DAY] = 86400;
    stand_in.group = any_group;
    stand_in.dispatched = to_a_sweep;
    cr_expect(activity_sweep(core, &session, 0));
    cr_expect_eq(n_replies, 4, "and then what stands in `gone` is read");
    buffer_release(&dispatcher.bytes);
    fold_core_drop(core);
}
