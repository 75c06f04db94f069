#include "tests/oom/serving.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/serve.h"
#include "tests/oom/failing_alloc.h"
#include "tests/oom/service.h"

#define LISTEN_MS 30000 /* the machine may be busy */
#define END_MS    30000

struct order {
    unsigned long nth; /* 0: no allocation fails any more */
    unsigned long more;
};

static _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(2);
}

/* ---- the child ---- */

static void *obey(void *data)
{
    const struct serving *p = data;
    struct order order;
    while (read(p->orders, &order, sizeof(order)) == (ssize_t)sizeof(order)) {
        bool struck = false;
        if (order.nth > 0) {
            alloc_fail(order.nth, order.more);
        } else {
            struck = alloc_stop();
        }
        if (write(p->replies, &struck, sizeof(struck)) < 0) {
            break;
        }
    }
    return NULL;
}

/* The thread that obeys takes no signal, which are all for the main one. */
static void begin_obeying(struct serving *p)
{
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_BLOCK, &all, &before) != 0 ||
        pthread_create(&thread, NULL, obey, p) != 0 ||
        pthread_sigmask(SIG_SETMASK, &before, NULL) != 0) {
        give_up("a thread that obeys");
    }
}

static _Noreturn void serve(
    struct serving *p, int argc, char **argv, unsigned long nth, unsigned long more)
{
    begin_obeying(p);
    if (nth != SERVING_UNWATCHED) {
        alloc_watch();
    }
    if (nth > 0 && nth != SERVING_UNWATCHED) {
        alloc_fail(nth, more);
    }
    int status = serve_main(argc, argv);
    p->end->struck = alloc_stop();
    p->end->left = alloc_left(&p->end->number, &p->end->size);
    exit(status);
}

/* ---- the parent ---- */

/* The line on stdout says where it listens.  Without one it has ended, or is about to. */
static uint16_t read_port(int fd)
{
    char line[256];
    size_t n = 0;
    while (n < sizeof(line) - 1 && memchr(line, '\n', n) == NULL) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        ssize_t got =
            poll(&polled, 1, LISTEN_MS) > 0 ? read(fd, line + n, sizeof(line) - 1 - n) : 0;
        if (got <= 0) {
            break;
        }
        n += (size_t)got;
    }
    line[n] = '\0';
    const char *host = strstr(line, "http://");
    const char *port = host == NULL ? NULL : strchr(host + 7, ':');
    return port == NULL ? 0 : (uint16_t)strtoul(port + 1, NULL, 10);
}

void serving_start(struct serving *p, int argc, char **argv, const char *log, unsigned long nth,
    unsigned long more)
{
    static struct serving_end *end;
    int out[2];
    int orders[2];
    int replies[2];
    if (end == NULL) {
        end = mmap(NULL, sizeof(*end), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
    int log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (end == MAP_FAILED || log_fd < 0 || pipe2(out, O_CLOEXEC) != 0 ||
        pipe2(orders, O_CLOEXEC) != 0 || pipe2(replies, O_CLOEXEC) != 0) {
        give_up("a process");
    }
    *end = (struct serving_end){0};
    (void)fflush(stdout); /* or the child has it, too */
    pid_t pid = fork();
    if (pid < 0) {
        give_up("fork");
    }
    *p = (struct serving){
        pid, 0, pid == 0 ? orders[0] : orders[1], pid == 0 ? replies[1] : replies[0], end};
    if (pid == 0) {
        if (dup2(out[1], STDOUT_FILENO) < 0 || dup2(log_fd, STDERR_FILENO) < 0) {
            give_up("dup2");
        }
        (void)close(out[1]);
        serve(p, argc, argv, nth, more);
    }
    (void)close(out[1]);
    (void)close(orders[0]);
    (void)close(replies[1]);
    (void)close(log_fd);
    p->port = read_port(out[0]);
    (void)close(out[0]);
}

static bool order(struct serving *p, struct order order)
{
    bool struck = false;
    if (write(p->orders, &order, sizeof(order)) != (ssize_t)sizeof(order) ||
        read(p->replies, &struck, sizeof(struck)) != (ssize_t)sizeof(struck)) {
        fprintf(stderr, "the process that serves has ended by itself\n");
        exit(2);
    }
    return struck;
}

void serving_fail(struct serving *p, unsigned long nth, unsigned long more)
{
    (void)order(p, (struct order){nth, more});
}

bool serving_stop_failing(struct serving *p)
{
    return order(p, (struct order){0, 0});
}

int serving_wait(struct serving *p)
{
    int status = 0;
    pid_t ended = 0;
    for (int ms = 0; ended == 0 && ms < END_MS; ms++) {
        ended = waitpid(p->pid, &status, WNOHANG);
        if (ended == 0) {
            service_wait_ms(1);
        }
    }
    if (ended == 0) {
        (void)kill(p->pid, SIGKILL);
        ended = waitpid(p->pid, &status, 0);
    }
    (void)close(p->orders);
    (void)close(p->replies);
    return ended == p->pid && WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}
