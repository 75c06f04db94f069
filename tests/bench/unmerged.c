/* unmerged.c - what Redis takes when every event's commands are sent to it as they are.
 *
 *	unmerged [-c CONNECTIONS] [-d SECONDS] [-b EVENTS_A_PIPELINE] [-P PAGES] [-U USERS] [-S
 *SEED] SOCKET
 *
 * The commands are those that a fold of tallyd comes to for one event: PFADD of the visitor and
 *of the address, HINCRBY of the page views, each for the page and for the site, the visitor's entry
 * read and written, the user's index read, the bit of the user's day, the pair for "seen?"; and
 * HINCRBY of the visits, page and site, and the user's index made, if the entry says that a visit
 * starts (it is known from the reply, so these go into the connection's next pipeline).  Keys have
 * tallyd's form and are spread over 16 partitions; no expiry is set, no state is checked, nothing
 * is exactly once: the comparison is kind to the commands.
 *
 * A connection sends one pipeline, reads its replies and sends the next; several connections keep
 * Redis busy meanwhile, and share its writes to disk.  Commands are templates with digits written
 *in place, so that this client takes about a tenth of Redis's time.  The result is one line of
 *JSON.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PARTITIONS      16
#define VISIT_TIMEOUT_S 1800
#define CONNECTIONS_MAX 64
#define TEMPLATE_MAX    2048
#define PLACES_MAX      64
#define WAIT_MS         10000

/* T and W: partitions of the page and of the visitor, M minute, P page, V and A visitor and address
 * (8 bytes), X visitor (16 bytes), L slot of the visits, N the visitor's entry, U user. */
static const char fields[] = "TWMPVAXLNU";
static const size_t widths[] = {2, 2, 12, 7, 8, 8, 16, 7, 22, 7};
#define WIDTH_MAX 22

static const char *const event_commands[] = {
    "PFADD t:{%T}:uv:default:m%M:/page/number/%P %V",
    "PFADD t:{40}:uv:default:m%M: %V",
    "PFADD t:{%T}:ip:default:m%M:/page/number/%P %A",
    "PFADD t:{40}:ip:default:m%M: %A",
    "HINCRBY t:{%T}:pv:default:m%M /page/number/%P 1",
    "HINCRBY t:{40}:pv:default:m%M  1", /* the whole site is the page of no bytes */
    "HGET t:{%W}:visit:default:%L %X",
    "HSET t:{%W}:visit:default:%L %X %N",
    "HGET t:{%W}:uid:default user-%U",
    "SETBIT t:{%W}:act:default:active:20261120 1%U 1",
    "APPEND t:{%T}:seen:default:M202611010000:log %V",
};
static const char *const visit_commands[] = {
    "HINCRBY t:{%W}:vv:default:m%M /page/number/%P 1",
    "HINCRBY t:{%W}:vv:default:m%M  1",
    "HINCRBY t:{%W}:uid:default  1", /* whoever starts a visit here is new: a number of its own */
    "HSET t:{%W}:uid:default user-%U %U",
    "RPUSH t:{%W}:ids:default:0 user-%U",
};
#define EVENT_COMMANDS (sizeof(event_commands) / sizeof(*event_commands))
#define VISIT_COMMANDS (sizeof(visit_commands) / sizeof(*visit_commands))
#define READ_COMMAND   6 /* HGET, of the event's */

struct template
{
    char text[TEMPLATE_MAX];
    size_t n;
    struct {
        size_t at;
        size_t field;
    } places[PLACES_MAX];
    size_t n_places;
};

struct event {
    uint64_t page, user;
};

struct connection {
    int fd;
    char *out;
    size_t out_n, sent;
    struct event *events;
    size_t n_events, n_visits; /* visits: commands at the head of the pipeline */
    size_t replies, expected;
    struct event *starts; /* visits that the replies so far say have started */
    size_t n_starts;
    char in[65536];
    size_t in_n;
};

struct load {
    unsigned connections, batch;
    double seconds, log_pages;
    uint64_t users, random;
    struct template event, visit;
    time_t now;
    char minute[13], slot[8], entry[23];
    uint64_t done, visits, commands;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* splitmix64's last step: what a keyed hash of the name would look like */
static uint64_t hash(uint64_t x)
{
    x = (x + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ---- commands -------------------------------------------------------------------------------- */

static size_t word_length(const char *word, size_t n)
{
    size_t length = n;

    for (size_t i = 0; i + 1 < n; i++) {
        if (word[i] == '%') {
            length += widths[strchr(fields, word[i + 1]) - fields] - 2;
        }
    }
    return length;
}

static void add_word(struct template *t, const char *word, size_t n)
{
    t->n += (size_t)snprintf(t->text + t->n, TEMPLATE_MAX - t->n, "$%zu\r\n", word_length(word, n));
    for (size_t i = 0; i < n; i++) {
        if (word[i] != '%') {
            t->text[t->n++] = word[i];
            continue;
        }
        size_t field = (size_t)(strchr(fields, word[++i]) - fields);
        t->places[t->n_places].at = t->n;
        t->places[t->n_places++].field = field;
        t->n += widths[field];
    }
    memcpy(t->text + t->n, "\r\n", 2);
    t->n += 2;
}

static void add_command(struct template *t, const char *command)
{
    size_t words = 1;

    for (const char *p = command; *p != '\0'; p++) {
        words += *p == ' ';
    }
    t->n += (size_t)snprintf(t->text + t->n, TEMPLATE_MAX - t->n, "*%zu\r\n", words);
    for (;;) {
        size_t n = strcspn(command, " ");
        add_word(t, command, n);
        if (command[n] == '\0') {
            return;
        }
        command += n + 1;
    }
}

static void put_digits(char *to, size_t n, uint64_t value)
{
    while (n-- > 0) {
        to[n] = (char)('0' + value % 10);
        value /= 10;
    }
}

static void set_time(struct load *load)
{
    time_t now = time(NULL);
    struct tm tm;

    if (now == load->now) {
        return;
    }
    load->now = now;
    (void)gmtime_r(&now, &tm);
    (void)strftime(load->minute, sizeof(load->minute), "%Y%m%d%H%M", &tm);
    put_digits(load->slot, 7, (uint64_t)now / VISIT_TIMEOUT_S);
    put_digits(load->entry, 11, (uint64_t)now);
    put_digits(load->entry + 11, 11, (uint64_t)now);
}

static size_t put(const struct load *load, const struct template *t, struct event event, char *to)
{
    uint64_t visitor = hash(event.user);
    uint64_t address = hash(event.user * 7919 % 1000000 + ((uint64_t)1 << 40));
    uint64_t visitor16[2] = {visitor, hash(visitor)};

    memcpy(to, t->text, t->n);
    for (size_t i = 0; i < t->n_places; i++) {
        char *at = to + t->places[i].at;
        size_t width = widths[t->places[i].field];

        switch (fields[t->places[i].field]) {
        case 'T':
            put_digits(at, width, event.page % PARTITIONS);
            break;
        case 'W':
            put_digits(at, width, visitor % PARTITIONS);
            break;
        case 'M':
            memcpy(at, load->minute, width);
            break;
        case 'P':
            put_digits(at, width, event.page);
            break;
        case 'V':
            memcpy(at, &visitor, width);
            break;
        case 'A':
            memcpy(at, &address, width);
            break;
        case 'X':
            memcpy(at, visitor16, width);
            break;
        case 'L':
            memcpy(at, load->slot, width);
            break;
        case 'U':
            put_digits(at, width, event.user);
            break;
        default: /* N */
            memcpy(at, load->entry, width);
            break;
        }
    }
    return t->n;
}

static void next_pipeline(struct load *load, struct connection *c, bool last)
{
    set_time(load);
    c->out_n = c->sent = 0;
    for (size_t i = 0; i < c->n_starts; i++) {
        c->out_n += put(load, &load->visit, c->starts[i], c->out + c->out_n);
    }
    c->n_visits = c->n_starts * VISIT_COMMANDS;
    c->n_starts = 0;
    c->n_events = last ? 0 : load->batch;
    for (size_t i = 0; i < c->n_events; i++) {
        double u = (double)(next_random(&load->random) >> 11) * 0x1p-53;

        c->events[i].page = (uint64_t)exp(u * load->log_pages);
        c->events[i].user = next_random(&load->random) % load->users;
        c->out_n += put(load, &load->event, c->events[i], c->out + c->out_n);
    }
    c->replies = 0;
    c->expected = c->n_visits + c->n_events * EVENT_COMMANDS;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void take_reply(struct connection *c, bool none)
{
    if (c->replies >= c->n_visits) {
        size_t k = c->replies - c->n_visits;

        if (k % EVENT_COMMANDS == READ_COMMAND && none) {
            c->starts[c->n_starts++] = c->events[k / EVENT_COMMANDS];
        }
    }
    c->replies++;
}

/* Integers, strings and no string are all that these commands answer. */
static void take(struct connection *c)
{
    size_t at = 0;

    for (;;) {
        const char *end = memchr(c->in + at, '\n', c->in_n - at);
        if (end == NULL) {
            break;
        }
        size_t next = (size_t)(end + 1 - c->in);
        bool none = false;
        if (c->in[at] == '$') {
            none = c->in[at + 1] == '-';
            next += none ? 0 : strtoul(c->in + at + 1, NULL, 10) + 2;
            if (next > c->in_n) {
                break;
            }
        } else if (c->in[at] != ':') {
            (void)fprintf(stderr, "unmerged: Redis: %.*s\n", (int)(end - (c->in + at)), c->in + at);
            exit(1);
        }
        take_reply(c, none);
        at = next;
    }
    memmove(c->in, c->in + at, c->in_n - at);
    c->in_n -= at;
}

static void exchange(struct connection *c, short events)
{
    if ((events & POLLOUT) != 0 && c->sent < c->out_n) {
        ssize_t n = send(c->fd, c->out + c->sent, c->out_n - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) {
            fail("unmerged: send");
        }
        c->sent += n > 0 ? (size_t)n : 0;
    }
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
        ssize_t n = recv(c->fd, c->in + c->in_n, sizeof(c->in) - c->in_n, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            fail("unmerged: recv");
        }
        c->in_n += n > 0 ? (size_t)n : 0;
        take(c);
    }
}

/* ---- the run --------------------------------------------------------------------------------- */

static void open_connection(const struct load *load, struct connection *c, const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t room = load->batch * (load->event.n + load->visit.n);

    if (strlen(path) >= sizeof(to.sun_path)) {
        (void)fprintf(stderr, "unmerged: the socket's path is too long\n");
        exit(2);
    }
    memcpy(to.sun_path, path, strlen(path) + 1);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    c->out = malloc(room);
    c->events = calloc(load->batch, sizeof(*c->events));
    c->starts = calloc(load->batch, sizeof(*c->starts));
    if (c->fd < 0 || c->out == NULL || c->events == NULL || c->starts == NULL ||
        connect(c->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        fail("unmerged: connect");
    }
}

/* Pipelines until the time is over, then the visits that are still to be counted. */
static double run(struct load *load, struct connection *all)
{
    struct pollfd wanted[CONNECTIONS_MAX];
    double start = now_s(), took = 0;
    unsigned open = load->connections;

    for (unsigned i = 0; i < load->connections; i++) {
        wanted[i] = (struct pollfd){.fd = all[i].fd};
        next_pipeline(load, &all[i], false);
    }
    while (open > 0) {
        for (unsigned i = 0; i < load->connections; i++) {
            wanted[i].events = (short)(POLLIN | (all[i].sent < all[i].out_n ? POLLOUT : 0));
        }
        int n = poll(wanted, load->connections, WAIT_MS);
        if (n <= 0) {
            fail(n == 0 ? "unmerged: Redis does not answer" : "unmerged: poll");
        }
        for (unsigned i = 0; i < load->connections; i++) {
            struct connection *c = &all[i];

            if (wanted[i].revents == 0) {
                continue;
            }
            exchange(c, wanted[i].revents);
            if (c->replies < c->expected) {
                continue;
            }
            load->done += c->n_events;
            load->visits += c->n_visits / VISIT_COMMANDS;
            load->commands += c->expected;
            took = now_s() - start;
            next_pipeline(load, c, took >= load->seconds);
            if (c->expected == 0) {
                wanted[i].fd = -1;
                open--;
            }
        }
    }
    return took;
}

static double number(const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(value >= least && value <= most)) {
        (void)fprintf(stderr, "unmerged: %s is no number from %g to %g\n", text, least, most);
        exit(2);
    }
    return value;
}

/* False: an option is wrong, which getopt() has said. */
static bool read_options(struct load *load, double *pages, int argc, char **argv)
{
    for (int o; (o = getopt(argc, argv, "c:d:b:P:U:S:")) != -1;) {
        switch (o) {
        case 'c':
            load->connections = (unsigned)number(optarg, 1, CONNECTIONS_MAX);
            break;
        case 'd':
            load->seconds = number(optarg, 0.01, 600);
            break;
        case 'b':
            load->batch = (unsigned)number(optarg, 1, 100000);
            break;
        case 'P':
            *pages = number(optarg, 1, 1e7);
            break;
        case 'U':
            load->users = (uint64_t)number(optarg, 1, 1e8);
            break;
        case 'S':
            load->random = (uint64_t)number(optarg, 1, 1e9) * 0x9e3779b97f4a7c15u;
            break;
        default:
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct load load = {
        .connections = 8, .batch = 1000, .seconds = 5, .users = 1000000, .random = 20261120};
    double pages = 10000;
    if (!read_options(&load, &pages, argc, argv)) {
        return 2;
    }
    if (argc - optind != 1) {
        (void)fprintf(stderr, "usage: unmerged [OPTION...] SOCKET   (see unmerged.c)\n");
        return 2;
    }
    load.log_pages = log(pages);
    for (size_t i = 0; i < EVENT_COMMANDS; i++) {
        add_command(&load.event, event_commands[i]);
    }
    for (size_t i = 0; i < VISIT_COMMANDS; i++) {
        add_command(&load.visit, visit_commands[i]);
    }
    struct connection *all = calloc(load.connections, sizeof(*all));
    if (all == NULL) {
        fail("unmerged");
    }
    for (unsigned i = 0; i < load.connections; i++) {
        open_connection(&load, &all[i], argv[optind]);
    }
    double took = run(&load, all);
    printf("{\"events\": %" PRIu64 ", \"visits\": %" PRIu64 ", \"commands\": %" PRIu64
           ", \"seconds\": %.6f, \"rate\": %.1f}\n",
        load.done, load.visits, load.commands, took, (double)load.done / took);
    return 0;
}
