/* bench_robots.c - what it costs an event that its user agent is looked at for known robots.
 *
 *	bench_robots [SECONDS] [AGENTS_FILE]
 *
 * Each line of the result is a kind of agents, and ns an agent, the best of ten tenths:
 *
 *     seen         agents of browsers, phones and robots, again and again, through the cache
 *     seen, long   the longest agent that is looked at whole, again and again
 *     new          no agent twice: each is looked through, and takes another's place in the cache
 *     worst        the text that costs the search most, longer than what is looked at: at each byte
 *                  some name's last three bytes might end; no two are alike
 *     file         each line of AGENTS_FILE in turn, as of a real log
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handlers/text/robots_cache.h"

#define TENTHS     10
#define LONG_BYTES ROBOTS_LOOKED_AT
#define MADE       20000 /* agents that are new; more than the cache has places */
#define WORSTS     5000  /* the worst agents; they, too */
#define WORST      1024  /* bytes */
#define LINES_MAX  10000

static struct robots_cache cache;

static double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Look at @agents in turn for @seconds, and say what one takes. */
static void measure(const char *name, const struct slice *agents, size_t n, double seconds)
{
    double best = 1e18;
    size_t robots = 0, done = 0, next = 0;
    for (size_t i = 0; i < n; i++) {
        robots += robots_cache_known(&cache, agents[i]);
    }
    for (int tenth = 0; tenth < TENTHS; tenth++) {
        double begin = now_ns(), took = 0;
        done = 0;
        do {
            for (int i = 0; i < 1000; i++) {
                robots += robots_cache_known(&cache, agents[next]);
                next = next + 1 < n ? next + 1 : 0;
            }
            done += 1000;
            took = now_ns() - begin;
        } while (took < seconds * 1e9 / TENTHS);
        best = took / (double)done < best ? took / (double)done : best;
    }
    printf("%-12s %8.1f   (%zu agents, %zu found)\n", name, best, n, robots);
}

static unsigned draw(unsigned *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 16;
}

/* A byte after which a name may end, by its hash; with @ahead one after which such a byte may come.
 * 0: there is none.  Which one it is, @seed says. */
static char next_worst(uint32_t three, bool ahead, unsigned *seed)
{
    unsigned from = draw(seed);
    for (unsigned k = 0; k < 95; k++) {
        char c = (char)(' ' + (from + k) % 95);
        uint32_t then = robots_shifted(three, c);
        if (ahead ? next_worst(then, false, seed) != 0 : robots_may_end(&cache.robots, then)) {
            return c;
        }
    }
    return 0;
}

/* Write @n bytes of which as many as can be are such that a name may end behind them. */
static void write_worst(char *ret, size_t n, unsigned *seed)
{
    uint32_t three = 0;
    for (size_t i = 0; i < n; i++) {
        char c = next_worst(three, false, seed);
        c = c != 0 ? c : next_worst(three, true, seed);
        ret[i] = c;
        if (c == 0 || robots_known(&cache.robots, (struct slice){ret, i + 1})) {
            ret[i] = 'x'; /* a name would end the search */
        }
        three = robots_shifted(three, ret[i]);
    }
}

static size_t read_lines(const char *path, struct slice *ret)
{
    static char line[65536];
    size_t n = 0;
    FILE *file = fopen(path, "r");
    while (file != NULL && n < LINES_MAX && fgets(line, sizeof(line), file) != NULL) {
        char *text = strndup(line, strcspn(line, "\n"));
        ret[n++] = slice_of(text);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return n;
}

int main(int argc, char **argv)
{
    static struct slice agents[MADE], lines[LINES_MAX];
    static const char *const usual[] = {
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/140.0.0.0 Safari/537.36",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
        "Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
        "Mozilla/5.0 (Linux; Android 14; SM-S918B) AppleWebKit/537.36 (KHTML, like Gecko) "
        "SamsungBrowser/25.0 Chrome/121.0.0.0 Mobile Safari/537.36",
        "Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007; wv) AppleWebKit/537.36 "
        "(KHTML, like Gecko) Version/4.0 Chrome/140.0.7339.80 Mobile Safari/537.36 "
        "[FB_IAB/FB4A;FBAV/528.0.0.61.90;IABMV/1;FBPN/com.facebook.katana;FBLC/de_DE;FBDV/SM-S918B;"
        "FBSV/14;FBOP/5;FBCA/arm64-v8a;]",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "curl/7.88.1",
    };
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;
    char *made = malloc((size_t)MADE * WORST);
    if (made == NULL || seconds <= 0) {
        (void)fprintf(stderr, "usage: bench_robots [SECONDS] [AGENTS_FILE]\n");
        return 2;
    }
    robots_cache_init(&cache, (const unsigned char[ROBOTS_CACHE_KEY_BYTES]){1});

    size_t n = sizeof(usual) / sizeof(usual[0]);
    for (size_t i = 0; i < n; i++) {
        agents[i] = slice_of(usual[i]);
    }
    measure("seen", agents, n, seconds);

    memset(made, 'x', LONG_BYTES);
    agents[0] = (struct slice){made, LONG_BYTES};
    measure("seen, long", agents, 1, seconds);

    for (size_t i = 0; i < MADE; i++) {
        char *text = made + i * WORST;
        (void)snprintf(text, WORST, "%.*s Custom/%zu", (int)strlen(usual[0]), usual[0], i);
        agents[i] = slice_of(text);
    }
    measure("new", agents, MADE, seconds);

    unsigned seed = 1;
    for (size_t i = 0; i < WORSTS; i++) {
        write_worst(made + i * WORST, WORST, &seed);
        agents[i] = (struct slice){made + i * WORST, WORST};
    }
    measure("worst", agents, WORSTS, seconds);

    if (argc > 2 && (n = read_lines(argv[2], lines)) > 0) {
        measure("file", lines, n, seconds);
    }
    free(made);
    return 0;
}
