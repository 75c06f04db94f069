/* hot_pages.c - what it costs an event that its page is counted for /hotkeys.
 *
 *	hot_pages [events] [pages]
 *
 * Requests of one event and of 1,000, pages drawn log-uniformly and uniformly; ns an event, with
 * the time of drawing taken off.  Beside it what the same thread spends on drawing an event and
 * hashing its user, which is only a part of what ingestion costs.
 */
#include "storage/hot/hot_pages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "storage/schema/identity.h"

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    long events = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    long pages = argc > 2 ? strtol(argv[2], NULL, 10) : 10000;
    if (events < 10000 || events > 100000000 || pages < 1 || pages > 10000000) {
        (void)fprintf(stderr, "usage: hot_pages [events, from 10000] [pages]\n");
        return 2;
    }
    size_t n = 10000; /* events, used again and again: 1 MB, as of the requests under way */
    struct event *made_of = calloc(n, sizeof(*made_of));
    char(*names)[32] = calloc((size_t)pages, sizeof(*names));
    struct hot_pages *hot = hot_pages_new(2, 0);
    struct secret secret = {{1}};
    struct visitor_id id;
    if (made_of == NULL || names == NULL || hot == NULL) {
        return 1;
    }
    for (long p = 0; p < pages; p++) {
        (void)snprintf(names[p], sizeof(names[p]), "/page/number/%ld", p);
    }
    for (int skewed = 1; skewed >= 0; skewed--) {
        unsigned seed = 1;
        double start = now_ns();
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            double u = (double)(seed >> 8) / (1 << 24);
            size_t p = (size_t)(skewed ? pow((double)pages, u) - 1 : u * (double)pages);
            struct event event = {.at_s = 1800000000,
                .site = {"default", 7},
                .page = {names[p], strlen(names[p])},
                .user = {names[p], strlen(names[p])}};
            identity_user(&secret, event.site, event.user, &id);
            made_of[i] = event;
        }
        double made = (now_ns() - start) / (double)n;
        for (size_t batch = 1; batch <= 1000; batch *= 1000) {
            start = now_ns();
            for (size_t i = 0; i < (size_t)events / n * n; i += batch) {
                hot_pages_writes(hot, 0, (int64_t)(i / 100), made_of + i % n, batch);
            }
            printf("%-11s pages, %4zu events a request: %.1f ns an event (drawing and hashing "
                   "%.1f)\n",
                skewed ? "log-uniform" : "uniform", batch,
                (now_ns() - start) / (double)((size_t)events / n * n), made);
        }
    }
    hot_pages_free(hot);
    free(names);
    free(made_of);
    return 0;
}
