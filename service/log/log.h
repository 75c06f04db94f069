/* log.h - the log of the service: one record a line, with a level, on one descriptor.
 *
 * Layer: service.  handlers/ and storage/ do not log: they report to their callers.
 *
 * A record is one write(2).  Records of one message that come faster than a limit are left out. The
 * next record of that message, in a later second, says how many were left out (`suppressed=N`).
 * What was left out and is not told yet is told when the logger is freed.  A record that the
 * descriptor does not take at once is lost, and counted.  So logging never fails, never waits, and
 * never changes errno.
 *
 * Thread safety: logger_new() and logger_free() from one thread, all others from any thread.
 *
 * Example: log_info(logger, "listening", log_text("address", text), log_int("port", port));
 */
#ifndef SERVICE_LOG_LOG_H
#define SERVICE_LOG_LOG_H

#include "service/log/log_record.h"
#include "storage/base/compiler.h"

struct logger;

struct logger_config {
    int fd; /* the caller's, never closed */
    enum log_syntax syntax;
    enum log_level level;
    unsigned repeats_per_s;         /* records of one message in one second; 0: any number */
    int64_t (*now_ms)(void *clock); /* UTC; NULL: the system's clock */
    void *clock;
};

/* NULL: out of memory. */
struct logger *logger_new(const struct logger_config *config) MUST_CHECK;

/* Write what was suppressed, and free.  NULL is fine. */
void logger_free(struct logger *logger);

/* From now on, leave out records that are less important than @level. */
void logger_set_level(struct logger *logger, enum log_level level);

/* How many records the descriptor has not taken. */
uint64_t logger_lost(const struct logger *logger);

/* This machine's clock, UTC.  Records are dated with this clock, unless the logger has its own. */
int64_t log_now_ms(void);

/* Write a record.  @message must live as long as the logger: the macros below take a literal. */
void log_write(struct logger *logger, enum log_level level, const char *message,
    const struct log_field *fields, size_t n_fields);

#define LOG_RECORD_FIELDS(...)                                                                     \
    (const struct log_field[]){__VA_ARGS__},                                                       \
        sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field)

/* log_LEVEL(logger, "message", field...), with any number of fields.  log_text(), log_slice(),
 * log_int(), log_uint() and log_bool() make a field. */
#define log_error(logger, message, ...)                                                            \
    log_write(logger, LOG_LEVEL_ERROR, "" message, LOG_RECORD_FIELDS(__VA_ARGS__))
#define log_warn(logger, message, ...)                                                             \
    log_write(logger, LOG_LEVEL_WARN, "" message, LOG_RECORD_FIELDS(__VA_ARGS__))
#define log_info(logger, message, ...)                                                             \
    log_write(logger, LOG_LEVEL_INFO, "" message, LOG_RECORD_FIELDS(__VA_ARGS__))
#define log_debug(logger, message, ...)                                                            \
    log_write(logger, LOG_LEVEL_DEBUG, "" message, LOG_RECORD_FIELDS(__VA_ARGS__))

#endif
