#include "tests/lib/stand_in.h"

#include "storage/base/clock.h"

struct stand_in stand_in;

int64_t __real_monotonic_us(void);
int64_t __real_monotonic_ms(void);
int64_t __wrap_monotonic_us(void);
int64_t __wrap_monotonic_ms(void);

int64_t __wrap_monotonic_us(void)
{
    return stand_in.now_us != NULL ? stand_in.now_us() : __real_monotonic_us();
}

int64_t __wrap_monotonic_ms(void)
{
    return stand_in.now_us != NULL ? stand_in.now_us() / 1000 : __real_monotonic_ms();
}

/* ---- the disk ---- */

int __real_statvfs(const char *path, struct statvfs *ret);
int __wrap_statvfs(const char *path, struct statvfs *ret);

int __wrap_statvfs(const char *path, struct statvfs *ret)
{
    if (stand_in.disk == NULL) {
        return __real_statvfs(path, ret);
    }
    *ret = *stand_in.disk;
    return 0;
}

/* ---- questions ---- */

enum redis_status __real_redis_ask(
    struct redis *redis, struct buffer *out, int64_t deadline_ms, const struct reply **ret);
enum redis_status __wrap_redis_ask(
    struct redis *redis, struct buffer *out, int64_t deadline_ms, const struct reply **ret);
enum redis_status __real_redis_ask_all(struct redis *redis, struct buffer *out, size_t n,
    int64_t deadline_ms, redis_take_fn *take, void *data);
enum redis_status __wrap_redis_ask_all(struct redis *redis, struct buffer *out, size_t n,
    int64_t deadline_ms, redis_take_fn *take, void *data);

enum redis_status __wrap_redis_ask(
    struct redis *redis, struct buffer *out, int64_t deadline_ms, const struct reply **ret)
{
    if (stand_in.answer == NULL) {
        return __real_redis_ask(redis, out, deadline_ms, ret);
    }
    const struct reply *reply = stand_in.answer(out, 0);
    buffer_clear(out, SIZE_MAX);
    if (reply == NULL) {
        return REDIS_LOST;
    }
    *ret = reply;
    return REDIS_OK_STATUS;
}

enum redis_status __wrap_redis_ask_all(struct redis *redis, struct buffer *out, size_t n,
    int64_t deadline_ms, redis_take_fn *take, void *data)
{
    if (stand_in.answer == NULL) {
        return __real_redis_ask_all(redis, out, n, deadline_ms, take, data);
    }
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++) {
        const struct reply *reply = stand_in.answer(out, i);
        ok = reply != NULL && take(data, i, reply);
    }
    buffer_clear(out, SIZE_MAX);
    return ok ? REDIS_OK_STATUS : REDIS_LOST;
}

/* ---- connections ---- */

struct redis *stand_in_redis(void)
{
    static char nothing;
    return (struct redis *)(void *)&nothing;
}

bool __real_session_open(struct session *session, struct core *core, int64_t deadline_ms);
bool __wrap_session_open(struct session *session, struct core *core, int64_t deadline_ms);
void __real_session_close(struct session *session);
void __wrap_session_close(struct session *session);
void __real_session_lost(struct session *session);
void __wrap_session_lost(struct session *session);

bool __wrap_session_open(struct session *session, struct core *core, int64_t deadline_ms)
{
    if (stand_in.connect == NULL) {
        return __real_session_open(session, core, deadline_ms);
    }
    session->core = core;
    session->redis = stand_in.connect() ? stand_in_redis() : NULL;
    return session->redis != NULL;
}

void __wrap_session_close(struct session *session)
{
    if (stand_in.connect == NULL) {
        __real_session_close(session);
    } else if (stand_in.closed != NULL) {
        stand_in.closed();
    }
    session->redis = NULL;
}

void __wrap_session_lost(struct session *session)
{
    if (stand_in.connect == NULL) {
        __real_session_lost(session);
    }
    session->redis = NULL;
}

/* ---- commands to many servers ---- */

struct buffer *__real_dispatcher_begin(
    struct dispatcher *dispatcher, unsigned partition, enum dispatcher_kind kind);
struct buffer *__wrap_dispatcher_begin(
    struct dispatcher *dispatcher, unsigned partition, enum dispatcher_kind kind);
bool __real_dispatcher_end(struct dispatcher *dispatcher, size_t n_replies);
bool __wrap_dispatcher_end(struct dispatcher *dispatcher, size_t n_replies);
void __real_dispatcher_send(struct dispatcher *dispatcher, int64_t deadline_ms);
void __wrap_dispatcher_send(struct dispatcher *dispatcher, int64_t deadline_ms);
bool __real_dispatcher_send_unchanged(
    struct dispatcher *dispatcher, uint64_t changes, int64_t deadline_ms);
bool __wrap_dispatcher_send_unchanged(
    struct dispatcher *dispatcher, uint64_t changes, int64_t deadline_ms);
enum redis_status __real_dispatcher_await(
    struct dispatcher *dispatcher, int64_t deadline_ms, const struct reply **ret);
enum redis_status __wrap_dispatcher_await(
    struct dispatcher *dispatcher, int64_t deadline_ms, const struct reply **ret);

struct buffer *__wrap_dispatcher_begin(
    struct dispatcher *dispatcher, unsigned partition, enum dispatcher_kind kind)
{
    if (stand_in.group == NULL) {
        return __real_dispatcher_begin(dispatcher, partition, kind);
    }
    stand_in.group(partition, kind);
    return &dispatcher->bytes;
}

bool __wrap_dispatcher_end(struct dispatcher *dispatcher, size_t n_replies)
{
    return stand_in.group != NULL || __real_dispatcher_end(dispatcher, n_replies);
}

void __wrap_dispatcher_send(struct dispatcher *dispatcher, int64_t deadline_ms)
{
    if (stand_in.group == NULL) {
        __real_dispatcher_send(dispatcher, deadline_ms);
    }
}

bool __wrap_dispatcher_send_unchanged(
    struct dispatcher *dispatcher, uint64_t changes, int64_t deadline_ms)
{
    return stand_in.group == NULL
               ? __real_dispatcher_send_unchanged(dispatcher, changes, deadline_ms)
               : dispatcher->links.changes == changes;
}

enum redis_status __wrap_dispatcher_await(
    struct dispatcher *dispatcher, int64_t deadline_ms, const struct reply **ret)
{
    if (stand_in.group == NULL) {
        return __real_dispatcher_await(dispatcher, deadline_ms, ret);
    }
    *ret = stand_in.dispatched(dispatcher);
    return *ret != NULL ? REDIS_OK_STATUS : REDIS_LOST;
}

/* ---- transactions ---- */

struct fold_result __real_transaction_run(struct transaction *tx, struct session *session,
    const struct batch *batch, struct fold_cuts cuts, int trim, int64_t deadline_ms,
    struct heads *heads);
struct fold_result __wrap_transaction_run(struct transaction *tx, struct session *session,
    const struct batch *batch, struct fold_cuts cuts, int trim, int64_t deadline_ms,
    struct heads *heads);

struct fold_result __wrap_transaction_run(struct transaction *tx, struct session *session,
    const struct batch *batch, struct fold_cuts cuts, int trim, int64_t deadline_ms,
    struct heads *heads)
{
    if (stand_in.transaction == NULL) {
        return __real_transaction_run(tx, session, batch, cuts, trim, deadline_ms, heads);
    }
    return stand_in.transaction(batch, cuts, trim, heads);
}
