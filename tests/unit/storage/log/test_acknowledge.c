#include "storage/log/acknowledge.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* When a WAIT goes out.  What an answer to it does is tried in test_append.c. */

static struct core *core;
static struct appender a;

static void setup(void)
{
    core = calloc(1, sizeof(*core));
    cr_assert_not_null(core);
    core->config.ack_replicas = 1;
    a = (struct appender){.core = core};
}

static void teardown(void)
{
    free(core);
}

TestSuite(acknowledge, .init = setup, .fini = teardown, .timeout = 60);

Test(acknowledge, behind_whatever_is_written)
{
    cr_assert_not(acknowledge_is_due(&a), "nothing is written, and nothing waits");
    a.n_out = 2;
    cr_assert(acknowledge_is_due(&a));
    a.n_waits = 1;
    cr_assert(acknowledge_is_due(&a), "what is written now is behind that one");
    core->config.ack_replicas = 0;
    cr_assert_not(acknowledge_is_due(&a));
}

Test(acknowledge, again_while_answers_are_open)
{
    struct log_entry entry = {.next = NULL};
    a.unacknowledged = &entry;
    cr_assert(acknowledge_is_due(&a));
    a.n_waits = 1;
    cr_assert_not(acknowledge_is_due(&a), "it is asked already");
}

/* Each WAIT holds the connection up then.  Thousands of entries may go again after a failover. */
Test(acknowledge, while_too_few_do_what_goes_again_comes_first)
{
    a.lag_ms = 1;
    a.n_out = a.n_sent = 2;
    a.n_open = 1000;
    cr_assert_not(acknowledge_is_due(&a), "998 are still to be sent");
    a.n_open = 2;
    cr_assert(acknowledge_is_due(&a), "all are sent");
    a.n_waits = 1;
    cr_assert_not(acknowledge_is_due(&a), "one at a time");
    a.n_out = a.n_sent = a.n_open = a.n_waits = 0;
    cr_assert(acknowledge_is_due(&a), "until enough acknowledge");
}
