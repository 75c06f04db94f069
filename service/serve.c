#include "service/serve.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
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

#include "handlers/app.h"
#include "handlers/json_memory.h"
#include "handlers/routes.h"
#include "service/api_description.h"
#include "service/http_server.h"
#include "service/listen.h"
#include "service/live.h"
#include "service/log.h"
#include "service/notify.h"
#include "service/ops.h"
#include "service/option_value.h"
#include "service/options.h"
#include "service/process.h"
#include "service/redis_child.h"
#include "service/redis_url.h"
#include "service/tokens.h"
#include "service/version.h"
#include "storage/storage.h"

#define EVENTS_MAX        10000 /* of the contract */
#define IDLE_TIMEOUT_MS   75000
#define REDIS_STOP_MS     10000
#define HTTP_STOP_MS      1000
#define REPEATS_PER_S     5
#define REASON_MS         60000
#define REDIS_START_MS    2000 /* the embedded Redis listens by then, or it is worth a warning */
#define CLOCKS_DIFFER_MS  5000
#define DESCRIPTORS_SPARE 256 /* beside the connections: Redis, files, polls */
#define THREADS_MAX       4
#define LARGE_BLOCK       (512 * 1024)

extern char **environ;

struct service {
    struct options options;
    struct listen_address listen;
    struct logger *logger;
    struct redis_child *child; /* NULL: a Redis of one's own */
    const char *redis_url;
    struct ops ops;
    struct app_stats stats;
    struct write_probe probe;
    struct limit guard_limit;
    enum guard_by guard_by;
    struct live *live; /* what requests see of the options */
    int argc;          /* to read them again */
    char **argv;
    struct route *routes;
    size_t n_routes;
    struct http_server *server;
    struct tokens *tokens; /* NULL: nobody needs one */
    int signal_fd;
    int notice_fd; /* eventfd: storage connected, or found that it must not */
    bool announced;
    int64_t clock_ahead_ms;  /* Redis's clock minus this machine's, as last told */
    _Atomic bool clock_news; /* look at the clocks */
    _Atomic bool connected;  /* was, once */
    char last_reason[400];   /* the writer's thread only */
    int64_t last_reason_ms;
    int64_t starting_until_ms; /* until then nobody wonders that Redis does not answer yet */
    _Atomic bool unfit;        /* Redis, or the data in it, is not for us */
};

/* ---- telling ---- */

/* Attempts to connect follow each other closely: the same reason is told once a minute.  (Such
 * notices come from one thread, the writer's.) */
static bool is_news(struct service *s, const char *reason)
{
    int64_t now_ms = process_clock_ms();
    if (strcmp(s->last_reason, reason) == 0 && now_ms - s->last_reason_ms < REASON_MS) {
        return false;
    }
    (void)snprintf(s->last_reason, sizeof(s->last_reason), "%s", reason);
    s->last_reason_ms = now_ms;
    return true;
}

static void on_notice(void *data, enum storage_notice what, const char *detail)
{
    struct service *s = data;
    switch (what) {
    case STORAGE_CONNECTED:
        s->last_reason[0] = '\0';
        log_info(s->logger, "connected to Redis", log_text("redis", "ready"));
        atomic_store(&s->connected, true);
        atomic_store(&s->clock_news, true);
        (void)eventfd_write(s->notice_fd, 1);
        break;
    case STORAGE_DISCONNECTED:
        log_warn(s->logger, "lost the connection to Redis", log_text("redis", "lost"));
        break;
    case STORAGE_CONNECT_FAILED:
        if (process_clock_ms() < s->starting_until_ms) {
            log_debug(s->logger, "Redis is starting", log_text("reason", detail));
        } else if (is_news(s, detail)) {
            log_warn(s->logger, "cannot use Redis", log_text("reason", detail));
        }
        break;
    case STORAGE_SETTINGS_DIFFER:
        if (is_news(s, detail)) {
            log_error(s->logger, "this Redis or its data is not for this process; not serving",
                log_text("reason", detail));
        }
        atomic_store(&s->unfit, true);
        (void)eventfd_write(s->notice_fd, 1);
        break;
    case STORAGE_REFUSING:
        log_warn(s->logger, "Redis refuses a write", log_text("reason", detail));
        break;
    case STORAGE_ROLLUP_FAILED:
        log_warn(s->logger, "a rollup step failed", log_text("reason", detail));
        break;
    case STORAGE_CLOCK:
        atomic_store(&s->clock_news, true);
        (void)eventfd_write(s->notice_fd, 1);
        break;
    case STORAGE_LEADING:
        log_info(s->logger, "leading the rollups", log_bool("leader", true));
        break;
    case STORAGE_LEADER_LOST:
        log_info(s->logger, "not leading the rollups any more", log_text("reason", detail));
        break;
    case STORAGE_SEEN_FAILED:
        log_warn(
            s->logger, "a log of who saw what could not be folded", log_text("reason", detail));
        break;
    case STORAGE_SETTINGS_CHANGED:
        log_info(s->logger, "the settings of the data changed", log_text("settings", detail));
        break;
    }
}

static void log_child(struct service *s, const struct redis_child_report *report)
{
    switch (report->outcome) {
    case REDIS_CHILD_NOTHING:
        break;
    case REDIS_CHILD_STARTED:
        if (report->orphan != 0) {
            log_warn(s->logger, "ended a redis-server that an earlier tallyd left behind",
                log_int("pid", report->orphan), log_bool("killed", report->orphan_forced));
        }
        log_info(s->logger, "started redis-server", log_int("pid", report->pid));
        break;
    case REDIS_CHILD_EXITED:
        log_error(s->logger, "redis-server ended", log_int("pid", report->pid),
            log_text("how", report->text), log_int("restart_in_ms", report->retry_in_ms));
        break;
    case REDIS_CHILD_FAILED:
        log_error(s->logger, "redis-server could not be started", log_text("reason", report->text),
            log_int("retry_in_ms", report->retry_in_ms));
        break;
    }
}

/* To the service manager, if there is one that wants to know. */
static void tell_manager(struct service *s, const char *state)
{
    if (!notify_send(getenv(NOTIFY_SOCKET), state)) {
        log_warn(s->logger, "the service manager could not be told", log_text("state", state),
            log_text("reason", strerror(errno)));
    }
}

/* The one line on stdout, once everything is there. */
static void announce(struct service *s)
{
    char redis[512] = "embedded";
    bool v6 = s->listen.family == LISTEN_IPV6;
    if (s->child == NULL) {
        redis_url_mask(s->redis_url, redis, sizeof(redis));
    }
    printf("tallyd %s listening on http://%s%s%s:%u (redis: %s)\n", TALLYD_VERSION, v6 ? "[" : "",
        s->listen.host, v6 ? "]" : "", http_server_port(s->server), redis);
    (void)fflush(stdout);
    tell_manager(s, NOTIFY_READY);
    s->announced = true;
}

/* ---- setting up ---- */

static int complain(const char *text)
{
    (void)fprintf(stderr, "tallyd: %s\n", text);
    return 2;
}

/* 0, or the exit status. */
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

/* 0, or the exit status. */
static int read_options(struct service *s, int argc, char **argv)
{
    char error[OPTIONS_ERROR];
    if (!options_load(&s->options, argc, argv, environ, error)) {
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

static bool catch_signals(struct service *s)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        return false;
    }
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    s->notice_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return s->signal_fd >= 0 && s->notice_fd >= 0;
}

/* As many descriptors as connections, if the system lets us. */
static void raise_descriptors(struct service *s)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)s->options.max_connections + DESCRIPTORS_SPARE;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return;
    }
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted) {
        log_warn(s->logger, "fewer file descriptors than connections allowed",
            log_uint("descriptors", limit.rlim_cur), log_uint("wanted", wanted));
    }
}

/* 0, or the exit status. */
static int start_redis(struct service *s)
{
    char error[REDIS_CHILD_TEXT];
    struct redis_child_report report;
    if (s->options.redis[0] != '\0') {
        s->redis_url = s->options.redis;
        return 0;
    }
    struct redis_child_config config = {
        .data_dir = s->options.data_dir,
        .server = s->options.redis_server,
        .maxmemory = s->options.redis_memory,
        .fsync = s->options.fsync,
    };
    s->child = redis_child_open(&config, error);
    if (s->child == NULL) {
        return complain(error);
    }
    s->starting_until_ms = process_clock_ms() + REDIS_START_MS;
    bool ok = redis_child_start(s->child, process_clock_ms(), &report);
    log_child(s, &report);
    s->redis_url = redis_child_url(s->child);
    return ok ? 0 : 1;
}

/* The `site.<name>.tz` lines.  Free the array.  NULL: no memory. */
static struct storage_site_zone *site_zones(const struct options *options, size_t *ret_n)
{
    struct storage_site_zone *zones = calloc(options->n_entries + 1, sizeof(*zones));
    *ret_n = 0;
    for (size_t i = 0; zones != NULL && i < options->n_entries; i++) {
        const struct option_entry *entry = &options->entries[i];
        if (entry->family == &option_families[OPTION_FAMILY_SITE_TZ]) {
            zones[(*ret_n)++] = (struct storage_site_zone){entry->name, entry->value};
        }
    }
    return zones;
}

static bool start_storage(struct service *s)
{
    const char *error = "out of memory";
    const struct options *o = &s->options;
    size_t n_zones = 0;
    struct storage_site_zone *zones = site_zones(o, &n_zones);
    struct storage_config config = {
        .redis_url = s->redis_url,
        .partitions = (unsigned)o->partitions,
        .retention = o->retention,
        .visit_timeout_s = o->visit_timeout_s,
        .rotation = o->visitor_rotation,
        .seen = {.on = o->seen != 0,
            .capacity = (uint64_t)o->seen_capacity,
            .keep_s = o->keep_seen_s},
        .queue_events = (size_t)o->queue,
        .cache_bytes = (size_t)o->cache_mb << 20,
        .guard_by = s->guard_by,
        .guard_limit = s->guard_limit,
        .readers = (unsigned)o->readers,
        .lead = true,
        .lock_urls = o->lock_redis,
        .notice = on_notice,
        .notice_data = s,
        .site_zones = zones,
        .n_site_zones = n_zones,
    };
    (void)option_parse_rate(o->seen_error, &config.seen.error); /* was checked */
    s->ops.app.storage = zones == NULL ? NULL : storage_open(&config, &error);
    free(zones);
    if (s->ops.app.storage == NULL) {
        log_error(s->logger, "storage could not be opened", log_text("reason", error));
    }
    return s->ops.app.storage != NULL;
}

static bool join_routes(struct service *s)
{
    const struct {
        const struct route *routes;
        size_t n;
    } tables[] = {
        {api_routes, n_api_routes},
        {ops_routes, n_ops_routes},
        {api_description_routes, n_api_description_routes},
    };
    const size_t n_tables = sizeof(tables) / sizeof(tables[0]);
    size_t n = 0;
    for (size_t i = 0; i < n_tables; i++) {
        n += tables[i].n;
    }
    s->routes = malloc(n * sizeof(*s->routes));
    if (s->routes == NULL) {
        return false;
    }
    for (size_t i = 0; i < n_tables; i++) {
        memcpy(s->routes + s->n_routes, tables[i].routes, tables[i].n * sizeof(*s->routes));
        s->n_routes += tables[i].n;
    }
    s->ops.http = http_metrics_new(s->routes, s->n_routes);
    return s->ops.http != NULL;
}

static void submit(void *data, struct storage_job *job)
{
    storage_submit(data, job);
}

static int64_t now_ms(void *data)
{
    return storage_now_ms(data);
}

static void observe(void *data, size_t route, unsigned status, int64_t latency_us)
{
    http_metrics_observe(data, route, status, latency_us);
}

static unsigned default_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (unsigned)cores;
}

static bool start_server(struct service *s)
{
    const char *error = NULL;
    const struct options *o = &s->options;
    s->ops.app.max_events = EVENTS_MAX;
    s->ops.app.rotation = o->visitor_rotation;
    s->ops.app.seen = o->seen != 0;
    s->ops.app.stats = &s->stats;
    s->ops.app.guard_by = s->guard_by;
    s->ops.app.guard_limit = s->guard_limit;
    s->ops.started_ms = process_utc_ms();
    s->ops.probe = &s->probe;
    pthread_mutex_init(&s->probe.lock, NULL);
    s->ops.app.ops = &s->ops;
    s->live = live_new(&s->ops.app, o, NULL);
    if (s->live == NULL || !join_routes(s)) {
        return false;
    }
    struct http_server_config config = {
        .host = s->listen.host,
        .port = s->listen.port,
        .threads = o->threads == 0 ? default_threads() : (unsigned)o->threads,
        .max_connections = (unsigned)o->max_connections,
        .max_body = (size_t)o->max_body,
        .max_body_memory = (size_t)o->max_body_memory,
        .request_timeout_ms = o->request_timeout_ms,
        .idle_timeout_ms = IDLE_TIMEOUT_MS,
        .app = live_app(s->live),
        .tokens = s->tokens,
        .routes = s->routes,
        .n_routes = s->n_routes,
        .submit = submit,
        .now_ms = now_ms,
        .storage = s->ops.app.storage,
        .observe = observe,
        .observe_data = s->ops.http,
    };
    s->server = http_server_start(&config, &error);
    if (s->server == NULL) {
        (void)fprintf(stderr, "tallyd: cannot listen on %s: %s\n", o->listen, error);
        return false;
    }
    atomic_store(&s->ops.server, s->server);
    return true;
}

/* ---- running ---- */

static int patience(const struct service *s)
{
    int64_t next_ms = s->child == NULL ? REDIS_CHILD_NEVER : redis_child_next_ms(s->child);
    if (next_ms == REDIS_CHILD_NEVER) {
        return -1;
    }
    int64_t left_ms = next_ms - process_clock_ms();
    return left_ms <= 0 ? 0 : left_ms > 60000 ? 60000 : (int)left_ms;
}

static void mind_child(struct service *s, bool exited)
{
    struct redis_child_report report;
    if (s->child == NULL) {
        return;
    }
    if (exited) {
        redis_child_on_exit(s->child, process_clock_ms(), &report);
        log_child(s, &report);
    }
    if (redis_child_next_ms(s->child) <= process_clock_ms()) {
        redis_child_tick(s->child, process_clock_ms(), &report);
        log_child(s, &report);
    }
}

/* One line for all: the log passes over what repeats itself. */
static void add_name(void *data, const char *name)
{
    char *names = data;
    size_t n = strlen(names);
    (void)snprintf(names + n, LOG_VALUE_MAX - n, "%s%s", n == 0 ? "" : ",", name);
}

static void tell_restart(struct service *s, const struct options *next)
{
    char names[LOG_VALUE_MAX] = "";
    live_tell_rest(&s->options, next, add_name, names);
    if (names[0] != '\0') {
        log_warn(s->logger, "these options changed, which takes effect at the next start",
            log_text("options", names));
    }
}

static void apply(struct service *s, struct live *live)
{
    const struct app *app = live_app(live);
    s->live = live;
    s->ops.app.guard_limit = app->guard_limit; /* no request looks there */
    storage_guard_set_limit(app->storage, &app->guard_limit);
    http_server_set_app(s->server, app);
    logger_set_level(s->logger, live_options(live)->log_level);
}

/* The configuration as it is now.  What is wrong with it changes nothing at all. */
static void reread_config(struct service *s)
{
    char error[OPTIONS_ERROR] = "ingest-burst is too large for ingest-limit to be counted exactly";
    struct options next = {0};
    enum guard_by by;
    struct limit limit;
    struct live *live = NULL;
    bool good =
        options_load(&next, s->argc, s->argv, environ, error) && live_guard(&next, &by, &limit);
    bool changed = good && live_differ(live_options(s->live), &next);
    if (good) {
        tell_restart(s, &next);
    }
    if (changed) {
        live = live_take(&s->ops.app, &next, s->live);
        (void)snprintf(error, sizeof(error), "out of memory");
    }
    if (live != NULL) {
        apply(s, live);
    }
    options_release(&next);
    if (!good || (changed && live == NULL)) {
        log_error(s->logger, "the configuration could not be read again, that of before stays",
            log_text("reason", error));
    } else {
        log_info(s->logger, "read the configuration again", log_bool("changed", changed),
            log_uint("policies", live_app(s->live)->n_policies));
    }
}

/* What can be read again while requests are served. */
static void reread(struct service *s)
{
    char error[TOKEN_FILE_ERROR];
    if (s->options.config[0] != '\0') {
        reread_config(s);
    }
    if (s->tokens == NULL && s->options.config[0] == '\0') {
        log_info(s->logger, "nothing to read again", log_text("signal", "SIGHUP"));
    } else if (s->tokens == NULL) {
        return;
    } else if (tokens_reload(s->tokens, error)) {
        log_info(s->logger, "read the tokens again", log_uint("tokens", tokens_count(s->tokens)));
    } else {
        log_error(s->logger, "the tokens could not be read again, those of before stay",
            log_text("reason", error));
    }
}

/* Times of arrival, windows and expiries are Redis's; who looks at this machine's clock should
 * know. */
static void compare_clocks(struct service *s)
{
    int64_t redis_ms = storage_now_ms(s->ops.app.storage);
    int64_t ahead_ms = redis_ms - process_utc_ms();
    int64_t change_ms = ahead_ms - s->clock_ahead_ms;
    if (redis_ms == 0 || (change_ms < CLOCKS_DIFFER_MS && change_ms > -CLOCKS_DIFFER_MS)) {
        return;
    }
    if (ahead_ms < CLOCKS_DIFFER_MS && ahead_ms > -CLOCKS_DIFFER_MS) {
        log_info(s->logger, "Redis's clock and this machine's agree again",
            log_int("redis_ahead_s", ahead_ms / 1000));
        ahead_ms = 0;
    } else {
        log_warn(s->logger, "Redis's clock differs from this machine's; Redis's is trusted",
            log_int("redis_ahead_s", ahead_ms / 1000));
    }
    s->clock_ahead_ms = ahead_ms;
}

/* True: it is time to stop. */
static bool take_signal(struct service *s)
{
    struct signalfd_siginfo info;
    if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return false;
    }
    if (info.ssi_signo == SIGHUP) {
        reread(s);
        return false;
    }
    log_info(s->logger, "stopping", log_text("signal", strsignal((int)info.ssi_signo)));
    return true;
}

/* The main thread supervises Redis: it forked it, and a child's death signal is bound to its
 * forker.  Returns the exit status. */
static int run(struct service *s)
{
    for (;;) {
        struct pollfd fds[] = {
            {.fd = s->signal_fd, .events = POLLIN},
            {.fd = s->notice_fd, .events = POLLIN},
            {.fd = s->child == NULL ? -1 : redis_child_fd(s->child), .events = POLLIN},
        };
        if (poll(fds, 3, patience(s)) < 0 && errno != EINTR) {
            return 1;
        }
        if ((fds[0].revents & POLLIN) != 0 && take_signal(s)) {
            return 0;
        }
        if ((fds[1].revents & POLLIN) != 0) {
            eventfd_t ignored;
            (void)eventfd_read(s->notice_fd, &ignored);
            if (!s->announced && atomic_load(&s->unfit)) {
                return 2; /* once in service, it answers 503 and waits to be put right */
            }
            if (!s->announced && atomic_load(&s->connected)) {
                announce(s);
            }
            if (atomic_exchange(&s->clock_news, false)) {
                compare_clocks(s);
            }
        }
        mind_child(s, (fds[2].revents & POLLIN) != 0);
    }
}

/* Stop accepting, finish what is in flight, then take apart what was put together, in reverse. */
static void shut_down(struct service *s)
{
    struct redis_child_report report;
    tell_manager(s, NOTIFY_STOPPING);
    if (s->server != NULL) { /* who has begun may finish: each request has its deadline */
        http_server_quiesce(s->server);
        http_server_wait_idle(s->server, s->options.request_timeout_ms);
    }
    if (s->ops.app.storage != NULL) {
        storage_drain(s->ops.app.storage, process_clock_ms() + s->options.request_timeout_ms);
    }
    atomic_store(&s->ops.server, NULL);
    http_server_stop(s->server, HTTP_STOP_MS);
    storage_close(s->ops.app.storage);
    if (s->child != NULL) {
        redis_child_stop(s->child, process_clock_ms() + REDIS_STOP_MS, &report);
        redis_child_close(s->child);
    }
    http_metrics_free(s->ops.http);
    free(s->routes);
    live_free(s->live);
}

static int serve(struct service *s)
{
    struct logger_config config = {.fd = STDERR_FILENO,
        .format = s->options.log_format,
        .level = s->options.log_level,
        .repeats_per_s = REPEATS_PER_S};
    s->logger = logger_new(&config);
    if (s->logger == NULL || !catch_signals(s)) {
        return 1;
    }
    raise_descriptors(s);
    int status = start_redis(s);
    if (status == 0) {
        status = start_storage(s) && start_server(s) ? run(s) : 1;
    }
    shut_down(s);
    log_info(s->logger, "stopped", log_int("status", status));
    return status;
}

/* Large blocks (bodies, flushes) go back to the system when they are freed.  Left alone, glibc
 * takes the first ones that are freed as a reason to keep such blocks for ever: 33 MiB resident
 * instead of 27 with a full cache and requests of 10,000 events. */
static void give_memory_back(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
#endif
}

int serve_main(int argc, char **argv)
{
    give_memory_back();
    json_memory_watch();
    struct service *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return 1;
    }
    s->signal_fd = s->notice_fd = -1;
    s->argc = argc;
    s->argv = argv;
    int status = read_options(s, argc, argv);
    if (status == 0) {
        status = serve(s);
    }
    logger_free(s->logger);
    tokens_close(s->tokens);
    options_release(&s->options);
    if (s->signal_fd >= 0) {
        close(s->signal_fd);
    }
    if (s->notice_fd >= 0) {
        close(s->notice_fd);
    }
    free(s);
    return status;
}
