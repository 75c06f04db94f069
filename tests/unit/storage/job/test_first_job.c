#include "storage/job/first_job.h"

#include <criterion/criterion.h>

TestSuite(first_job, .timeout = 60);

static bool equal(struct key_digest a, struct key_digest b)
{
    return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

Test(first_job, the_ticket_of_a_request_with_a_key_is_the_same_again)
{
    struct request_key a = {.key = {{1}}, .body = {{2}}};
    struct request_key other_key = {.key = {{2}}, .body = {{2}}};
    struct request_key other_body = {.key = {{1}}, .body = {{1}}};
    struct request_key crossed = {.key = {{2}}, .body = {{1}}};
    cr_expect(equal(first_ticket(&a), first_ticket(&a)));
    cr_expect_not(equal(first_ticket(&a), first_ticket(&other_key)));
    cr_expect_not(equal(first_ticket(&a), first_ticket(&other_body)));
    cr_expect_not(equal(first_ticket(&a), first_ticket(&crossed)));
    cr_expect_not(equal(first_ticket(&a), a.key), "the key's digest alone would not do");
}

Test(first_job, without_a_key_no_two_are_equal)
{
    struct request_key a = {.key = {{1}}, .body = {{2}}};
    struct key_digest one = first_ticket(NULL);
    cr_expect_not(equal(one, first_ticket(NULL)));
    cr_expect_not(equal(one, first_ticket(&a)));
}

Test(first_job, who_asks)
{
    static const struct slice active[] = {{"active", 6}, {"active", 6}};
    static const struct slice both[] = {{"active", 6}, {"checkin", 7}};
    struct event event = {.user = SLICE("ann")};
    cr_expect_not(first_event_asks(&event), "no actions");
    event.actions = active;
    event.n_actions = 2;
    cr_expect_not(first_event_asks(&event), "each event is active");
    event.actions = both;
    cr_expect(first_event_asks(&event));
    event.user = SLICE("");
    cr_expect_not(first_event_asks(&event), "nobody's");
}
