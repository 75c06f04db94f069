#include "service/redis/redis_orphan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "service/options/option_value.h"
#include "service/redis/process.h"
#include "storage/base/clock.h"

#define NAME_MAX_BYTES 15 /* the kernel cuts /proc/PID/comm to so many */
/* Once the first thread of a killed process has ended, the process has no working directory, so it
 * cannot be told whose the process was.  But its socket answers until the last thread has ended. */
#define END_WAIT_MS  1000
#define END_AGAIN_NS 10000000

/* Read the first line of a small file, without the line's end.  Empty: there is none. */
static void read_text(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, room - 1) : -1;
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
}

static pid_t pid_of_file(const char *dir)
{
    char path[PATH_MAX + 16], text[32];
    (void)snprintf(path, sizeof(path), "%s/redis.pid", dir);
    read_text(path, text, sizeof(text));
    int64_t pid;
    if (!option_parse_integer(text, &pid) || pid <= 1 || pid > INT_MAX) {
        return 0;
    }
    return (pid_t)pid;
}

/* The pid of the process that listens on @dir's socket.  0: no process listens.  -1: one listens
 * that has no pid here, as in another container, or that does not accept. */
static pid_t pid_of_socket(const char *dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {.pid = 0};
    socklen_t size = sizeof(peer);
    pid_t pid = 0;
    int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/redis.sock", dir);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || n < 0 || (size_t)n >= sizeof(address.sun_path)) {
        goto out;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        pid = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid > 0 ? peer.pid
                                                                                         : -1;
    } else if (errno == EAGAIN) { /* the backlog is full: a process listens and does not accept */
        pid = -1;
    }
out:
    if (fd >= 0) {
        (void)close(fd);
    }
    return pid;
}

/* Is @pid a redis-server by its name, or by that of @server's file, and is @dir its working
 * directory? */
static bool is_server_in(pid_t pid, const char *server, const char *dir)
{
    char path[64], name[64];
    const char *slash = strrchr(server, '/');
    const char *file = slash != NULL ? slash + 1 : server;
    (void)snprintf(path, sizeof(path), "/proc/%ld/comm", (long)pid);
    read_text(path, name, sizeof(name));
    if (strcmp(name, "redis-server") != 0 && strncmp(name, file, NAME_MAX_BYTES) != 0) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "/proc/%ld/cwd", (long)pid);
    struct stat theirs, ours;
    return stat(path, &theirs) == 0 && stat(dir, &ours) == 0 && theirs.st_dev == ours.st_dev &&
           theirs.st_ino == ours.st_ino;
}

enum found { FOUND_OTHER, FOUND_ENDED, FOUND_STUBBORN };

/* End @pid if it is an orphan of @dir. */
static enum found end_orphan(
    pid_t pid, const char *dir, const char *server, int patience_ms, struct orphan *ret)
{
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) {
        return FOUND_OTHER;
    }
    enum found found = FOUND_OTHER;
    bool forced = false;
    /* If the process is alive after the check, the pidfd names the process that was checked. */
    if (!is_server_in(pid, server, dir) || process_end(pidfd, 0, 0)) {
        goto out;
    }
    if (!process_end(pidfd, SIGTERM, monotonic_ms() + patience_ms)) {
        forced = true;
        if (!process_end(pidfd, SIGKILL, monotonic_ms() + PROCESS_KILL_MS)) {
            found = FOUND_STUBBORN;
            goto out;
        }
    }
    *ret = (struct orphan){pid, forced};
    found = FOUND_ENDED;
out:
    (void)close(pidfd);
    return found;
}

/* End the process that listens on @dir's socket, if that is an orphan.  *ret_pid: the process that
 * was found listening last, as pid_of_socket() has it. */
static enum found end_listener(
    const char *dir, const char *server, int patience_ms, struct orphan *ret, pid_t *ret_pid)
{
    int64_t until_ms = monotonic_ms() + END_WAIT_MS;
    while ((*ret_pid = pid_of_socket(dir)) != 0) {
        enum found found =
            *ret_pid > 0 ? end_orphan(*ret_pid, dir, server, patience_ms, ret) : FOUND_OTHER;
        if (found != FOUND_OTHER || monotonic_ms() >= until_ms) {
            return found;
        }
        (void)nanosleep(&(struct timespec){0, END_AGAIN_NS}, NULL);
    }
    return FOUND_ENDED;
}

bool redis_orphan_end(const char *dir, const char *server, int patience_ms, struct orphan *ret,
    char *error, size_t room)
{
    struct orphan orphan = {.pid = 0};
    pid_t pid = pid_of_file(dir);
    enum found found = pid > 0 ? end_orphan(pid, dir, server, patience_ms, &orphan) : FOUND_OTHER;
    if (found != FOUND_STUBBORN) {
        found = end_listener(dir, server, patience_ms, &orphan, &pid);
    }
    if (found == FOUND_OTHER) {
        (void)snprintf(error, room,
            "a server that is not ours answers on %s/redis.sock (process %ld): stop it first", dir,
            (long)pid);
        return false;
    }
    if (found == FOUND_STUBBORN) {
        (void)snprintf(error, room, "the redis-server left in %s (process %ld) cannot be ended",
            dir, (long)pid);
        return false;
    }
    *ret = orphan;
    return true;
}
