#include "service/redis/redis_mend.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/redis/process.h"

#define MANIFEST "appendonlydir/appendonly.aof.manifest"

bool redis_mend(const char *dir, const char *server, const char *log, char *error, size_t room)
{
    char manifest[PATH_MAX + sizeof(MANIFEST) + 1];
    (void)snprintf(manifest, sizeof(manifest), "%s/" MANIFEST, dir);
    if (access(manifest, F_OK) != 0) {
        return true; /* nothing has been written here */
    }
    const char *const argv[] = {"redis-check-aof", "--fix", manifest, NULL};
    struct process_spec spec = {
        .program = server, .argv = argv, .dir = dir, .output = log, .input = "y\n"};
    struct process check;
    if (!process_start(&spec, &check, error, room)) {
        return false;
    }
    (void)process_end(check.pidfd, 0, INT64_MAX);
    siginfo_t end = {.si_pid = 0};
    bool reaped = waitid(P_PIDFD, (id_t)check.pidfd, &end, WEXITED) == 0;
    (void)close(check.pidfd);
    if (reaped && end.si_code == CLD_EXITED && end.si_status == 0) {
        return true;
    }
    (void)snprintf(error, room, "redis-check-aof cannot mend the append-only file: see %s", log);
    return false;
}
