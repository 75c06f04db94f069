/* The users of a set, page by page: who is left out, and where the next page begins. */
#include <criterion/criterion.h>

#include "storage/read/operation.h"
#include "storage/time/units.h"
#include "tests/lib/commands.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

TestSuite(active_users, .timeout = 60);

#define TODAY     (FOLD_NOW_S / DAY_S)
#define NAMES_MAX 4

static struct core *core;
static struct reader reader;
static struct storage_job job;
static const char *names[NAMES_MAX]; /* of the indices from 0 on; "": was forgotten */
static size_t n_names;
static size_t n_replies;

static void any_group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    (void)kind;
}

static struct reply names_between(const struct command *command)
{
    static struct reply list[NAMES_MAX];
    size_t n = 0;
    size_t end = (size_t)command_number(command, 3) + 1;
    for (size_t i = 0; i < NAMES_MAX; i++) {
        list[i] = fold_text("behind the list");
    }
    for (size_t i = (size_t)command_number(command, 2); i < end && i < n_names; i++) {
        list[n++] = fold_text(names[i]);
    }
    return fold_array(list, n);
}

static const struct reply *dispatched(struct dispatcher *of)
{
    static struct reply reply;
    static struct reply pair[2];
    struct commands commands;
    cr_assert(commands_read(&of->bytes, &commands) && n_replies < commands.n);
    const struct command *command = &commands.commands[n_replies++];
    pair[0] = fold_text(FOLD_CFG);
    pair[1] = fold_text(NULL);
    reply = fold_array(pair, 2); /* the partition's state */
    if (command_is(command, 0, "HGET")) {
        reply = fold_text("3");
    } else if (command_is(command, 0, "GETRANGE")) {
        reply = fold_text("\xe0"); /* users 0, 1 and 2 */
    } else if (command_is(command, 0, "LRANGE")) {
        reply = names_between(command);
    } else if (command_is(command, 0, "TIME")) {
        pair[0] = fold_text("1795187834");
        pair[1] = fold_text("0");
    }
    commands_release(&commands);
    return &reply;
}

static void setup(void)
{
    core = fold_core_make(1);
    reader.core = core;
    reader.session.dispatcher = &reader.dispatcher;
    stand_in.group = any_group;
    stand_in.dispatched = dispatched;
}

static void teardown(void)
{
    arena_release(&job.u.active_users.arena);
    buffer_release(&reader.dispatcher.bytes);
    fold_core_drop(core);
}

/* Ask for a page of @limit users from @index on, of the three of each partition.  The job has run
 * before, and was cut. */
static const struct active_users_job *ask(uint64_t index, size_t limit)
{
    static const struct slice action = {"active", 6};
    static const struct activity_set set = {.n_actions = 1, .days = {TODAY, 1}};
    bool lost = false;
    n_replies = 0;
    buffer_clear(&reader.dispatcher.bytes, SIZE_MAX);
    arena_release(&job.u.active_users.arena);
    job = (struct storage_job){.op = STORAGE_ACTIVE_USERS, .deadline_ms = INT64_MAX / 2};
    job.u.active_users = (struct active_users_job){.asked = {.site = SLICE("s"),
                                                       .actions = &action,
                                                       .n_actions = 1,
                                                       .sets = &set,
                                                       .n_sets = 1},
        .index = index,
        .limit = limit,
        .n_users = 1,
        .more = true};
    cr_assert_eq(active_users_run(&reader, &job, &lost), STORAGE_OK, "%s", job.detail);
    return &job.u.active_users;
}

static void name_three(const char *first, const char *second, const char *third, size_t n)
{
    names[0] = first;
    names[1] = second;
    names[2] = third;
    n_names = n;
}

/* The name goes before the bits. */
Test(active_users, who_is_forgotten_half_way_is_not_named, .init = setup, .fini = teardown)
{
    name_three("ann", "", "bob", 3);
    const struct active_users_job *page = ask(0, 10);
    cr_assert_eq(page->n_users, 2u);
    cr_expect(slice_equal(page->users[0], SLICE("ann")));
    cr_expect(slice_equal(page->users[1], SLICE("bob")));
    cr_expect_not(page->more);
}

Test(active_users, the_next_page_begins_with_the_first_that_has_no_room, .init = setup,
    .fini = teardown)
{
    name_three("ann", "", "bob", 3);
    const struct active_users_job *page = ask(0, 1);
    cr_assert_eq(page->n_users, 1u);
    cr_assert(page->more);
    cr_expect_eq(page->next_index, 2u);
    page = ask(2, 1);
    cr_assert_eq(page->n_users, 1u);
    cr_expect(slice_equal(page->users[0], SLICE("bob")));
    cr_expect_not(page->more);
}

/* What a list does not have is no name. */
Test(active_users, a_list_of_names_may_be_shorter, .init = setup, .fini = teardown)
{
    name_three("ann", NULL, NULL, 1);
    const struct active_users_job *page = ask(0, 10);
    cr_assert_eq(page->n_users, 1u);
    cr_expect_not(page->more);
}

/* Each partition has these three.  More partitions are read at once each time. */
Test(active_users, no_user_of_a_later_partition_is_left_out, .init = setup, .fini = teardown)
{
    fold_core_drop(core);
    core = fold_core_make(8);
    reader.core = core;
    name_three("ann", "cat", "bob", 3);
    cr_expect_eq(ask(0, 100)->n_users, 24u);
}
