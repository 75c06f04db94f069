/* Commands that must be carried out where those before them were. */
#include <criterion/criterion.h>

#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "tests/lib/stand_in.h"

TestSuite(pipeline, .timeout = 60);

static struct dispatcher dispatcher;
static struct session session = {.dispatcher = &dispatcher};
static struct pipeline p;
static enum dispatcher_kind kind; /* of the last group */
static unsigned n_dispatched;

static void group(unsigned partition, enum dispatcher_kind is)
{
    (void)partition;
    kind = is;
}

static const struct reply *dispatched(struct dispatcher *of)
{
    static const struct reply one = {.type = REPLY_INTEGER, .integer = 1};
    (void)of;
    n_dispatched++;
    return &one;
}

static void setup(void)
{
    stand_in.group = group;
    stand_in.dispatched = dispatched;
    dispatcher.links.changes = 7;
    pipeline_init(&p, &session, INT64_MAX);
}

static void teardown(void)
{
    bool lost = false;
    (void)pipeline_end(&p, &lost);
    buffer_release(&dispatcher.bytes);
}

/* Ask partition 3. */
static bool ask(bool stays)
{
    pipeline_stay(&p, stays);
    struct buffer *out = pipeline_command(&p, 3, "SREM", 2);
    resp_text(out, "gone");
    resp_text(out, "a:1");
    return pipeline_ask(&p, false) != NULL;
}

Test(pipeline, a_command_may_go_on_to_another_server, .init = setup, .fini = teardown)
{
    cr_expect(ask(false));
    cr_expect_eq(kind, DISPATCH_SINGLE);
    dispatcher.links.changes++;
    cr_expect(ask(false));
}

Test(pipeline, a_command_that_stays_is_not_sent_on, .init = setup, .fini = teardown)
{
    cr_expect(ask(true));
    cr_expect_eq(kind, DISPATCH_ORDERED, "a group that is to go elsewhere is lost");
    cr_expect(ask(false));
    cr_expect_eq(kind, DISPATCH_SINGLE, "only as long as was asked for");
}

Test(pipeline, a_command_that_stays_is_not_sent_to_a_new_server, .init = setup, .fini = teardown)
{
    cr_expect(ask(false));
    dispatcher.links.changes++;
    cr_expect_not(ask(true));
    cr_expect_eq(n_dispatched, 1, "it was not sent");
    cr_expect(p.lost);
    cr_expect_eq(p.err, STORAGE_DOWN);
}
