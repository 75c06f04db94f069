/* What is asked of a full server, whose replicas have everything. */
#include "storage/core/replicated.h"

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

Test(replicated, a_full_server_is_asked_too)
{
    struct core *core = calloc(1, sizeof(*core));
    struct dispatcher *dispatcher = calloc(1, sizeof(*dispatcher));
    cr_assert(core != NULL && dispatcher != NULL);
    struct session session = {.dispatcher = dispatcher};
    struct part_set asked = {.words = {0}}, have;
    stand_in.group = group;
    stand_in.dispatched = full_server;
    core->partitions.n = 4;
    part_set_add(&asked, 1);
    part_set_add(&asked, 3);
    cr_expect_eq(replicated_ask(core, &session, &asked, 1, 100, INT64_MAX, &have), REDIS_OK_STATUS);
    cr_expect_eq(n_groups, 2);
    cr_expect_arr_eq(&have, &asked, sizeof(asked));
    buffer_release(&dispatcher->bytes);
    free(dispatcher);
    free(core);
}
