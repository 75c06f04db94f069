/* Which questions for pages are the same, so that they get one answer. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/read/operation.h"

TestSuite(pages, .timeout = 60);

static struct storage_job *question(void)
{
    static const struct slice pages[] = {SLICE("/a"), SLICE("/b")};
    struct storage_job *job = calloc(1, sizeof(*job));
    cr_assert_not_null(job);
    job->op = STORAGE_PAGES;
    job->u.pages = (struct pages_job){.asked = {.site = SLICE("s"), .window = {0, 3600}},
        .pages = pages,
        .n_pages = 2,
        .limit = 10};
    return job;
}

/* Is the question the same after @member got another value? */
#define DIFFERS(member, value)                                                                     \
    do {                                                                                           \
        struct storage_job *one = question();                                                      \
        struct storage_job *other = question();                                                    \
        cr_assert(pages_same(one, other) && pages_hash(one) == pages_hash(other));                 \
        other->u.pages.member = (value);                                                           \
        cr_expect_not(pages_same(one, other), #member);                                            \
        free(one);                                                                                 \
        free(other);                                                                               \
    } while (0)

Test(pages, another_question_gets_another_answer)
{
    DIFFERS(asked.site, SLICE("t"));
    DIFFERS(asked.window.to_s, 7200);
    DIFFERS(n_pages, 1);
    DIFFERS(class, SLICE("\x01"));
    DIFFERS(prefix, SLICE("/a"));
    DIFFERS(without_uv, true);
    DIFFERS(limit, 11);
    DIFFERS(by_uv, true);
    DIFFERS(entries, true);
    DIFFERS(set.name, SLICE("set"));
}
