/* moved_clock.c - a library that is loaded before a program, and moves the program's clock.
 *
 *	LD_PRELOAD=moved_clock.so MOVED_CLOCK=FILE redis-server ..
 *
 * FILE holds a struct moved, which the test maps too and may change at any time
 * (tests/integration/lib/clock.py).  Only the time of day is moved: what is measured by the
 * monotonic clock, as timeouts are, stays true.
 *
 * libfaketime does the same.  It reads its file anew for each look at the clock, which makes a
 * command of Redis twenty times as dear.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* The file, in the machine's byte order. */
struct moved {
    _Atomic int64_t offset_ns; /* to be added to the machine's time.. */
    _Atomic int64_t still_ns;  /* ..but if this is not 0 it is the time, since 1970 */
};

static const struct moved *moved;
static int (*c_library)(clockid_t, struct timespec *);

/* Before this library's turn to begin, jemalloc asks for the time. */
static int true_clock(clockid_t id, struct timespec *ret)
{
    return c_library != NULL ? c_library(id, ret) : (int)syscall(SYS_clock_gettime, id, ret);
}

__attribute__((constructor)) static void load_file(void)
{
    const char *path = getenv("MOVED_CLOCK");
    c_library = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    if (path == NULL) {
        return;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*moved), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) {
        (void)fprintf(stderr, "moved_clock: %s: %s\n", path, strerror(errno));
        _exit(99);
    }
    (void)close(fd);
    moved = mapped;
}

static int64_t now_ns(void)
{
    struct timespec is;
    int64_t still_ns = moved == NULL ? 0 : atomic_load(&moved->still_ns);
    if (still_ns != 0) {
        return still_ns;
    }
    (void)true_clock(CLOCK_REALTIME, &is);
    return is.tv_sec * NS_PER_S + is.tv_nsec + (moved == NULL ? 0 : atomic_load(&moved->offset_ns));
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) {
        return true_clock(id, ret);
    }
    int64_t ns = now_ns();
    *ret = (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
    return 0;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    (void)zone;
    int64_t ns = now_ns();
    *ret = (struct timeval){.tv_sec = ns / NS_PER_S, .tv_usec = ns % NS_PER_S / 1000};
    return 0;
}

time_t time(time_t *ret)
{
    time_t now_s = now_ns() / NS_PER_S;
    if (ret != NULL) {
        *ret = now_s;
    }
    return now_s;
}
