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
#define NAME_SIZE 256 /* bytes of a file's name, with the NUL */

/* The files that Redis reads at its start, by lines `file NAME seq N type T`. */
struct files {
    char base[NAME_SIZE], last[NAME_SIZE]; /* `last` was written to last; "": there is none */
    unsigned n_written;                    /* files that were written after the base */
};

static void read_manifest(const char *manifest, struct files *ret)
{
    char line[NAME_SIZE + 64], file[NAME_SIZE], type;
    FILE *in = fopen(manifest, "re");
    *ret = (struct files){.n_written = 0};
    while (in != NULL && fgets(line, sizeof(line), in) != NULL) {
        if (sscanf(line, "file %255s seq %*d type %c", file, &type) != 2) {
            continue;
        }
        if (type == 'b') {
            memcpy(ret->base, file, NAME_SIZE);
        } else if (type == 'i') {
            memcpy(ret->last, file, NAME_SIZE);
            ret->n_written++;
        }
    }
    if (in != NULL) {
        (void)fclose(in);
    }
}

static int64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (int64_t)status.st_size : 0;
}

/* Say in @error that a file cannot be read, or is damaged where redis-check-aof must not cut.
 * Always false. */
static bool refuse(
    enum aof_state state, const char *path, int64_t at, const char *name, char *error, size_t room)
{
    if (state == AOF_UNREADABLE) {
        (void)snprintf(error, room, "cannot read " FILES "%s: %s", name, strerror(errno));
    } else {
        (void)snprintf(error, room,
            FILES "%s is damaged at byte %" PRId64 " of %" PRId64
                  ": restore a backup; redis-check-aof --fix would throw away what is behind",
            name, at, size_of(path));
    }
    return false;
}

/* Run redis-check-aof on @file, an append-only file or a manifest; @fix: it may cut. */
static bool check(const char *dir, const char *server, const char *log, const char *file, bool fix,
    char *error, size_t room)
{
    const char *const argv[] = {"redis-check-aof", fix ? "--fix" : file, fix ? file : NULL, NULL};
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
    struct files files;
    enum aof_state state = AOF_WHOLE;
    int64_t at = 0;
    *ret_cut = 0;
    (void)snprintf(manifest, sizeof(manifest), "%s/" MANIFEST, dir);
    if (access(manifest, F_OK) != 0) {
        return true; /* Redis has written nothing here yet */
    }
    read_manifest(manifest, &files);
    if (files.n_written == 0 && files.base[0] == '\0') {
        (void)snprintf(error, room,
            MANIFEST " names no file: restore a backup; redis-check-aof --fix would empty it");
        return false;
    }
    (void)snprintf(path, sizeof(path), "%s/" FILES "%s", dir, files.last);
    if (files.n_written > 0) {
        state = aof_scan(path, &at);
    }
    bool missing = state == AOF_UNREADABLE && errno == ENOENT; /* redis-check-aof tells of it */
    if (state == AOF_DAMAGED || (state == AOF_UNREADABLE && !missing)) {
        return refuse(state, path, at, files.last, error, room);
    }
    if (state == AOF_WHOLE && files.n_written == 1) { /* only the base is left to check */
        (void)snprintf(path, sizeof(path), "%s/" FILES "%s", dir, files.base);
        return files.base[0] == '\0' || check(dir, server, log, path, false, error, room);
    }
    int64_t before = size_of(path);
    bool ok = check(dir, server, log, manifest, true, error, room);
    *ret_cut = before - size_of(path);
    return ok;
}
