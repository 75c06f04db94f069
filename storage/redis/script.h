/* script.h - the Lua scripts that run inside Redis: their names, and how to call them.
 *
 * Layer: storage.  Thread-safe, but for the connection that scripts_load() uses.
 *
 * A script is a file of storage/lua/ and is built into the program.  scripts_load() sends all
 * scripts to Redis, once for each connection.  A script is then called by its digest (EVALSHA).
 *
 * Every script begins with "#!lua".  Before Redis runs such a script, Redis checks that there is
 * memory, that the script may write, and that its keys lie in one slot.  So an error from these
 * checks means that the script did nothing.
 */
#ifndef STORAGE_REDIS_SCRIPT_H
#define STORAGE_REDIS_SCRIPT_H

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/redis/redis.h"

/*   name               file */
#define SCRIPTS(X)                                                                                 \
    X(SCRIPT_SCHEMA, "schema")                                                                     \
    X(SCRIPT_INIT, "init")                                                                         \
    X(SCRIPT_READ, "read")                                                                         \
    X(SCRIPT_SETTINGS, "settings")                                                                 \
    X(SCRIPT_APPEND, "append")                                                                     \
    X(SCRIPT_FOLD, "fold")                                                                         \
    X(SCRIPT_CURSORS, "cursors")                                                                   \
    X(SCRIPT_HEARTBEAT, "heartbeat")                                                               \
    X(SCRIPT_MARK, "mark")                                                                         \
    X(SCRIPT_SKIP, "skip")                                                                         \
    X(SCRIPT_TAKEOVER, "takeover")                                                                 \
    X(SCRIPT_MERGE, "merge")                                                                       \
    X(SCRIPT_ADVANCE, "advance")                                                                   \
    X(SCRIPT_EXPIRE, "expire")                                                                     \
    X(SCRIPT_LIST, "list")                                                                         \
    X(SCRIPT_ACQUIRE, "acquire")                                                                   \
    X(SCRIPT_RENEW, "renew")                                                                       \
    X(SCRIPT_RELEASE, "release")                                                                   \
    X(SCRIPT_FUNNEL, "funnel")                                                                     \
    X(SCRIPT_SLIDING, "sliding")                                                                   \
    X(SCRIPT_POLICY, "policy")                                                                     \
    X(SCRIPT_FORGET_USER, "forget_user")                                                           \
    X(SCRIPT_CLEAR_DAY, "clear_day")                                                               \
    X(SCRIPT_CLEAR_BITS, "clear_bits")                                                             \
    X(SCRIPT_USERS_CHANGED, "users_changed")                                                       \
    X(SCRIPT_SWEEP_DAYS, "sweep_days")                                                             \
    X(SCRIPT_FILTER_CREATE, "filter_create")                                                       \
    X(SCRIPT_FILTER_ADD, "filter_add")                                                             \
    X(SCRIPT_FILTER_DROP, "filter_drop")                                                           \
    X(SCRIPT_SEEN_FOLD, "seen_fold")                                                               \
    X(SCRIPT_LOG_AGE, "log_age")                                                                   \
    X(SCRIPT_CLOSE_LOG, "close_log")                                                               \
    X(SCRIPT_DELETION_MARK, "deletion_mark")                                                       \
    X(SCRIPT_DELETION_STEP, "deletion_step")                                                       \
    X(SCRIPT_DELETE, "delete")                                                                     \
    X(SCRIPT_SMALL_WRITE, "small_write")

enum script {
#define X(name, file) name,
    SCRIPTS(X)
#undef X
        N_SCRIPTS
};

/* The digests of all scripts, as Redis told them on one connection: 40 hexadecimal digits and a
 * NUL. */
struct script_digests {
    char sha[N_SCRIPTS][41];
};

/* Load all scripts, and wait for the answers until @deadline_ms (CLOCK_MONOTONIC).  False: the
 * connection must be closed, @ret is unspecified, and @error, of @error_n bytes, has the reason. */
bool scripts_load(struct redis *redis, int64_t deadline_ms, struct script_digests *ret, char *error,
    size_t error_n) MUST_CHECK;

/* Write the head of a call of @script (EVALSHA).  The caller writes @n_keys keys and then @n_args
 * arguments behind the head, one word each (resp.h). */
void script_head(struct buffer *b, const struct script_digests *digests, enum script script,
    size_t n_keys, size_t n_args);

#endif
