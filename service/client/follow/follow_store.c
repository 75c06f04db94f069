#include "service/client/follow/follow_store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "handlers/reply/json_memory.h"

#define MODE 0600

/* A process that was killed a moment ago has its lock until the kernel has ended the process. */
#define LOCK_TRIES    40
#define LOCK_PAUSE_NS (25 * 1000000L)

static bool store_fail(struct follow_store *store, const char *verb)
{
    (void)snprintf(
        store->error, sizeof(store->error), "cannot %s %s: %s", verb, store->path, strerror(errno));
    return false;
}

/* Has another file taken the place of the one that is open as @fd, while its lock was waited
 * for? */
static bool is_replaced(const char *path, int fd)
{
    struct stat there, mine;
    return stat(path, &there) != 0 || fstat(fd, &mine) != 0 || there.st_ino != mine.st_ino ||
           there.st_dev != mine.st_dev;
}

/* Open and lock the file, which is created if there is none. */
static bool store_lock(struct follow_store *store)
{
    for (int tries = 1;; tries++) {
        store->fd = open(store->path, O_RDWR | O_CREAT | O_CLOEXEC, MODE);
        if (store->fd < 0) {
            return store_fail(store, "open");
        }
        if (flock(store->fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK && tries < LOCK_TRIES) {
                (void)nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
                follow_store_close(store);
                continue;
            }
            if (errno == EWOULDBLOCK) {
                (void)snprintf(store->error, sizeof(store->error),
                    "%s is in use: another `tallyd import --follow` has it", store->path);
            } else {
                (void)store_fail(store, "lock");
            }
            follow_store_close(store);
            return false;
        }
        if (!is_replaced(store->path, store->fd)) {
            return true;
        }
        follow_store_close(store);
    }
}

static bool store_read(struct follow_store *store, struct follow_state *ret_state, bool *ret_is_new)
{
    char text[FOLLOW_STATE_BYTES];
    size_t n = 0;
    ssize_t got = 1;
    while (got > 0 && n < sizeof(text)) {
        got = pread(store->fd, text + n, sizeof(text) - n, (off_t)n);
        if (got < 0) {
            return store_fail(store, "read");
        }
        n += (size_t)got;
    }
    struct follow_state empty = {0};
    *ret_is_new = n == 0;
    if (n == 0) {
        *ret_state = empty;
        return true;
    }
    json_memory_begin(false);
    bool is_state = follow_state_parse((struct slice){text, n}, ret_state);
    if (json_memory_failed()) { /* the state may lack a digit, or look like none */
        errno = ENOMEM;
        return store_fail(store, "read");
    }
    if (is_state) {
        return true;
    }
    (void)snprintf(store->error, sizeof(store->error),
        "%s is no state of this tallyd's import --follow; without it, the log counts from its "
        "beginning",
        store->path);
    return false;
}

bool follow_store_open(
    struct follow_store *ret, const char *path, struct follow_state *ret_state, bool *ret_is_new)
{
    *ret = (struct follow_store){.path = path, .fd = -1};
    if (!store_lock(ret)) {
        return false;
    }
    if (store_read(ret, ret_state, ret_is_new)) {
        return true;
    }
    follow_store_close(ret);
    return false;
}

static bool write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, text, n);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        text += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    return fsync(fd) == 0;
}

/* A rename is on the disk when its directory is. */
static bool sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    (void)snprintf(directory, sizeof(directory), "%.*s",
        slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool synced = fsync(fd) == 0;
    (void)close(fd);
    return synced;
}

bool follow_store_save(struct follow_store *store, const struct follow_state *state)
{
    char text[FOLLOW_STATE_BYTES], beside[PATH_MAX];
    size_t n = follow_state_print(state, text);
    int length = snprintf(beside, sizeof(beside), "%s.new", store->path);
    if (n == 0 || length < 0 || (size_t)length >= sizeof(beside)) {
        errno = n == 0 ? ENOMEM : ENAMETOOLONG;
        return store_fail(store, "write");
    }
    int fd = open(beside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, MODE);
    if (fd < 0) {
        return store_fail(store, "write");
    }
    /* The new file is locked before it gets the name, so the name always leads to a locked file. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 || !write_all(fd, text, n) ||
        rename(beside, store->path) != 0 || !sync_directory(store->path)) {
        int saved = errno;
        (void)close(fd);
        errno = saved;
        return store_fail(store, "write");
    }
    (void)close(store->fd);
    store->fd = fd;
    return true;
}

void follow_store_close(struct follow_store *store)
{
    if (store->fd >= 0) {
        (void)close(store->fd);
    }
    store->fd = -1;
}
