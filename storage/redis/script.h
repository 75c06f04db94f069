/* script.h - the Lua scripts: their texts, and their digests on a connection.
 *
 * Layer: storage.  The texts are the files of storage/lua/, built in.  All begin with "#!lua", so
 * that Redis checks them before they run (memory, read-only, keys of one slot) and an error means:
 * nothing was done.
 */
#ifndef STORAGE_REDIS_SCRIPT_H
#define STORAGE_REDIS_SCRIPT_H

#include "storage/base/buffer.h"
#include "storage/redis/redis.h"

/*   name               file */
#define SCRIPTS(X)                                                                                 \
    X(SCRIPT_WRITE, "write")                                                                       \
    X(SCRIPT_CLAIM, "claim")                                                                       \
    X(SCRIPT_SETTLE, "settle")                                                                     \
    X(SCRIPT_SCHEMA, "schema")                                                                     \
    X(SCRIPT_INIT, "init")                                                                         \
    X(SCRIPT_READ, "read")                                                                         \
    X(SCRIPT_READ_ANY, "read_any")                                                                 \
    X(SCRIPT_SETTINGS, "settings")                                                                 \
    X(SCRIPT_MARK, "mark")                                                                         \
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
    X(SCRIPT_FORGET_USER, "forget_user")                                                           \
    X(SCRIPT_CLEAR_BITS, "clear_bits")                                                             \
    X(SCRIPT_SWEEP_DAYS, "sweep_days")                                                             \
    X(SCRIPT_FILTER_CREATE, "filter_create")                                                       \
    X(SCRIPT_FILTER_ADD, "filter_add")                                                             \
    X(SCRIPT_FILTER_DROP, "filter_drop")                                                           \
    X(SCRIPT_SEEN_FOLD, "seen_fold")

enum script {
#define X(name, file) name,
    SCRIPTS(X)
#undef X
        N_SCRIPTS
};

/* What SCRIPT LOAD answered, on one connection. */
struct script_digests {
    char sha[N_SCRIPTS][41];
};

/* Load all scripts; blocking, until @deadline_ms. */
enum redis_status scripts_load(
    struct redis *redis, int64_t deadline_ms, struct script_digests *ret);

/* The head of an EVALSHA: @n_keys keys and then @n_args arguments follow, as words. */
void script_head(struct buffer *b, const struct script_digests *digests, enum script script,
    size_t n_keys, size_t n_args);

#endif
