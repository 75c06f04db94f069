#include "service/redis/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "service/redis/scheduler.h"
#include "storage/base/clock.h"

/* Our descriptors for the child lie above the descriptors that the child is to have. */
#define REPORT_FD 3
#define FIRST_FD  (REPORT_FD + 1)

#define POLL_AGAIN_NS 10000000

bool process_end(int pidfd, int signal, int64_t deadline_ms)
{
    if (signal != 0 && pidfd_send_signal(pidfd, signal, NULL, 0) != 0 && errno != ESRCH) {
        return false;
    }
    for (;;) {
        struct pollfd end = {.fd = pidfd, .events = POLLIN};
        int64_t left_ms = deadline_ms - monotonic_ms();
        int wait_ms = left_ms <= 0 ? 0 : left_ms < INT_MAX ? (int)left_ms : INT_MAX;
        int n = poll(&end, 1, wait_ms);
        if (n > 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) { /* ENOMEM: try again */
            (void)nanosleep(&(struct timespec){0, POLL_AGAIN_NS}, NULL);
        }
        if (n <= 0 && left_ms <= 0) {
            return false;
        }
    }
}

/* What the child needs from its parent.  This is made before the fork, where memory may still be
 * allocated. */
struct child {
    const struct process_spec *spec;
    const char *program;
    char *const *argv; /* the spec's, in the type that exec takes for history's sake */
    pid_t parent;
    int input, output, report; /* >= FIRST_FD */
};

static void reset_signals(void)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    /* This fails for SIGKILL, SIGSTOP and the C library's own signals: those need no reset. */
    for (int i = 1; i < NSIG; i++) {
        (void)sigaction(i, &by_default, NULL);
    }
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the child, between fork and exec.  So everything here must be async-signal-safe, as
 * glibc's execvp() is. */
static _Noreturn void become(const struct child *child)
{
    int report = child->report, fault;
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) {
        goto fail;
    }
    if (getppid() != child->parent) { /* the parent died before the prctl: no signal will come */
        _exit(1);
    }
    (void)umask(077);
    if (setpgid(0, 0) != 0 || chdir(child->spec->dir) != 0 ||
        dup2(child->input, STDIN_FILENO) < 0 || dup2(child->output, STDOUT_FILENO) < 0 ||
        dup2(child->output, STDERR_FILENO) < 0 || dup3(report, REPORT_FD, O_CLOEXEC) < 0) {
        goto fail;
    }
    report = REPORT_FD;
    if (close_range(FIRST_FD, UINT_MAX, 0) != 0) {
        goto fail;
    }
    reset_signals();
    if (child->spec->short_slices) {
        (void)scheduler_ask_short_slices();
    }
    (void)execvp(child->program, child->argv);
fail:
    fault = errno;
    (void)!write(report, &fault, sizeof(fault)); /* a failure cannot be told to anybody */
    _exit(127);
}

static void close_if(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* A copy of @fd above the child's own descriptors; @fd is closed.  -1 if @fd is -1, or if there is
 * no room. */
static int lift(int fd)
{
    int lifted = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD) : -1;
    int saved = errno;
    close_if(fd);
    errno = saved;
    return lifted;
}

/* Fork while all signals wait, so that no handler of ours runs in the child. */
static pid_t fork_quietly(const struct child *child)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        become(child);
    }
    int saved = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = saved;
    return pid;
}

/* The child's errno, if the child failed; 0 when exec closed the pipe. */
static int read_report(int fd)
{
    int fault = 0;
    ssize_t n;
    do {
        n = read(fd, &fault, sizeof(fault));
    } while (n < 0 && errno == EINTR);
    return n == sizeof(fault) ? fault : 0;
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        ;
    }
}

/* A descriptor from which @text can be read, or nothing where @text is NULL.  -1: see errno. */
static int open_input(const char *text)
{
    int fd =
        text == NULL ? open("/dev/null", O_RDONLY | O_CLOEXEC) : memfd_create("input", MFD_CLOEXEC);
    if (text != NULL && fd >= 0 &&
        (write(fd, text, strlen(text)) < 0 || lseek(fd, 0, SEEK_SET) != 0)) {
        close_if(fd);
        return -1;
    }
    return fd;
}

bool process_start(const struct process_spec *spec, struct process *ret, char *error, size_t room)
{
    struct child child = {.spec = spec,
        .program = spec->program != NULL ? spec->program : spec->argv[0],
        .parent = getpid(),
        .input = -1,
        .output = -1,
        .report = -1};
    const char *step = "cannot prepare";
    int pipe_fds[2] = {-1, -1}, pidfd = -1, fault = 0;
    pid_t pid = -1;
    memcpy(&child.argv, &spec->argv, sizeof(child.argv));
    if (pipe2(pipe_fds, O_CLOEXEC) != 0 || (child.report = lift(pipe_fds[1])) < 0 ||
        (child.input = lift(open_input(spec->input))) < 0 ||
        (child.output = lift(open(
             spec->output, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600))) < 0) {
        goto fail;
    }
    step = "cannot start";
    pid = fork_quietly(&child);
    if (pid < 0 || (pidfd = pidfd_open(pid, 0)) < 0) {
        goto fail;
    }
    close_if(child.report); /* as long as this is open, the pipe has no end */
    child.report = -1;
    step = PROCESS_CANNOT_RUN;
    if ((errno = read_report(pipe_fds[0])) != 0) {
        goto fail;
    }
    *ret = (struct process){pid, pidfd};
    goto out;
fail:
    fault = errno;
    (void)snprintf(error, room, "%s %s: %s", step, child.program, strerror(fault));
    if (pid > 0) {
        (void)kill(pid, SIGKILL); /* a child that is not reaped keeps its pid */
        reap(pid);
    }
    close_if(pidfd);
    pidfd = -1;
out:
    close_if(pipe_fds[0]);
    close_if(child.report);
    close_if(child.input);
    close_if(child.output);
    errno = fault;
    return pidfd >= 0;
}
