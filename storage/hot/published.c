#include "storage/hot/published.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/job/event.h"

#define A_SECOND  1e6 /* in the unit of the bytes */
#define RATE_MAX  1e12
#define HEAD_SIZE 2

static const char head[HEAD_SIZE] = {'h', '1'};

/* ---- writing ---- */

static void put_rate(struct buffer *out, double per_s)
{
    uint64_t number = htole64((uint64_t)(per_s * A_SECOND + 0.5));
    buffer_append(out, &number, sizeof(number));
}

static size_t size_of(const struct hot_page *page)
{
    return 3 * sizeof(uint64_t) + 3 + page->site.n + page->page.n;
}

/* How many of the pages are written.  *absent grows to the highest rate that a page that is not
 * written can have. */
static size_t count_fitting(const struct hot_page *pages, size_t n, double *absent)
{
    size_t bytes = 0;
    size_t fitting = 0;
    while (fitting < n && fitting < PUBLISHED_PAGES &&
           bytes + size_of(&pages[fitting]) <= PUBLISHED_BYTES) {
        bytes += size_of(&pages[fitting++]);
    }
    for (size_t i = fitting; i < n; i++) {
        double most = hot_page_most(&pages[i]);
        *absent = most > *absent ? most : *absent;
    }
    return fitting;
}

void published_write(struct buffer *out, const struct hot_page *pages, size_t n, double absent)
{
    size_t fitting = count_fitting(pages, n, &absent);
    buffer_append(out, head, sizeof(head));
    put_rate(out, absent);
    for (size_t i = 0; i < fitting; i++) {
        const struct hot_page *page = &pages[i];
        const unsigned char lengths[3] = {(unsigned char)page->site.n,
            (unsigned char)(page->page.n & 255), (unsigned char)(page->page.n >> 8)};
        put_rate(out, page->reads_per_s);
        put_rate(out, page->writes_per_s);
        put_rate(out, page->error);
        buffer_append(out, lengths, sizeof(lengths));
        buffer_append(out, page->site.p, page->site.n);
        buffer_append(out, page->page.p, page->page.n);
    }
}

/* ---- reading ---- */

/* A page as one list has it.  The list owns the names. */
struct published_part {
    struct slice site, page;
    double reads, writes, error;
    double absent; /* of its list */
};

static bool published_take(struct slice *left, void *into, size_t n)
{
    if (left->n < n) {
        return false;
    }
    memcpy(into, left->p, n);
    *left = (struct slice){left->p + n, left->n - n};
    return true;
}

static bool take_rate(struct slice *left, double *ret)
{
    uint64_t number = 0;
    if (!published_take(left, &number, sizeof(number))) {
        return false;
    }
    *ret = (double)le64toh(number) / A_SECOND;
    return *ret <= RATE_MAX;
}

static bool take_name(struct slice *left, size_t n, struct slice *ret)
{
    *ret = (struct slice){left->p, n};
    if (n == 0 || left->n < n) {
        return false;
    }
    *left = (struct slice){left->p + n, left->n - n};
    return true;
}

static bool take_part(struct slice *left, struct published_part *ret)
{
    unsigned char lengths[3];
    return take_rate(left, &ret->reads) && take_rate(left, &ret->writes) &&
           take_rate(left, &ret->error) && published_take(left, lengths, sizeof(lengths)) &&
           lengths[0] <= EVENT_SITE_MAX && take_name(left, lengths[0], &ret->site) &&
           take_name(left, (size_t)lengths[1] + 256 * (size_t)lengths[2], &ret->page) &&
           ret->page.n <= EVENT_PAGE_MAX;
}

static bool published_append(struct published_lists *lists, const struct published_part *part)
{
    if (!array_reserve(&lists->parts, &lists->capacity, lists->n, sizeof(*lists->parts))) {
        return false;
    }
    lists->parts[lists->n++] = *part;
    return true;
}

bool published_add(
    struct published_lists *lists, const struct hot_page *pages, size_t n, double absent)
{
    bool ok = true;
    lists->absent += absent;
    for (size_t i = 0; ok && i < n; i++) {
        const struct published_part part = {pages[i].site, pages[i].page, pages[i].reads_per_s,
            pages[i].writes_per_s, pages[i].error, absent};
        ok = published_append(lists, &part);
    }
    return ok;
}

bool published_add_bytes(struct published_lists *lists, struct slice bytes)
{
    char is[HEAD_SIZE];
    struct published_part part;
    size_t n = 0;
    if (!published_take(&bytes, is, sizeof(is)) || memcmp(is, head, sizeof(head)) != 0 ||
        !take_rate(&bytes, &part.absent)) {
        return true;
    }
    lists->absent += part.absent;
    while (n++ < PUBLISHED_PAGES && take_part(&bytes, &part)) {
        if (!published_append(lists, &part)) {
            return false;
        }
    }
    return true;
}

/* ---- merging ---- */

static int by_name(const void *a, const void *b)
{
    const struct published_part *x = a;
    const struct published_part *y = b;
    int order = slice_compare(x->site, y->site);
    return order != 0 ? order : slice_compare(x->page, y->page);
}

/* Merge the @n parts of one page.  False: out of memory. */
static bool merge_page(const struct published_lists *lists, const struct published_part *parts,
    size_t n, struct hot_page *ret)
{
    struct slice site = parts->site;
    struct slice page = parts->page;
    double absent = lists->absent;
    char *text = malloc(site.n + page.n + 1);
    if (text == NULL) {
        return false;
    }
    memcpy(text, site.p, site.n);
    memcpy(text + site.n, page.p, page.n);
    *ret = (struct hot_page){.site = {text, site.n}, .page = {text + site.n, page.n}, .text = text};
    for (size_t i = 0; i < n; i++) {
        ret->reads_per_s += parts[i].reads;
        ret->writes_per_s += parts[i].writes;
        ret->error += parts[i].error;
        absent -= parts[i].absent;
    }
    ret->error += absent > 0 ? absent : 0;
    return true;
}

bool published_merge(struct published_lists *lists, struct hot_page **ret, size_t *ret_n)
{
    struct hot_page *pages = malloc((lists->n + 1) * sizeof(*pages));
    bool ok = pages != NULL;
    size_t n = 0;
    if (ok && lists->n > 1) {
        qsort(lists->parts, lists->n, sizeof(*lists->parts), by_name);
    }
    for (size_t i = 0, end = 0; ok && i < lists->n; i = end) {
        for (end = i + 1; end < lists->n && by_name(&lists->parts[end], &lists->parts[i]) == 0;
             end++) {
        }
        ok = merge_page(lists, &lists->parts[i], end - i, &pages[n]);
        n += ok;
    }
    published_release(lists);
    if (!ok) {
        hot_pages_release(pages, n);
        return false;
    }
    hot_pages_sort(pages, n);
    *ret = pages;
    *ret_n = n;
    return true;
}

void published_release(struct published_lists *lists)
{
    free(lists->parts);
    *lists = (struct published_lists){.parts = NULL};
}
