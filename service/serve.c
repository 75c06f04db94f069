#include "service/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "handlers/reply/json_memory.h"
#include "service/heap.h"
#include "service/notify.h"
#include "service/ops/version.h"
#include "service/parts.h"
#include "service/reread.h"
#include "storage/base/clock.h"

#define REPEATS_PER_S     5
#define DESCRIPTORS_SPARE 256      /* beside connections: for Redis, files and polls */
#define POLL_AGAIN_NS     10000000 /* the pause after poll() has failed: ENOMEM passes */

extern char **environ;

/* Tell the service manager, if there is one. */
static void tell_manager(struct service *s, const char *state)
{
    if (!notify_send(getenv(NOTIFY_SOCKET), state)) {
        log_warn(s->logger, "the service manager could not be told", log_text("state", state),
            log_text("reason", strerror(errno)));
    }
}

/* Print the one line on stdout, once everything is there. */
static void announce(struct service *s)
{
    bool v6 = s->listen.family == LISTEN_IPV6;
    printf("tallyd %s listening on http://%s%s%s:%u (redis: %s)\n", TALLYD_VERSION, v6 ? "[" : "",
        s->listen.host, v6 ? "]" : "", http_server_port(s->server), s->news.server);
    (void)fflush(stdout);
    tell_manager(s, NOTIFY_READY);
}

/* ---- setting up ---- */

static int complain(const char *text)
{
    (void)fprintf(stderr, "tallyd: %s\n", text);
    return 2;
}

/* Read the token file, if --tokens names one.  0, or the exit status. */
static int read_tokens(struct service *s)
{
    char error[TOKEN_FILE_ERROR];
    if (s->options.tokens[0] == '\0') {
        return s->options.metrics_token ? complain("--metrics-token: there are no --tokens") : 0;
    }
    s->tokens = tokens_open(s->options.tokens, s->options.metrics_token, error);
    if (s->tokens == NULL) {
        (void)fprintf(stderr, "tallyd: --tokens: %s\n", error);
    }
    return s->tokens != NULL ? 0 : 2;
}

/* Read the options, and what belongs to them.  0, or the exit status. */
static int read_options(struct service *s, int argc, char **argv)
{
    char error[OPTIONS_ERROR];
    if (!options_load(&s->options, argc, argv, environ, false, error)) {
        return complain(error);
    }
    if (listen_parse(s->options.listen, &s->listen) != NULL) {
        return complain("the listen address is not HOST:PORT");
    }
    if (!listen_is_loopback(&s->listen) && !s->options.insecure && s->options.tokens[0] == '\0') {
        return complain(
            "--listen: an address that other machines can reach needs --tokens FILE "
            "(`tallyd token new` makes one); --insecure serves everybody who can connect");
    }
    if (!live_guard(&s->options, &s->guard_by, &s->guard_limit)) {
        return complain("--ingest-burst: too large for --ingest-limit to be counted exactly");
    }
    return read_tokens(s);
}

static bool catch_signals(struct service *s, int *ret_signal_fd)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        return false;
    }
    *ret_signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->news.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return *ret_signal_fd >= 0 && s->news.fd >= 0;
}

/* Ask for as many descriptors as connections, if the system lets us. */
static void raise_descriptors(struct service *s)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)s->options.max_connections + DESCRIPTORS_SPARE +
                    (rlim_t)s->options.threads * 3; /* each has an epoll, and two that wake it */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return;
    }
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted) {
        log_warn(s->logger, "fewer file descriptors than connections allowed",
            log_uint("descriptors", limit.rlim_cur), log_uint("wanted", wanted));
    }
}

/* ---- running ---- */

/* How long there is nothing to do, ms. */
static int patience(const struct service *s, struct heap *heap)
{
    int64_t now_ms = monotonic_ms();
    int64_t next_ms = heap_tick(heap, now_ms);
    if (s->child != NULL && redis_child_next_ms(s->child) < next_ms) {
        next_ms = redis_child_next_ms(s->child);
    }
    return next_ms <= now_ms ? 0 : (int)(next_ms - now_ms);
}

static void mind_child(struct service *s, bool exited)
{
    struct redis_child_report report;
    if (s->child == NULL) {
        return;
    }
    if (exited) {
        redis_child_on_exit(s->child, monotonic_ms(), &report);
        redis_news_child(&s->news, &report);
    }
    if (redis_child_next_ms(s->child) <= monotonic_ms()) {
        redis_child_tick(s->child, monotonic_ms(), &report);
        redis_news_child(&s->news, &report);
    }
}

/* Take a signal that has come.  True: the service must stop. */
static bool take_signal(struct service *s, int signal_fd)
{
    struct signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return false;
    }
    if (info.ssi_signo == SIGHUP) {
        reread(s);
        return false;
    }
    log_info(s->logger, "stopping", log_text("signal", strsignal((int)info.ssi_signo)));
    return true;
}

/* Serve until a signal says stop.  Returns the exit status. */
static int run(struct service *s, int signal_fd)
{
    bool announced = false;
    struct heap heap = {0};
    for (;;) {
        struct pollfd fds[] = {
            {.fd = signal_fd, .events = POLLIN},
            {.fd = s->news.fd, .events = POLLIN},
            {.fd = s->child == NULL ? -1 : redis_child_fd(s->child), .events = POLLIN},
        };
        if (poll(fds, 3, patience(s, &heap)) < 0 && errno != EINTR) {
            (void)nanosleep(&(struct timespec){0, POLL_AGAIN_NS}, NULL);
        }
        if ((fds[0].revents & POLLIN) != 0 && take_signal(s, signal_fd)) {
            return 0;
        }
        if ((fds[1].revents & POLLIN) != 0) {
            eventfd_t ignored;
            (void)eventfd_read(s->news.fd, &ignored);
            if (!announced && atomic_load(&s->news.unfit)) {
                return 2; /* a service that is ready answers 503 instead, and waits */
            }
            if (!announced && atomic_load(&s->news.connected)) {
                announce(s);
                announced = true;
            }
            if (atomic_exchange(&s->news.clock_news, false)) {
                redis_news_clocks(&s->news, storage_now_ms(s->app.storage), log_now_ms());
            }
        }
        mind_child(s, (fds[2].revents & POLLIN) != 0);
    }
}

static int serve(struct service *s)
{
    struct logger_config config = {.fd = STDERR_FILENO,
        .syntax = s->options.log_format,
        .level = s->options.log_level,
        .repeats_per_s = REPEATS_PER_S};
    int status = 1;
    int signal_fd = -1;
    s->logger = s->news.logger = logger_new(&config);
    if (s->logger == NULL) {
        (void)complain("out of memory");
        return 1;
    }
    if (!catch_signals(s, &signal_fd)) {
        log_error(s->logger, "signals cannot be waited for", log_text("reason", strerror(errno)));
    } else {
        raise_descriptors(s);
        status = service_start(s);
        status = status == 0 ? run(s, signal_fd) : status;
        tell_manager(s, NOTIFY_STOPPING);
        service_stop(s);
        log_info(s->logger, "stopped", log_int("status", status));
    }
    if (signal_fd >= 0) {
        close(signal_fd);
    }
    return status;
}

int serve_main(int argc, char **argv)
{
    heap_set_up();
    json_memory_watch();
    struct service *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        (void)complain("out of memory");
        return 1;
    }
    redis_news_init(&s->news);
    s->argc = argc;
    s->argv = argv;
    int status = read_options(s, argc, argv);
    if (status == 0) {
        status = serve(s);
    }
    logger_free(s->logger);
    tokens_close(s->tokens);
    options_release(&s->options);
    if (s->news.fd >= 0) {
        close(s->news.fd);
    }
    free(s);
    return status;
}
