#include "service/redis/redis_mend.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/redis/aof_scan.h"
#include "service/redis/process.h"

#define FILES     "appendonlydir/"
#define MANIFEST  FILES "appendonly.aof.manifest"
#define NAME_SIZE 256 /* of a file, with its NUL */

/* The name of the file that Redis wrote to last, by lines `file NAME seq N type i`.  False: there
 * is none, so only the base can be damaged, which redis-check-aof refuses to cut. */
static bool last_file(const char *manifest, char name[static NAME_SIZE])
{
    char line[NAME_SIZE + 64], file[NAME_SIZE], type;
    bool found = false;
    FILE *in = fopen(manifest, "re");
    while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
        if (sscanf(line, "file %255s seq %*d type %c", file, &type) == 2 && type == 'i') {
            (void)snprintf(name, NAME_SIZE, "%s", file);
            found = true;
        }
    }
    if (in != NULL) {
        (void)fclose(in);
    }
    return found;
}

static int64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

/* False: the file @path is damaged where redis-check-aof must not cut.  A file that is missing is
 * found out by redis-check-aof. */
static bool may_be_cut(const char *path, const char *name, char *error, size_t room)
{
    int64_t at;
    if (aof_scan(path, &at) || (at < 0 && errno == ENOENT)) {
        return true;
    }
    if (at < 0) {
        (void)snprintf(error, room, "cannot read " FILES "%s: %s", name, strerror(errno));
    } else {
        (void)snprintf(error, room,
            FILES "%s is damaged at byte %" PRId64 " of %" PRId64
                  ": restore a backup; redis-check-aof --fix would throw away what is behind",
            name, at, size_of(path));
    }
    return false;
}

/* Run redis-check-aof. */
static bool check(const char *dir, const char *server, const char *log, const char *manifest,
    char *error, size_t room)
{
    const char *const argv[] = {"redis-check-aof", "--fix", manifest, NULL};
    struct process_spec spec = {
        .program = server, .argv = argv, .dir = dir, .output = log, .input = "y\n"};
    struct process process;
    if (!process_start(&spec, &process, error, room)) {
        return false;
    }
    (void)process_end(process.pidfd, 0, INT64_MAX);
    siginfo_t end = {.si_pid = 0};
    bool reaped = waitid(P_PIDFD, (id_t)process.pidfd, &end, WEXITED) == 0;
    (void)close(process.pidfd);
    if (reaped && end.si_code == CLD_EXITED && end.si_status == 0) {
        return true;
    }
    (void)snprintf(error, room, "redis-check-aof cannot mend the append-only file: see %s", log);
    return false;
}

bool redis_mend(const char *dir, const char *server, const char *log, int64_t *ret_cut, char *error,
    size_t room)
{
    char manifest[PATH_MAX + sizeof(MANIFEST) + 1], path[PATH_MAX + sizeof(FILES) + NAME_SIZE];
    char name[NAME_SIZE];
    *ret_cut = 0;
    (void)snprintf(manifest, sizeof(manifest), "%s/" MANIFEST, dir);
    if (access(manifest, F_OK) != 0) {
        return true; /* nothing has been written here */
    }
    if (!last_file(manifest, name)) {
        return check(dir, server, log, manifest, error, room);
    }
    (void)snprintf(path, sizeof(path), "%s/" FILES "%s", dir, name);
    int64_t before = size_of(path);
    bool ok = may_be_cut(path, name, error, room) && check(dir, server, log, manifest, error, room);
    *ret_cut = before - size_of(path);
    return ok;
}
