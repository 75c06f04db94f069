#include "service/redis/data_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "storage/base/clock.h"

/* Redis ends when it cannot append.  That happens while a few blocks are still free. */
#define FULL_BYTES (256 * 1024)

/* A tallyd that was killed while it started Redis has left a process that is not Redis yet.  That
 * process has the lock until it becomes Redis, or sees that its parent is gone. */
#define LOCK_WAIT_MS  1000
#define LOCK_AGAIN_NS 10000000

/* Read the pid that the lock's holder wrote into the file.  The pid is only for the message, so any
 * fault gives an empty text. */
static void read_holder(int fd, char *text, size_t room)
{
    char digits[16];
    ssize_t n = pread(fd, digits, sizeof(digits) - 1, 0);
    text[0] = '\0';
    if (n <= 0) {
        return;
    }
    digits[n] = '\0';
    digits[strspn(digits, "0123456789")] = '\0';
    if (digits[0] != '\0') {
        (void)snprintf(text, room, " (process %s)", digits);
    }
}

/* Lock @fd, and wait up to LOCK_WAIT_MS.  False, with errno: another process keeps the lock, or @fd
 * cannot be locked. */
static bool lock_soon(int fd)
{
    int64_t until_ms = monotonic_ms() + LOCK_WAIT_MS;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int fault = errno;
        if ((fault != EWOULDBLOCK && fault != EINTR) || monotonic_ms() >= until_ms) {
            errno = fault;
            return false;
        }
        (void)nanosleep(&(struct timespec){0, LOCK_AGAIN_NS}, NULL);
    }
    return true;
}

/* Lock @dir.  Returns the lock's descriptor.  -1, and @error: another process holds the lock, or
 * the lock cannot be made. */
static int lock(const char *dir, char *error, size_t room)
{
    char path[PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/tallyd.lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        (void)snprintf(error, room, "cannot open %s: %s%s", path, strerror(errno),
            errno == EACCES ? "; the data directory must belong to the user that tallyd runs as"
                            : "");
        return -1;
    }
    if (!lock_soon(fd)) {
        if (errno == EWOULDBLOCK) {
            char holder[40];
            read_holder(fd, holder, sizeof(holder));
            (void)snprintf(
                error, room, "the data directory %s is in use by another tallyd%s", dir, holder);
        } else {
            (void)snprintf(error, room, "cannot lock %s: %s", path, strerror(errno));
        }
        (void)close(fd);
        return -1;
    }
    char pid[16];
    int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
    /* The pid only helps people: a full disk is no reason not to start. */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)n, 0) != n) {
        errno = 0;
    }
    return fd;
}

bool data_dir_open(struct data_dir *dir, const char *path, char *error, size_t room)
{
    dir->lock_fd = -1;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        (void)snprintf(
            error, room, "cannot create the data directory %s: %s", path, strerror(errno));
        return false;
    }
    char resolved[PATH_MAX];
    struct stat status;
    if (realpath(path, resolved) == NULL || stat(resolved, &status) != 0) {
        (void)snprintf(error, room, "cannot use the data directory %s: %s", path, strerror(errno));
        return false;
    }
    if (!S_ISDIR(status.st_mode)) {
        (void)snprintf(error, room, "the data directory %s is no directory", path);
        return false;
    }
    int fd = lock(resolved, error, room);
    if (fd < 0) {
        return false;
    }
    (void)snprintf(dir->path, sizeof(dir->path), "%s", resolved);
    dir->lock_fd = fd;
    return true;
}

bool data_dir_full(const struct data_dir *dir)
{
    struct statvfs fs;
    if (statvfs(dir->path, &fs) != 0) {
        return false;
    }
    uint64_t blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail; /* only root may use some blocks */
    return blocks * fs.f_frsize < FULL_BYTES || (fs.f_files > 0 && fs.f_ffree == 0);
}

void data_dir_close(struct data_dir *dir)
{
    if (dir->lock_fd >= 0) {
        (void)close(dir->lock_fd);
    }
    dir->lock_fd = -1;
}
