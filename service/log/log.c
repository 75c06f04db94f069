#include "service/log/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "storage/base/cond.h"

/* Each message has one place.  Two messages that share a place push each other out.  That makes the
 * limit less strict for both, and keeps memory and time constant. */
#define REPEAT_PLACES 64

struct repeat {
    const char *message; /* NULL: free */
    enum log_level level;
    int64_t second;
    unsigned written; /* records that were written in that second */
    uint64_t suppressed;
};

struct logger {
    int fd;
    enum log_syntax syntax;
    _Atomic(enum log_level) level;
    unsigned repeats_per_s;
    int64_t (*now_ms)(void *clock);
    void *clock;
    atomic_uint_fast64_t lost;
    pthread_mutex_t mu; /* guards `repeats`, and is held while a record is written */
    struct repeat repeats[REPEAT_PLACES];
};

int64_t log_now_ms(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) {
        return 0;
    }
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t system_now_ms(void *clock)
{
    (void)clock;
    return log_now_ms();
}

struct logger *logger_new(const struct logger_config *config)
{
    struct logger *logger = calloc(1, sizeof(*logger));
    if (logger == NULL) {
        return NULL;
    }
    mutex_init(&logger->mu);
    logger->fd = config->fd;
    logger->syntax = config->syntax;
    atomic_init(&logger->level, config->level);
    logger->repeats_per_s = config->repeats_per_s;
    logger->now_ms = config->now_ms != NULL ? config->now_ms : system_now_ms;
    logger->clock = config->clock;
    return logger;
}

void logger_set_level(struct logger *logger, enum log_level level)
{
    atomic_store_explicit(&logger->level, level, memory_order_relaxed);
}

uint64_t logger_lost(const struct logger *logger)
{
    return atomic_load_explicit(&logger->lost, memory_order_relaxed);
}

/* Is there room for a record?  A pipe that has room takes LOG_RECORD_MAX bytes, which is PIPE_BUF.
 * A pipe that nobody reads must not stop the service, and O_NONBLOCK would be set for all processes
 * that have the descriptor. */
static bool has_room(const struct logger *logger)
{
    struct pollfd out = {.fd = logger->fd, .events = POLLOUT};
    int n;
    do {
        n = poll(&out, 1, 0);
    } while (n < 0 && errno == EINTR);
    return n != 0; /* where poll() fails, write() finds out what is wrong */
}

static void emit(struct logger *logger, const struct log_record *record)
{
    char line[LOG_RECORD_MAX];
    size_t n = log_record_print(record, logger->syntax, line);
    ssize_t written;
    (void)pthread_mutex_lock(&logger->mu); /* no other thread takes the room; cannot fail */
    bool room = has_room(logger);
    do {
        written = room ? write(logger->fd, line, n) : 0;
    } while (written < 0 && errno == EINTR);
    (void)pthread_mutex_unlock(&logger->mu);
    if (written != (ssize_t)n) {
        atomic_fetch_add_explicit(&logger->lost, 1, memory_order_relaxed);
    }
}

/* Write how many records of a message were left out, when no other record of that message came. */
static void emit_suppressed(struct logger *logger, const struct repeat *repeat, int64_t now_ms)
{
    emit(logger, &(struct log_record){
                     .at_ms = now_ms,
                     .level = repeat->level,
                     .message = repeat->message,
                     .suppressed = repeat->suppressed,
                 });
}

static size_t place_of(const char *message)
{
    return XXH3_64bits(message, strlen(message)) % REPEAT_PLACES;
}

/* May @record be written now?  Sets record->suppressed.  *ret_evicted is the message that had to
 * make room; it must be written if its `suppressed` is not 0. */
static bool admit(struct logger *logger, struct log_record *record, struct repeat *ret_evicted)
{
    struct repeat *repeat = &logger->repeats[place_of(record->message)];
    int64_t second = record->at_ms / 1000;
    bool admitted = true;
    (void)pthread_mutex_lock(&logger->mu); /* a plain mutex, not held here: cannot fail */
    if (repeat->message == NULL || strcmp(repeat->message, record->message) != 0) {
        *ret_evicted = *repeat;
        *repeat = (struct repeat){.message = record->message, .second = second};
    }
    if (repeat->second != second) {
        repeat->second = second;
        repeat->written = 0;
    }
    repeat->level = record->level;
    if (repeat->written < logger->repeats_per_s) {
        repeat->written++;
        record->suppressed = repeat->suppressed;
        repeat->suppressed = 0;
    } else {
        repeat->suppressed++;
        admitted = false;
    }
    (void)pthread_mutex_unlock(&logger->mu);
    return admitted;
}

void log_write(struct logger *logger, enum log_level level, const char *message,
    const struct log_field *fields, size_t n_fields)
{
    if (level > atomic_load_explicit(&logger->level, memory_order_relaxed)) {
        return;
    }
    int saved = errno;
    struct log_record record = {
        .at_ms = logger->now_ms(logger->clock),
        .level = level,
        .message = message,
        .fields = fields,
        .n_fields = n_fields,
    };
    struct repeat evicted = {.suppressed = 0};
    bool admitted = logger->repeats_per_s == 0 || admit(logger, &record, &evicted);
    if (evicted.suppressed > 0) {
        emit_suppressed(logger, &evicted, record.at_ms);
    }
    if (admitted) {
        emit(logger, &record);
    }
    errno = saved;
}

void logger_free(struct logger *logger)
{
    if (logger == NULL) {
        return;
    }
    for (size_t i = 0; i < REPEAT_PLACES; i++) {
        if (logger->repeats[i].suppressed > 0) {
            emit_suppressed(logger, &logger->repeats[i], logger->now_ms(logger->clock));
        }
    }
    (void)pthread_mutex_destroy(&logger->mu);
    free(logger);
}
