/* fuzz_published.c - libFuzzer target: the hot pages that another process has published.
 *
 *     make build/fuzz/published
 *     build/fuzz/published tests/fuzz/corpus/published
 */
#include "storage/hot/published.h"

#include <stdlib.h>

#include "storage/job/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* What was read is written and read again: the same pages. */
static void check_again(const struct hot_page *pages, size_t n)
{
    struct published_lists lists = {0};
    struct hot_page *again = NULL;
    struct buffer bytes;
    size_t n_again = 0;
    buffer_init(&bytes);
    published_write(&bytes, pages, n, 0);
    require(!bytes.failed);
    require(published_add_bytes(&lists, (struct slice){bytes.p, bytes.n}));
    require(lists.n <= n && lists.n <= PUBLISHED_PAGES);
    require(published_merge(&lists, &again, &n_again));
    hot_pages_release(again, n_again);
    buffer_release(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct published_lists lists = {0};
    struct hot_page *pages = NULL;
    size_t n = 0;
    require(published_add_bytes(&lists, (struct slice){(const char *)data, size}));
    require(lists.n <= PUBLISHED_PAGES && lists.absent >= 0);
    require(published_merge(&lists, &pages, &n));
    for (size_t i = 0; i < n; i++) {
        require(pages[i].site.n > 0 && pages[i].site.n <= EVENT_SITE_MAX);
        require(pages[i].page.n > 0 && pages[i].page.n <= EVENT_PAGE_MAX);
        require(pages[i].reads_per_s >= 0 && pages[i].writes_per_s >= 0 && pages[i].error >= 0);
    }
    check_again(pages, n);
    hot_pages_release(pages, n);
    return 0;
}
