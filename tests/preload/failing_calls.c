/* failing_calls.c - a library that is loaded before a program, and makes a system call of it fail.
 *
 *	LD_PRELOAD=failing_calls.so FAILING_CALLS=FILE FAILING_CALLS_OF=tallyd tallyd serve ..
 *
 * FILE holds a struct plan, which the test maps too and may change at any time
 * (tests/integration/lib/failing_calls.py).  Only processes of the named program follow it, so that
 * its children may be spared, or meant.
 *
 * A plan names a call, and what it works on where this makes a difference: "read unix" is a read()
 * from a Unix socket.  Of these calls the nth, and so many behind it, fail without being made; or
 * they are made with half of the bytes; or they are delayed.  close() is made in any case, as Linux
 * closes whatever it returns.
 *
 * Only calls that the program and its libraries make by the C library's functions pass here; what
 * the C library does by itself (stdio, getaddrinfo, malloc) does not.  A function of libmicrohttpd
 * that finds no memory is among them: nothing else makes an answer fail.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_MAX_BYTES 32

/* The file, in the machine's byte order.  The test writes `armed` last. */
struct plan {
    _Atomic uint32_t armed;
    _Atomic int32_t nth;       /* the nth call of the name from now on.. */
    _Atomic int32_t times;     /* ..and so many in all */
    _Atomic int32_t error;     /* errno; 0: it does not fail */
    _Atomic uint32_t half;     /* it is made with half of the bytes */
    _Atomic uint32_t delay_ms; /* before it is made, or fails */
    _Atomic uint32_t seen;     /* calls of the name since */
    _Atomic uint32_t fired;    /* of those, calls that were harmed */
    char name[NAME_MAX_BYTES];
};

/* What becomes of a call. */
struct fate {
    bool fails;
    bool half;
};

static struct plan *plan;

/* ---- the plan ---- */

__attribute__((constructor)) static void load_plan(void)
{
    const char *path = getenv("FAILING_CALLS");
    const char *program = getenv("FAILING_CALLS_OF");
    if (path == NULL || program == NULL || strcmp(program_invocation_short_name, program) != 0) {
        return;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *mapped =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        (void)fprintf(stderr, "failing_calls: %s: %s\n", path, strerror(errno));
        _exit(99);
    }
    (void)close(fd);
    plan = mapped;
}

/* What @fd is, as a plan names it. */
static const char *kind_of(int fd)
{
    struct stat stat;
    int family = 0;
    socklen_t n = sizeof(family);
    if (fstat(fd, &stat) != 0) {
        return "none";
    }
    if (S_ISSOCK(stat.st_mode)) {
        (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &n);
        return family == AF_UNIX ? "unix" : "inet";
    }
    return S_ISREG(stat.st_mode) ? "file" : S_ISFIFO(stat.st_mode) ? "pipe" : "other";
}

/* Is it the planned call?  @fd: -1 for calls whose name says all. */
static bool is_planned(const char *call, int fd)
{
    size_t n = strlen(call);
    if (strncmp(plan->name, call, n) != 0) {
        return false;
    }
    return fd < 0 ? plan->name[n] == '\0'
                  : plan->name[n] == ' ' && strcmp(plan->name + n + 1, kind_of(fd)) == 0;
}

static struct fate fate_of(const char *call, int fd)
{
    struct fate fate = {false, false};
    int saved = errno;
    if (plan == NULL || atomic_load(&plan->armed) == 0 || !is_planned(call, fd)) {
        errno = saved;
        return fate;
    }
    (void)atomic_fetch_add(&plan->seen, 1);
    int32_t left = atomic_fetch_sub(&plan->nth, 1) - 1;
    if (left > 0 || left <= -atomic_load(&plan->times)) {
        errno = saved;
        return fate;
    }
    (void)atomic_fetch_add(&plan->fired, 1);
    uint32_t ms = atomic_load(&plan->delay_ms);
    if (ms > 0) {
        (void)nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
    }
    int error = atomic_load(&plan->error);
    fate = (struct fate){error != 0, atomic_load(&plan->half) != 0};
    errno = error != 0 ? error : saved;
    return fate;
}

/* The function behind ours. */
static void *behind(_Atomic(void *) *known, const char *name)
{
    void *found = atomic_load(known);
    if (found == NULL) {
        found = dlsym(RTLD_NEXT, name);
        if (found == NULL) {
            abort();
        }
        atomic_store(known, found);
    }
    return found;
}

static size_t at_most(struct fate fate, size_t n)
{
    return fate.half && n > 1 ? n / 2 : n;
}

/* The symbol's address as a function of our own type; ISO C has no cast for that. */
#define BEHIND(call)                                                                               \
    static _Atomic(void *) known_##call;                                                           \
    union {                                                                                        \
        void *address;                                                                             \
        __typeof__(&call) function;                                                                \
    } real = {.address = behind(&known_##call, #call)}

/* ---- calls on bytes ---- */

ssize_t read(int fd, void *bytes, size_t n)
{
    BEHIND(read);
    struct fate fate = fate_of("read", fd);
    return fate.fails ? -1 : real.function(fd, bytes, at_most(fate, n));
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    BEHIND(write);
    struct fate fate = fate_of("write", fd);
    return fate.fails ? -1 : real.function(fd, bytes, at_most(fate, n));
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    BEHIND(recv);
    struct fate fate = fate_of("recv", fd);
    return fate.fails ? -1 : real.function(fd, bytes, at_most(fate, n), flags);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    BEHIND(send);
    struct fate fate = fate_of("send", fd);
    return fate.fails ? -1 : real.function(fd, bytes, at_most(fate, n), flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    BEHIND(sendmsg);
    return fate_of("sendmsg", fd).fails ? -1 : real.function(fd, message, flags);
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
    BEHIND(writev);
    return fate_of("writev", fd).fails ? -1 : real.function(fd, parts, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    BEHIND(pwrite);
    struct fate fate = fate_of("pwrite", fd);
    return fate.fails ? -1 : real.function(fd, bytes, at_most(fate, n), at);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    BEHIND(pread);
    struct fate fate = fate_of("pread", fd);
    return fate.fails ? -1 : real.function(fd, bytes, at_most(fate, n), at);
}

int eventfd_read(int fd, eventfd_t *ret)
{
    BEHIND(eventfd_read);
    return fate_of("eventfd_read", -1).fails ? -1 : real.function(fd, ret);
}

int fsync(int fd)
{
    BEHIND(fsync);
    return fate_of("fsync", -1).fails ? -1 : real.function(fd);
}

int fdatasync(int fd)
{
    BEHIND(fdatasync);
    return fate_of("fdatasync", -1).fails ? -1 : real.function(fd);
}

ssize_t getrandom(void *bytes, size_t n, unsigned flags)
{
    BEHIND(getrandom);
    struct fate fate = fate_of("getrandom", -1);
    return fate.fails ? -1 : real.function(bytes, at_most(fate, n), flags);
}

/* ---- waiting ---- */

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    BEHIND(poll);
    return fate_of("poll", -1).fails ? -1 : real.function(fds, n, timeout);
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    BEHIND(epoll_wait);
    return fate_of("epoll_wait", -1).fails ? -1 : real.function(fd, events, n, timeout);
}

/* Linux may refuse to add, for want of memory.  What is there it changes and removes. */
int epoll_ctl(int fd, int what, int of, struct epoll_event *event)
{
    BEHIND(epoll_ctl);
    bool fails = what == EPOLL_CTL_ADD && fate_of("epoll_ctl", -1).fails;
    return fails ? -1 : real.function(fd, what, of, event);
}

pid_t waitpid(pid_t pid, int *ret_status, int options)
{
    BEHIND(waitpid);
    return fate_of("waitpid", -1).fails ? -1 : real.function(pid, ret_status, options);
}

/* ---- descriptors that come and go ---- */

int socket(int domain, int type, int protocol)
{
    BEHIND(socket);
    return fate_of("socket", -1).fails ? -1 : real.function(domain, type, protocol);
}

int connect(int fd, const struct sockaddr *address, socklen_t n)
{
    BEHIND(connect);
    return fate_of("connect", fd).fails ? -1 : real.function(fd, address, n);
}

int bind(int fd, const struct sockaddr *address, socklen_t n)
{
    BEHIND(bind);
    return fate_of("bind", -1).fails ? -1 : real.function(fd, address, n);
}

int listen(int fd, int n)
{
    BEHIND(listen);
    return fate_of("listen", -1).fails ? -1 : real.function(fd, n);
}

int accept4(int fd, struct sockaddr *ret, socklen_t *ret_n, int flags)
{
    BEHIND(accept4);
    return fate_of("accept4", -1).fails ? -1 : real.function(fd, ret, ret_n, flags);
}

int shutdown(int fd, int how)
{
    BEHIND(shutdown);
    return fate_of("shutdown", fd).fails ? -1 : real.function(fd, how);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
    BEHIND(setsockopt);
    return fate_of("setsockopt", fd).fails ? -1 : real.function(fd, level, name, value, n);
}

/* kind_of() asks for SO_DOMAIN, which nobody else does. */
int getsockopt(int fd, int level, int name, void *restrict value, socklen_t *restrict n)
{
    BEHIND(getsockopt);
    bool fails = name != SO_DOMAIN && fate_of("getsockopt", fd).fails;
    return fails ? -1 : real.function(fd, level, name, value, n);
}

int eventfd(unsigned count, int flags)
{
    BEHIND(eventfd);
    return fate_of("eventfd", -1).fails ? -1 : real.function(count, flags);
}

int epoll_create1(int flags)
{
    BEHIND(epoll_create1);
    return fate_of("epoll_create1", -1).fails ? -1 : real.function(flags);
}

int signalfd(int fd, const sigset_t *set, int flags)
{
    BEHIND(signalfd);
    return fate_of("signalfd", -1).fails ? -1 : real.function(fd, set, flags);
}

int pipe2(int fds[2], int flags)
{
    BEHIND(pipe2);
    return fate_of("pipe2", -1).fails ? -1 : real.function(fds, flags);
}

int open(const char *path, int flags, ...)
{
    BEHIND(open);
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    bool writes = (flags & O_ACCMODE) != O_RDONLY;
    bool waits = (flags & O_NONBLOCK) == 0;
    bool fails = fate_of("open", -1).fails || (writes && fate_of("open to write", -1).fails) ||
                 (!waits && fate_of("open without waiting", -1).fails);
    return fails ? -1 : real.function(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return open(path, flags, mode);
}

int rename(const char *from, const char *to)
{
    BEHIND(rename);
    return fate_of("rename", -1).fails ? -1 : real.function(from, to);
}

int flock(int fd, int what)
{
    BEHIND(flock);
    return fate_of("flock", -1).fails ? -1 : real.function(fd, what);
}

/* kind_of() asks by fstat(), which is not among these. */
int stat(const char *restrict path, struct stat *restrict ret)
{
    BEHIND(stat);
    return fate_of("stat", -1).fails ? -1 : real.function(path, ret);
}

DIR *opendir(const char *path)
{
    BEHIND(opendir);
    return fate_of("opendir", -1).fails ? NULL : real.function(path);
}

struct dirent *readdir(DIR *directory)
{
    BEHIND(readdir);
    return fate_of("readdir", -1).fails ? NULL : real.function(directory);
}

char *realpath(const char *restrict path, char *restrict ret)
{
    BEHIND(realpath);
    return fate_of("realpath", -1).fails ? NULL : real.function(path, ret);
}

char *__realpath_chk(const char *path, char *ret, size_t n); /* of a hardened program */

char *__realpath_chk(const char *path, char *ret, size_t n)
{
    BEHIND(__realpath_chk);
    return fate_of("realpath", -1).fails ? NULL : real.function(path, ret, n);
}

int close(int fd)
{
    BEHIND(close);
    bool fails = plan != NULL && fate_of("close", fd).fails;
    int error = errno;
    int done = real.function(fd);
    errno = fails ? error : errno;
    return fails ? -1 : done;
}

/* ---- processes and threads ---- */

pid_t fork(void)
{
    BEHIND(fork);
    return fate_of("fork", -1).fails ? -1 : real.function();
}

/* It returns the error. */
int pthread_create(
    pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *), void *data)
{
    BEHIND(pthread_create);
    return fate_of("pthread_create", -1).fails ? errno : real.function(ret, attributes, run, data);
}

/* ---- libmicrohttpd ---- */

void *MHD_create_response_from_buffer(size_t n, void *bytes, int mode);

void *MHD_create_response_from_buffer(size_t n, void *bytes, int mode)
{
    BEHIND(MHD_create_response_from_buffer);
    return fate_of("MHD_create_response_from_buffer", -1).fails ? NULL
                                                                : real.function(n, bytes, mode);
}
