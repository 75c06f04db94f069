/* rate.c - HTTP load at a fixed rate (open loop) or as fast as answers come (closed loop).
 *
 *	rate [-c CONNECTIONS] [-r REQUESTS_A_SECOND] [-d SECONDS] [-e EVENTS] [-b BATCH] [-P PAGES]
 *	     [-U USERS] [-S SEED] [-a AGE] [-k] PORT TARGET [EVENT]
 *
 * Without EVENT it GETs TARGET, else it POSTs EVENT, or arrays of BATCH of them.  Each {page} (7
 * digits, few of the PAGES often: log-uniform, which is near Zipf's law), {user} (8 digits,
 * uniform), {ip} (one of a million) and {ts} (seconds since 1970) in EVENT is written anew for
 * every event, in place: a few ns each, so that the server is the limit.
 *
 * Without EVENT, TARGET may be several, a line each: a dashboard.  They are asked in turn, and
 * those of one round are all due at once; the result has the latencies of each, too.  A {page} in a
 * line is one of the PAGES, uniform: no two questions in a row are the same.
 *
 * -a: {ts} is AGE to twice AGE seconds ago, uniform; without -a it is now.
 *
 * -k: each request has an Idempotency-Key of its own.
 *
 * -r: request i is due at start + i / rate, whatever became of the earlier ones.  It goes out on
 * any connection that is free and waits for one otherwise; its latency counts from when it was due,
 * so a server that stalls is charged for all it kept waiting.  -d and -e end the run, whichever
 * comes first.  127.0.0.1 only.  The result is one line of JSON; 1 if nothing could be measured.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <math.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS            1000000000
#define GRACE_NS      ((int64_t)5 * NS) /* for what is still due or under way at the end */
#define ERRORS_MAX    1000
#define FINE_BITS     6 /* latencies are kept to 1 in 64 */
#define ANSWER_HEAD   8192
#define FIELDS_MAX    1024 /* a batch of items has one an item */
#define REQUEST_LIMIT (64u << 20)
#define KEY_DIGITS    16
#define TARGETS_MAX   100
#define KEY_FIELD     "Idempotency-Key: 0000000000000000\r\n"

enum field { FIELD_PAGE, FIELD_USER, FIELD_IP, FIELD_TS, FIELDS };

static const struct {
    const char *token, *blank;
} fields[FIELDS] = {
    [FIELD_PAGE] = {"{page}", "0000000"},
    [FIELD_USER] = {"{user}", "00000000"},
    [FIELD_IP] = {"{ip}", "10.100.100.100"},
    [FIELD_TS] = {"{ts}", "1700000000"},
};

struct place {
    size_t at;
    enum field field;
};

struct histogram {
    uint64_t steps[48 << FINE_BITS], n;
    int64_t max_us;
};

struct connection {
    int fd;
    bool busy;
    unsigned target;
    int64_t due_ns;
    char *request; /* owned; without an event it is load's */
    size_t sent, request_n;
    char head[ANSWER_HEAD];
    size_t head_n;
    bool in_body;
    size_t body_left;
    bool refused;
};

struct load {
    unsigned port, connections, batch;
    double rate, seconds;
    uint64_t events_max, pages, users, random, age_s;
    double log_pages;
    char *targets[TARGETS_MAX];     /* requests without an event */
    char *target_page[TARGETS_MAX]; /* their page's digits; NULL: none */
    struct histogram *of_target;    /* one each */
    unsigned n_targets;
    char *request; /* what all connections begin with */
    size_t request_n, events_at, event_step;
    bool keyed;
    size_t key_at;
    struct place places[FIELDS_MAX];
    size_t n_places;
    struct connection *all;
    unsigned *free_list; /* a ring: the longest free first */
    unsigned free_at, n_free;
    int epoll;
    uint64_t issued, answered, refused, errors;
    int64_t freed_ns;              /* when the first connection became free again */
    struct histogram latency, lag; /* lag: how late we sent what nothing kept waiting but us */
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS + now.tv_nsec;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void note(struct histogram *h, int64_t ns)
{
    uint64_t us = ns > 0 ? (uint64_t)ns / 1000 : 0;
    unsigned shift = us >> FINE_BITS == 0 ? 0 : 63u - FINE_BITS - (unsigned)__builtin_clzll(us);

    h->steps[(shift << FINE_BITS) + (us >> shift)]++;
    h->max_us = (int64_t)us > h->max_us ? (int64_t)us : h->max_us;
    h->n++;
}

/* In µs: the middle of the step that the quantile falls into. */
static int64_t quantile(const struct histogram *h, double q)
{
    uint64_t rank = (uint64_t)(q * (double)h->n), seen = 0;

    for (size_t i = 0; i < sizeof(h->steps) / sizeof(*h->steps); i++) {
        seen += h->steps[i];
        if (seen > rank) {
            size_t shift = i >> FINE_BITS == 0 ? 0 : (i >> FINE_BITS) - 1;
            int64_t us = (int64_t)((i - (shift << FINE_BITS)) << shift) + (1 << shift) / 2;
            return us < h->max_us ? us : h->max_us;
        }
    }
    return h->max_us;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

/* EVENT with its tokens blanked, at @to; where they are, if @load is given. */
static size_t put_event(char *to, const char *event, struct load *load)
{
    size_t n = 0;

    while (*event != '\0') {
        size_t f = 0;

        while (f < FIELDS && strncmp(event, fields[f].token, strlen(fields[f].token)) != 0) {
            f++;
        }
        if (f == FIELDS) {
            to[n++] = *event++;
            continue;
        }
        if (load != NULL) {
            if (load->n_places == FIELDS_MAX) {
                (void)fprintf(stderr, "rate: more than %d tokens\n", FIELDS_MAX);
                exit(2);
            }
            load->places[load->n_places++] = (struct place){n, (enum field)f};
        }
        memcpy(to + n, fields[f].blank, strlen(fields[f].blank));
        n += strlen(fields[f].blank);
        event += strlen(fields[f].token);
    }
    return n;
}

/* One for each line of @target. */
static void make_targets(struct load *load, const char *target)
{
    const char *token = fields[FIELD_PAGE].token;

    while (*target != '\0' && load->n_targets < TARGETS_MAX) {
        size_t n = strcspn(target, "\n");
        const char *page = memmem(target, n, token, strlen(token));
        size_t before = page == NULL ? n : (size_t)(page - target);
        size_t behind = page == NULL ? n : before + strlen(token);
        char **made = &load->targets[load->n_targets];
        if (asprintf(made, "GET %.*s%s%.*s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", (int)before,
                target, page == NULL ? "" : fields[FIELD_PAGE].blank, (int)(n - behind),
                target + behind) < 0) {
            fail("rate");
        }
        load->target_page[load->n_targets++] =
            page == NULL ? NULL : *made + strlen("GET ") + before;
        target += n + (target[n] == '\n');
    }
    load->of_target = calloc(load->n_targets + 1, sizeof(*load->of_target));
    if (load->of_target == NULL) {
        fail("rate");
    }
}

static void make_request(struct load *load, const char *target, const char *event)
{
    /* a blank is less than 4 times its token */
    size_t room = 1024 + strlen(target) + load->batch * (4 * strlen(event) + 1);
    char *p = room < REQUEST_LIMIT ? malloc(room) : NULL;

    if (p == NULL) {
        (void)fprintf(stderr, "rate: the request would be too large\n");
        exit(2);
    }
    load->request = p;
    size_t step = put_event(p, event, load), brackets = load->batch > 1 ? 2 : 0;
    size_t body = load->batch * step + (load->batch - 1) + brackets;
    size_t n = (size_t)snprintf(p, room,
        "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n%s\r\n",
        target, body, load->keyed ? KEY_FIELD : "");

    load->key_at = n - 4 - KEY_DIGITS; /* with a key: in front of CR LF CR LF */
    if (brackets != 0) {
        p[n++] = '[';
    }
    load->events_at = n;
    load->event_step = step + 1;
    for (unsigned i = 0; i < load->batch; i++) {
        if (i > 0) {
            p[n++] = ',';
        }
        n += put_event(p + n, event, NULL);
    }
    if (brackets != 0) {
        p[n++] = ']';
    }
    load->request_n = n;
}

static void put_digits(char *to, size_t n, uint64_t value)
{
    while (n-- > 0) {
        to[n] = (char)('0' + value % 10);
        value /= 10;
    }
}

/* From 0 to @n - 1; 0 for none. */
static uint64_t draw_below(struct load *load, uint64_t n)
{
    return n == 0 ? 0 : next_random(&load->random) % n;
}

static void draw_events(struct load *load, char *request)
{
    uint64_t now_s = (uint64_t)time(NULL);

    for (unsigned i = 0; i < load->batch && load->n_places > 0; i++) {
        char *event = request + load->events_at + i * load->event_step;
        double u = (double)(next_random(&load->random) >> 11) * 0x1p-53;
        uint64_t page = (uint64_t)exp(u * load->log_pages);
        uint64_t user = next_random(&load->random) % load->users, ip = user * 7919 % 1000000;

        for (size_t k = 0; k < load->n_places; k++) {
            char *to = event + load->places[k].at;

            switch (load->places[k].field) {
            case FIELD_PAGE:
                put_digits(to, 7, page);
                break;
            case FIELD_USER:
                put_digits(to, 8, user);
                break;
            case FIELD_IP: /* 10.1dd.1dd.1dd: always three digits */
                put_digits(to + 4, 2, ip / 10000);
                put_digits(to + 8, 2, ip / 100);
                put_digits(to + 12, 2, ip);
                break;
            case FIELD_TS:
                put_digits(to, 10, now_s - load->age_s - draw_below(load, load->age_s));
                break;
            case FIELDS:
                break;
            }
        }
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

static void open_connection(struct load *load, unsigned i)
{
    struct connection *c = &load->all[i];
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)load->port),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u32 = i}};
    int on = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        fail("rate: connect");
    }
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (epoll_ctl(load->epoll, EPOLL_CTL_ADD, c->fd, &wanted) != 0) {
        fail("rate: epoll_ctl");
    }
    c->busy = c->in_body = false;
    c->head_n = 0;
    load->free_list[(load->free_at + load->n_free++) % load->connections] = i;
}

static void lost(struct load *load, unsigned i)
{
    if (++load->errors > ERRORS_MAX) {
        (void)fprintf(stderr, "rate: more than %d connections lost\n", ERRORS_MAX);
        exit(1);
    }
    (void)close(load->all[i].fd);
    open_connection(load, i);
}

static void push(struct load *load, unsigned i)
{
    struct connection *c = &load->all[i];

    while (c->busy && c->sent < c->request_n) {
        ssize_t n =
            send(c->fd, c->request + c->sent, c->request_n - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0) {
            if (errno != EAGAIN) {
                lost(load, i);
            }
            return;
        }
        c->sent += (size_t)n;
    }
}

static void begin(struct load *load, int64_t due_ns)
{
    unsigned i = load->free_list[load->free_at];
    struct connection *c = &load->all[i];

    load->free_at = (load->free_at + 1) % load->connections;
    load->n_free--;
    if (load->n_targets > 0) {
        c->target = (unsigned)(load->issued % load->n_targets);
        c->request = load->targets[c->target];
        c->request_n = strlen(c->request);
        if (load->target_page[c->target] != NULL) {
            put_digits(load->target_page[c->target], 7, draw_below(load, load->pages));
        }
    }
    draw_events(load, c->request);
    if (load->keyed) {
        put_digits(c->request + load->key_at, KEY_DIGITS, next_random(&load->random));
    }
    c->busy = true;
    c->sent = 0;
    c->due_ns = due_ns;
    load->issued++;
    push(load, i);
}

static void answered(struct load *load, unsigned i)
{
    struct connection *c = &load->all[i];

    int64_t now = now_ns();

    note(&load->latency, now - c->due_ns);
    if (load->n_targets > 0) {
        note(&load->of_target[c->target], now - c->due_ns);
    }
    load->freed_ns = load->n_free == 0 ? now : load->freed_ns;
    load->answered++;
    load->refused += c->refused;
    c->busy = c->in_body = false;
    c->head_n = 0;
    load->free_list[(load->free_at + load->n_free++) % load->connections] = i;
}

/* The answer's head is complete: status and length; false if it has none that we can read. */
static bool read_head(struct connection *c)
{
    const char *length = strcasestr(c->head, "\r\ncontent-length:");

    if (strncmp(c->head, "HTTP/1.", 7) != 0 || length == NULL) {
        return false;
    }
    c->refused = c->head[9] != '2';
    c->body_left = strtoull(length + sizeof("\r\ncontent-length:") - 1, NULL, 10);
    c->in_body = true;
    return true;
}

/* @n bytes have come; false: no HTTP that we know. */
static bool take(struct load *load, unsigned i, const char *bytes, size_t n)
{
    struct connection *c = &load->all[i];

    while (n > 0) {
        if (!c->busy) {
            return false;
        }
        if (!c->in_body) {
            size_t room = sizeof(c->head) - 1 - c->head_n, old = c->head_n;
            size_t m = n < room ? n : room;

            memcpy(c->head + old, bytes, m);
            c->head[c->head_n += m] = '\0';
            const char *end = strstr(c->head, "\r\n\r\n");
            if (end == NULL) {
                return m == n && c->head_n < sizeof(c->head) - 1;
            }
            size_t used = (size_t)(end + 4 - c->head) - old;
            bytes += used;
            n -= used;
            c->head[end + 4 - c->head] = '\0';
            if (!read_head(c)) {
                return false;
            }
        }
        size_t m = n < c->body_left ? n : c->body_left;
        bytes += m;
        n -= m;
        c->body_left -= m;
        if (c->body_left == 0) {
            answered(load, i);
        }
    }
    return true;
}

static void pull(struct load *load, unsigned i)
{
    char bytes[16384];
    ssize_t n;

    do {
        n = recv(load->all[i].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n <= 0 || !take(load, i, bytes, (size_t)n)) {
            if (load->all[i].busy) {
                lost(load, i);
            } else { /* it is in the free list already */
                (void)fprintf(stderr, "rate: a connection was closed, or answered, unasked\n");
                exit(1);
            }
            return;
        }
    } while ((size_t)n == sizeof(bytes));
}

/* ---- the run --------------------------------------------------------------------------------- */

/* Sends what is due; when the next one is, or INT64_MAX. */
static int64_t send_due(struct load *load, int64_t start, int64_t end, uint64_t requests_max)
{
    for (;;) {
        int64_t now = now_ns();
        uint64_t nth = load->issued - (load->n_targets > 0 ? load->issued % load->n_targets : 0);
        int64_t due = load->rate > 0 ? start + (int64_t)((double)nth * NS / load->rate) : now;

        if (due >= end || load->issued >= requests_max) {
            return INT64_MAX;
        }
        if (due > now || load->n_free == 0) {
            return due;
        }
        note(&load->lag, now - (due > load->freed_ns ? due : load->freed_ns));
        begin(load, due);
    }
}

static int64_t run(struct load *load)
{
    int64_t start = now_ns(), end = start + (int64_t)(load->seconds * NS);
    uint64_t requests_max = (load->events_max + load->batch - 1) / load->batch;
    struct epoll_event ready[256];
    int64_t next = 0;

    while (next != INT64_MAX || load->n_free < load->connections) {
        next = send_due(load, start, end, requests_max);
        int64_t now = now_ns(), wait = next < INT64_MAX && load->n_free > 0 ? next - now : NS / 10;

        if (now > end + GRACE_NS) {
            break;
        }
        wait = wait < 0 ? 0 : wait > NS / 10 ? NS / 10 : wait;
        if (next == INT64_MAX && load->n_free == load->connections) {
            break;
        }
        int n = epoll_pwait2(load->epoll, ready, 256, &(struct timespec){0, wait}, NULL);
        if (n < 0 && errno != EINTR) {
            fail("rate: epoll_pwait2");
        }
        for (int k = 0; k < n; k++) {
            unsigned i = ready[k].data.u32;

            if (ready[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                pull(load, i);
            }
            push(load, i);
        }
    }
    return now_ns() - start;
}

static double number(const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(value >= least && value <= most)) {
        (void)fprintf(stderr, "rate: %s is no number from %g to %g\n", text, least, most);
        exit(2);
    }
    return value;
}

static void print(const struct load *load, int64_t took_ns)
{
    const struct histogram *l = &load->latency;
    double seconds = (double)took_ns / NS;

    printf("{\"requests\": %" PRIu64 ", \"events\": %" PRIu64
           ", \"seconds\": %.6f, \"rate\": %.1f, "
           "\"refused\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"unanswered\": %" PRIu64
           ", \"p50_us\": %" PRId64 ", \"p90_us\": %" PRId64 ", \"p99_us\": %" PRId64
           ", \"p999_us\": %" PRId64 ", \"max_us\": %" PRId64 ", \"lag_p99_us\": %" PRId64,
        load->answered, load->answered * load->batch, seconds,
        (double)(load->answered * load->batch) / seconds, load->refused, load->errors,
        load->issued - load->answered - load->errors, quantile(l, 0.5), quantile(l, 0.9),
        quantile(l, 0.99), quantile(l, 0.999), l->max_us, quantile(&load->lag, 0.99));
    for (unsigned i = 0; i < load->n_targets; i++) {
        const struct histogram *t = &load->of_target[i];
        printf("%s{\"p50_us\": %" PRId64 ", \"p99_us\": %" PRId64 "}",
            i == 0 ? ", \"targets\": [" : ", ", quantile(t, 0.5), quantile(t, 0.99));
    }
    printf("%s}\n", load->n_targets > 0 ? "]" : "");
}

/* False: an option is wrong, which getopt() has said. */
static bool read_options(struct load *load, int argc, char **argv)
{
    for (int o; (o = getopt(argc, argv, "c:r:d:e:b:P:U:S:a:k")) != -1;) {
        switch (o) {
        case 'c':
            load->connections = (unsigned)number(optarg, 1, 1000);
            break;
        case 'r':
            load->rate = number(optarg, 1, 1e6);
            break;
        case 'd':
            load->seconds = number(optarg, 0.01, 600);
            break;
        case 'e':
            load->events_max = (uint64_t)number(optarg, 1, 1e9);
            break;
        case 'b':
            load->batch = (unsigned)number(optarg, 1, 10000);
            break;
        case 'P':
            load->pages = (uint64_t)number(optarg, 1, 1e7);
            break;
        case 'U':
            load->users = (uint64_t)number(optarg, 1, 1e8);
            break;
        case 'S':
            load->random = (uint64_t)number(optarg, 1, 1e9) * 0x9e3779b97f4a7c15u;
            break;
        case 'a':
            load->age_s = (uint64_t)number(optarg, 0, 1e9);
            break;
        case 'k':
            load->keyed = true;
            break;
        default:
            return false;
        }
    }
    return true;
}

static void open_connections(struct load *load)
{
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->all = calloc(load->connections, sizeof(*load->all));
    load->free_list = calloc(load->connections, sizeof(*load->free_list));
    if (load->epoll < 0 || load->all == NULL || load->free_list == NULL) {
        fail("rate");
    }
    for (unsigned i = 0; i < load->connections; i++) {
        if (load->n_targets == 0) {
            load->all[i].request = malloc(load->request_n);
            if (load->all[i].request == NULL) {
                fail("rate");
            }
            memcpy(load->all[i].request, load->request, load->request_n);
            load->all[i].request_n = load->request_n;
        }
        open_connection(load, i);
    }
}

int main(int argc, char **argv)
{
    static struct load load = {.connections = 32,
        .batch = 1,
        .seconds = 5,
        .events_max = UINT64_MAX / 2,
        .pages = 10000,
        .users = 1000000,
        .random = 20261120};
    if (!read_options(&load, argc, argv)) {
        return 2;
    }
    if (argc - optind != 2 && argc - optind != 3) {
        (void)fprintf(stderr, "usage: rate [OPTION...] PORT TARGET [EVENT]   (see rate.c)\n");
        return 2;
    }
    load.port = (unsigned)number(argv[optind], 1, 65535);
    load.log_pages = log((double)load.pages);
    if (argv[optind + 2] == NULL) {
        make_targets(&load, argv[optind + 1]);
    } else {
        make_request(&load, argv[optind + 1], argv[optind + 2]);
    }

    (void)prctl(PR_SET_TIMERSLACK, 1UL); /* else each wait may be 50 µs longer */
    open_connections(&load);
    int64_t took_ns = run(&load);
    if (load.answered == 0) {
        (void)fprintf(stderr, "rate: no answer came\n");
        return 1;
    }
    print(&load, took_ns);
    return 0;
}
