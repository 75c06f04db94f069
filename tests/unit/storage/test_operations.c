/* Questions that are the same: each member tells them apart, and the answer is copied whole.  The
 * members are found by their bytes, so a member that is new, and forgotten here, fails a test. */
#include "storage/operations.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

TestSuite(operations, .timeout = 60);

static const struct operation *operation_of(const struct storage_job *job)
{
    return &storage_operations[job->op];
}

static bool question_same(const struct storage_job *a, const struct storage_job *b)
{
    return operation_of(a)->same(a, b);
}

static uint64_t question_hash(const struct storage_job *job)
{
    return operation_of(job)->hash(job);
}

static bool question_share(const struct storage_job *from, struct storage_job *to)
{
    return operation_of(from)->share(from, to);
}

static const struct slice pages_ab[] = {{"/a", 2}, {"/b", 2}};
static const struct slice pages_ac[] = {{"/a", 2}, {"/c", 2}};

static struct storage_job count_of(void)
{
    struct storage_job job = {.op = STORAGE_COUNT};
    job.u.count = (struct count_job){.asked = {.site = SLICE("site"), .window = {60, 120}},
        .metric = METRIC_UV,
        .pages = pages_ab,
        .n_pages = 2};
    return job;
}

static struct storage_job pages_of(void)
{
    struct storage_job job = {.op = STORAGE_PAGES};
    job.u.pages = (struct pages_job){.asked = {.site = SLICE("site"), .window = {60, 120}},
        .pages = pages_ab,
        .n_pages = 2,
        .prefix = SLICE("/"),
        .limit = 10};
    return job;
}

/* Whichever of the two was first. */
static void expect_differ(
    const struct storage_job *a, const struct storage_job *b, unsigned row, const char *kind)
{
    cr_expect_not(question_same(a, b), "%s, change %u", kind, row);
    cr_expect_not(question_same(b, a), "%s, change %u, the other way round", kind, row);
}

static void change_count(struct count_job *count, unsigned n, const struct zone *zone)
{
    switch (n) {
    case 0:
        count->metric = METRIC_PV;
        break;
    case 1:
        count->all_metrics = true;
        break;
    case 2:
        count->step = STEP_HOUR;
        break;
    case 3:
        count->asked.window.from_s = 0;
        break;
    case 4:
        count->asked.window.to_s = 180;
        break;
    case 5:
        count->asked.to_is_now = true;
        break;
    case 6:
        count->asked.round_outer = true;
        break;
    case 7:
        count->asked.explain = true;
        break;
    case 8:
        count->set.name = SLICE("set");
        break;
    case 9:
        count->n_pages = 1;
        break;
    case 10:
        count->asked.site = SLICE("sitf");
        break;
    case 11:
        count->pages = pages_ac;
        break;
    case 12:
        count->visit_sums = true;
        break;
    case 13:
        count->bounded = true;
        break;
    default:
        count->step = STEP_HOUR;
        count->zone = zone;
        break;
    }
}

Test(operations, each_member_of_a_count_tells_it_apart)
{
    static char place; /* zones are the same where they are one object */
    const struct zone *zone = (const struct zone *)(const void *)&place;
    struct storage_job a = count_of();
    struct storage_job b = count_of();
    cr_expect(question_same(&a, &b) && question_hash(&a) == question_hash(&b));
    for (unsigned n = 0; n < 14; n++) {
        b = count_of();
        change_count(&b.u.count, n, NULL);
        expect_differ(&a, &b, n, "a count");
    }
    b = count_of();
    b.u.count.zone = zone;
    cr_expect(question_same(&a, &b), "without a step the zone says nothing");
    change_count(&a.u.count, 2, NULL);
    change_count(&b.u.count, 14, zone);
    expect_differ(&a, &b, 13, "a series");
}

static void change_pages(struct pages_job *pages, unsigned n)
{
    switch (n) {
    case 0:
        pages->by_uv = true;
        break;
    case 1:
        pages->limit = 11;
        break;
    case 2:
        pages->prefix = SLICE("/a");
        break;
    case 3:
        pages->set.name = SLICE("set");
        break;
    case 4:
        pages->n_pages = 1;
        break;
    case 5:
        pages->pages = pages_ac;
        break;
    case 6:
        pages->asked.site = SLICE("sitf");
        break;
    case 7:
        pages->asked.window.from_s = 0;
        break;
    case 8:
        pages->asked.window.to_s = 180;
        break;
    case 9:
        pages->asked.to_is_now = true;
        break;
    case 10:
        pages->asked.round_outer = true;
        break;
    case 11:
        pages->class = SLICE("\x01");
        break;
    case 12:
        pages->without_uv = true;
        break;
    case 13:
        pages->entries = true;
        break;
    default:
        pages->asked.explain = true;
        break;
    }
}

Test(operations, each_member_of_a_list_of_pages_tells_it_apart)
{
    struct storage_job a = pages_of();
    struct storage_job b = pages_of();
    cr_expect(question_same(&a, &b) && question_hash(&a) == question_hash(&b));
    for (unsigned n = 0; n < 15; n++) {
        b = pages_of();
        change_pages(&b.u.pages, n);
        expect_differ(&a, &b, n, "pages");
    }
}

/* Bytes [at, at + n) of a job: a member, or neighbours. */
struct bytes {
    size_t at, n;
};
#define MEMBER(job, member)                                                                        \
    {                                                                                              \
        offsetof(struct job, member), sizeof(((struct job *)NULL)->member)                         \
    }

static bool is_in(const struct bytes *list, size_t n, size_t at)
{
    for (size_t i = 0; i < n; i++) {
        if (at >= list[i].at && at - list[i].at < list[i].n) {
            return true;
        }
    }
    return false;
}

/* What tells no two questions apart: their answers, and pointers, whose targets do (see above). */
static const struct bytes no_question_of_count[] = {MEMBER(count_job, asked.answered),
    MEMBER(count_job, asked.per_level), MEMBER(count_job, asked.keys),
    MEMBER(count_job, asked.n_keys), MEMBER(count_job, asked.site.p), MEMBER(count_job, pages),
    MEMBER(count_job, set.name.p), MEMBER(count_job, set.resolved), MEMBER(count_job, zone),
    MEMBER(count_job, values), MEMBER(count_job, at_most), MEMBER(count_job, points),
    MEMBER(count_job, n_points), MEMBER(count_job, used), MEMBER(count_job, outer_works),
    MEMBER(count_job, whole_works)};
static const struct bytes no_question_of_pages[] = {MEMBER(pages_job, asked.answered),
    MEMBER(pages_job, asked.per_level), MEMBER(pages_job, asked.keys),
    MEMBER(pages_job, asked.n_keys), MEMBER(pages_job, asked.site.p), MEMBER(pages_job, pages),
    MEMBER(pages_job, set.name.p), MEMBER(pages_job, set.resolved), MEMBER(pages_job, class.p),
    MEMBER(pages_job, prefix.p), MEMBER(pages_job, other_pv), MEMBER(pages_job, rows),
    MEMBER(pages_job, n_rows), MEMBER(pages_job, total), MEMBER(pages_job, total_pv),
    MEMBER(pages_job, clamped), MEMBER(pages_job, arena)};

/* The lowest bit of each byte of @job's members changed, one at a time: another question.
 * @members: 0 where a byte is padding. */
static void expect_bytes_tell(const struct storage_job *job, const unsigned char *members, size_t n,
    const struct bytes *except, size_t n_except)
{
    for (size_t i = 0; i < n; i++) {
        struct storage_job other = *job;
        if (members[i] == 0 || is_in(except, n_except, i)) {
            continue;
        }
        ((unsigned char *)&other.u)[i] ^= 1;
        cr_expect_not(question_same(job, &other), "byte %zu of the job is not compared", i);
    }
}

Test(operations, no_member_of_a_question_is_forgotten)
{
    struct storage_job job = count_of();
    struct count_job count;
    memset(&count, 0xff, sizeof(count));
    __builtin_clear_padding(&count);
    expect_bytes_tell(&job, (const unsigned char *)&count, sizeof(count), no_question_of_count,
        ROWS(no_question_of_count));
    job = pages_of();
    struct pages_job pages;
    memset(&pages, 0xff, sizeof(pages));
    __builtin_clear_padding(&pages);
    expect_bytes_tell(&job, (const unsigned char *)&pages, sizeof(pages), no_question_of_pages,
        ROWS(no_question_of_pages));
}

Test(operations, other_kinds_are_never_the_same)
{
    struct storage_job count = count_of();
    struct storage_job pages = pages_of();
    cr_expect(question_hash(&count) != 0 && question_hash(&pages) != 0);
    cr_expect_neq(question_hash(&count), question_hash(&pages));
    cr_expect_null(storage_operations[STORAGE_OVERLAP].same);
    cr_expect_null(storage_operations[STORAGE_WRITE].run, "none of the readers'");
    for (size_t op = 0; op < STORAGE_OPS; op++) {
        const struct operation *operation = &storage_operations[op];
        cr_expect_eq(operation->same == NULL, operation->hash == NULL);
        cr_expect_eq(operation->same == NULL, operation->share == NULL);
        cr_expect_eq(operation->same == NULL, operation->own == NULL);
    }
}

Test(operations, a_count_s_answer_is_copied)
{
    struct storage_job from = count_of();
    struct storage_job to = count_of();
    struct count_job *x = &from.u.count;
    const struct count_job *y = &to.u.count;
    x->values[METRIC_PV] = 8;
    x->used = STEP_HOUR;
    x->asked.answered = (struct window){1, 2};
    x->outer_works = true;
    x->asked.per_level[LEVEL_HOUR] = 9;
    cr_assert(question_share(&from, &to));
    cr_expect(y->values[METRIC_PV] == 8 && y->used == STEP_HOUR);
    cr_expect(y->asked.answered.from_s == 1 && y->asked.answered.to_s == 2 && y->outer_works);
    cr_expect(y->asked.per_level[LEVEL_HOUR] == 9 && y->points == NULL);

    x->n_points = 2;
    x->points = calloc(2, sizeof(*x->points));
    cr_assert_not_null(x->points);
    memset(x->points, 0x5a, 2 * sizeof(*x->points));
    cr_assert(question_share(&from, &to));
    cr_expect(y->n_points == 2 && y->points != x->points, "its own");
    cr_expect_eq(memcmp(y->points, x->points, 2 * sizeof(*x->points)), 0);
    storage_job_release(&from);
    storage_job_release(&to);
}

Test(operations, a_list_of_pages_is_copied)
{
    static char name[] = "/page";
    struct page_row rows[] = {{.page = {name, 5}, .pv = 3, .uv = 2}, {.page = {"", 0}, .pv = 1}};
    struct storage_job from = pages_of();
    struct storage_job to = pages_of();
    const struct pages_job *y = &to.u.pages;
    from.u.pages.rows = rows;
    from.u.pages.n_rows = ROWS(rows);
    from.u.pages.total = 5;
    from.u.pages.clamped = true;
    from.u.pages.asked.answered = (struct window){1, 2};
    from.u.pages.asked.per_level[LEVEL_DAY] = 4;
    cr_assert(question_share(&from, &to));
    from.u.pages.rows = NULL;
    memset(name, 'x', 5); /* the first one's memory goes with its job */
    cr_assert_eq(y->n_rows, 2);
    cr_expect(slice_equal(y->rows[0].page, SLICE("/page")) && y->rows[1].page.n == 0);
    cr_expect(y->rows[0].pv == 3 && y->rows[0].uv == 2 && y->rows[1].pv == 1);
    cr_expect(y->total == 5 && y->clamped && y->asked.per_level[LEVEL_DAY] == 4);
    cr_expect(y->asked.answered.from_s == 1 && y->asked.answered.to_s == 2);
    storage_job_release(&to);
}
