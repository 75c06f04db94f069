/* What is asked of a full server, whose replicas have everything. */
#include "storage/session/replicated.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "storage/core/core.h"
#include "tests/lib/stand_in.h"

TestSuite(replicated, .timeout = 60);

static unsigned n_groups, n_replies;

static void group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    cr_expect_eq(kind, DISPATCH_ORDERED);
    n_groups++;
}

/* It carries out no command that needs memory, but a script that says that it may. */
static const struct reply *full_server(struct dispatcher *dispatcher)
{
    static const struct reply oom = {.type = REPLY_ERROR, .text = SLICE("OOM")};
    static const struct reply ok = {.type = REPLY_STATUS, .text = SLICE("OK")};
    static const struct reply one = {.type = REPLY_INTEGER, .integer = 1};
    const struct buffer *sent = &dispatcher->bytes;
    bool is_script = memmem(sent->p, sent->n, "EVALSHA", 7) != NULL;
    return n_replies++ % 2 == 1 ? &one : is_script ? &ok : &oom;
}

static struct session session;
static struct part_set asked;
static struct core *core;

/* Partitions 1 and 3 are asked, whose servers answer as @dispatched does. */
static void setup(const struct reply *(*dispatched)(struct dispatcher *dispatcher))
{
    core = calloc(1, sizeof(*core));
    session.dispatcher = calloc(1, sizeof(*session.dispatcher));
    cr_assert(core != NULL && session.dispatcher != NULL);
    stand_in.group = group;
    stand_in.dispatched = dispatched;
    core->partitions.n = 4;
    part_set_add(&asked, 1);
    part_set_add(&asked, 3);
}

static void teardown(void)
{
    buffer_release(&session.dispatcher->bytes);
    free(session.dispatcher);
    free(core);
}

Test(replicated, a_full_server_is_asked_too, .fini = teardown)
{
    struct part_set have;
    setup(full_server);
    cr_expect_eq(replicated_ask(core, &session, &asked, 1, 100, INT64_MAX, &have), REDIS_OK_STATUS);
    cr_expect_eq(n_groups, 2);
    cr_expect_arr_eq(&have, &asked, sizeof(asked));
}

/* The first server refuses the write.  WAIT behind that is answered by what replicas had before. */
static const struct reply *refusing_server(struct dispatcher *dispatcher)
{
    static const struct reply refused = {.type = REPLY_ERROR, .text = SLICE("MISCONF")};
    static const struct reply ok = {.type = REPLY_STATUS, .text = SLICE("OK")};
    static const struct reply one = {.type = REPLY_INTEGER, .integer = 1};
    (void)dispatcher;
    unsigned i = n_replies++;
    return i % 2 == 1 ? &one : i == 0 ? &refused : &ok;
}

Test(replicated, a_write_that_was_refused_proves_nothing, .fini = teardown)
{
    struct part_set have;
    setup(refusing_server);
    cr_expect_eq(replicated_ask(core, &session, &asked, 1, 100, INT64_MAX, &have), REDIS_OK_STATUS);
    cr_expect_not(part_set_has(&have, 1));
    cr_expect(part_set_has(&have, 3));
}

Test(replicated, too_few_replicas_prove_nothing, .fini = teardown)
{
    static const struct part_set none = {.words = {0}};
    struct part_set have;
    setup(full_server);
    cr_expect_eq(replicated_ask(core, &session, &asked, 2, 100, INT64_MAX, &have), REDIS_OK_STATUS);
    cr_expect_arr_eq(&have, &none, sizeof(none));
}
