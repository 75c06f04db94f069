/* after_write.c - asks for what was just written, and how long the answer takes.
 *
 *	after_write [-c CONNECTIONS] [-r PAIRS_A_SECOND] [-d SECONDS] [-e PAIRS] [-S SEED]
 *	            PORT TARGET EVENT ANSWER
 *
 * A pair is one POST of EVENT to /events and, once the 202 is here, one GET of TARGET over the same
 * connection.  Only the GET's time is measured.  {n} in EVENT and TARGET is a number of 16 digits
 * that no other pair has.  The GET must answer 200 with ANSWER somewhere in the body, so an answer
 * that lacks the event is found out.  With an empty EVENT nothing is written.
 *
 * Connections are threads that wait for their answers.  -r: pair i is due at start + i / rate on
 * connection i modulo CONNECTIONS, and goes out later if that one still waits.  So a rate that
 * falls short of what was asked for says that there were too few connections.  -d and -e end the
 * run, whichever comes first.  127.0.0.1 only.  The result is one line of JSON; 1 if nothing was
 * measured.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS              1000000000
#define CONNECTIONS_MAX 256
#define TEXT_MAX        4096
#define ANSWER_MAX      65536
#define TIMEOUT_S       20
#define TOKEN           "{n}"

struct plan {
    unsigned port, connections;
    double rate, seconds;
    uint64_t pairs_max, seed;
    const char *target, *event, *answer;
    int64_t start_ns;
};

/* A thread and its connection. */
struct asker {
    const struct plan *plan;
    pthread_t thread;
    unsigned number;
    int fd;
    char text[ANSWER_MAX]; /* of the last answer, its head too */
    int64_t *took_ns;      /* owned: of each GET */
    size_t n, capacity;
    uint64_t refused, wrong, lost;
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS + now.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- one request ----------------------------------------------------------------------------- */

/* @from with the pair's number in place of each token. */
static void fill_in(const char *from, uint64_t pair, char to[TEXT_MAX])
{
    size_t n = 0;

    while (*from != '\0' && n < TEXT_MAX - 32) {
        if (strncmp(from, TOKEN, strlen(TOKEN)) == 0) {
            n += (size_t)snprintf(to + n, 32, "%016" PRIu64, pair);
            from += strlen(TOKEN);
        } else {
            to[n++] = *from++;
        }
    }
    to[n] = '\0';
}

static void open_connection(struct asker *asker)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)asker->plan->port),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval patience = {.tv_sec = TIMEOUT_S};
    int on = 1;

    asker->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (asker->fd < 0 || connect(asker->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        fail("after_write: connect");
    }
    (void)setsockopt(asker->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(asker->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

/* Send, and read the whole answer into asker->text.  Its status; 0: the connection is lost. */
static int exchange(struct asker *asker, const char *request, size_t n)
{
    size_t have = 0, whole = SIZE_MAX;

    if (send(asker->fd, request, n, MSG_NOSIGNAL) != (ssize_t)n) {
        return 0;
    }
    while (have < whole) {
        ssize_t got = recv(asker->fd, asker->text + have, ANSWER_MAX - 1 - have, 0);
        if (got <= 0) {
            return 0;
        }
        have += (size_t)got;
        asker->text[have] = '\0';
        const char *end = strstr(asker->text, "\r\n\r\n");
        const char *length = strcasestr(asker->text, "\r\ncontent-length:");
        if (end != NULL && (length == NULL || length > end)) {
            return 0;
        }
        if (end != NULL) {
            whole = (size_t)(end + 4 - asker->text) + strtoull(length + 17, NULL, 10);
        }
    }
    return (int)strtol(asker->text + sizeof("HTTP/1.1"), NULL, 10);
}

static int post(struct asker *asker, uint64_t pair)
{
    char event[TEXT_MAX], request[TEXT_MAX + 256];

    fill_in(asker->plan->event, pair, event);
    int n = snprintf(request, sizeof(request),
        "POST /events HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        strlen(event), event);
    return exchange(asker, request, (size_t)n);
}

static int get(struct asker *asker, uint64_t pair)
{
    char target[TEXT_MAX], request[TEXT_MAX + 256];

    fill_in(asker->plan->target, pair, target);
    int n =
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", target);
    return exchange(asker, request, (size_t)n);
}

/* ---- a thread -------------------------------------------------------------------------------- */

static void note(struct asker *asker, int64_t took_ns)
{
    if (asker->n == asker->capacity) {
        asker->capacity = asker->capacity == 0 ? 1024 : 2 * asker->capacity;
        asker->took_ns = realloc(asker->took_ns, asker->capacity * sizeof(*asker->took_ns));
        if (asker->took_ns == NULL) {
            fail("after_write");
        }
    }
    asker->took_ns[asker->n++] = took_ns;
}

static void ask_pair(struct asker *asker, uint64_t pair)
{
    int status = *asker->plan->event == '\0' ? 202 : post(asker, pair);

    if (status == 202) {
        int64_t begun = now_ns();
        status = get(asker, pair);
        if (status == 200) {
            note(asker, now_ns() - begun);
            asker->wrong += strstr(asker->text, asker->plan->answer) == NULL;
            return;
        }
    }
    if (status != 0) {
        asker->refused++;
        return;
    }
    asker->lost++;
    (void)close(asker->fd);
    open_connection(asker);
}

static void *ask_pairs(void *argument)
{
    struct asker *asker = argument;
    const struct plan *plan = asker->plan;
    int64_t end = plan->start_ns + (int64_t)(plan->seconds * NS);

    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    for (uint64_t i = asker->number; i < plan->pairs_max; i += plan->connections) {
        int64_t due = plan->rate > 0 ? plan->start_ns + (int64_t)((double)i * NS / plan->rate) : 0;
        struct timespec until = {due / NS, due % NS};

        if ((due > now_ns() ? due : now_ns()) >= end) {
            break;
        }
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        ask_pair(asker, plan->seed * 1000000000 + i);
    }
    return NULL;
}

/* ---- the run --------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int64_t quantile_us(const struct asker *all, double q)
{
    size_t rank = (size_t)(q * (double)all->n);

    return all->took_ns[rank < all->n ? rank : all->n - 1] / 1000;
}

/* Everything of the askers is added to the first. */
static void sum(struct asker *askers, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        for (size_t k = 0; k < askers[i].n; k++) {
            note(&askers[0], askers[i].took_ns[k]);
        }
        askers[0].refused += askers[i].refused;
        askers[0].wrong += askers[i].wrong;
        askers[0].lost += askers[i].lost;
    }
    if (askers[0].n > 0) {
        qsort(askers[0].took_ns, askers[0].n, sizeof(*askers[0].took_ns), compare);
    }
}

static void print(const struct asker *all, int64_t took_ns)
{
    double seconds = (double)took_ns / NS;

    printf("{\"requests\": %zu, \"events\": %zu, \"seconds\": %.6f, \"rate\": %.1f, "
           "\"refused\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"wrong\": %" PRIu64
           ", \"p50_us\": %" PRId64 ", \"p99_us\": %" PRId64 ", \"max_us\": %" PRId64 "}\n",
        all->n, all->n, seconds, (double)all->n / seconds, all->refused, all->lost, all->wrong,
        quantile_us(all, 0.5), quantile_us(all, 0.99), quantile_us(all, 1));
}

static double number(const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(value >= least && value <= most)) {
        (void)fprintf(stderr, "after_write: %s is no number from %g to %g\n", text, least, most);
        exit(2);
    }
    return value;
}

static void parse(int argc, char **argv, struct plan *plan)
{
    for (int o; (o = getopt(argc, argv, "c:r:d:e:S:")) != -1;) {
        switch (o) {
        case 'c':
            plan->connections = (unsigned)number(optarg, 1, CONNECTIONS_MAX);
            break;
        case 'r':
            plan->rate = number(optarg, 0.1, 1e5);
            break;
        case 'd':
            plan->seconds = number(optarg, 0.01, 600);
            break;
        case 'e':
            plan->pairs_max = (uint64_t)number(optarg, 1, 1e8);
            break;
        case 'S':
            plan->seed = (uint64_t)number(optarg, 1, 9e6);
            break;
        default:
            exit(2);
        }
    }
    if (argc - optind != 4 || strlen(argv[optind + 1]) + strlen(argv[optind + 2]) > TEXT_MAX / 8) {
        (void)fprintf(stderr, "usage: after_write [OPTION...] PORT TARGET EVENT ANSWER\n");
        exit(2);
    }
    plan->port = (unsigned)number(argv[optind], 1, 65535);
    plan->target = argv[optind + 1];
    plan->event = argv[optind + 2];
    plan->answer = argv[optind + 3];
}

int main(int argc, char **argv)
{
    static struct asker askers[CONNECTIONS_MAX];
    struct plan plan = {.connections = 1, .seconds = 5, .pairs_max = 100000000, .seed = 1};

    parse(argc, argv, &plan);
    for (unsigned i = 0; i < plan.connections; i++) {
        askers[i].plan = &plan;
        askers[i].number = i;
        open_connection(&askers[i]);
    }
    plan.start_ns = now_ns();
    for (unsigned i = 0; i < plan.connections; i++) {
        if (pthread_create(&askers[i].thread, NULL, ask_pairs, &askers[i]) != 0) {
            fail("after_write: pthread_create");
        }
    }
    for (unsigned i = 0; i < plan.connections; i++) {
        (void)pthread_join(askers[i].thread, NULL);
    }
    int64_t took_ns = now_ns() - plan.start_ns;
    sum(askers, plan.connections);
    if (askers[0].n == 0) {
        (void)fprintf(stderr, "after_write: no answer came\n");
        return 1;
    }
    print(&askers[0], took_ns);
    return 0;
}
