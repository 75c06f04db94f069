#include "storage/job/hot_page.h"

#include <stdlib.h>

static int by_rate(const void *a, const void *b)
{
    const struct hot_page *x = a;
    const struct hot_page *y = b;
    double of_x = x->reads_per_s + x->writes_per_s;
    double of_y = y->reads_per_s + y->writes_per_s;
    if (of_x != of_y) {
        return of_x < of_y ? 1 : -1;
    }
    return slice_compare((struct slice){x->text, x->site.n + x->page.n},
        (struct slice){y->text, y->site.n + y->page.n});
}

void hot_pages_sort(struct hot_page *pages, size_t n)
{
    if (n > 1) {
        qsort(pages, n, sizeof(*pages), by_rate);
    }
}

void hot_pages_release(struct hot_page *pages, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(pages[i].text);
    }
    free(pages);
}
