/* log.h - the service's log: one record a line, leveled, on one descriptor.
 *
 * Layer: service; handlers/ and storage/ do not log, they report to their callers.
 * A record is one write(2).  Records of one message that come faster than the limit are left out;
 * the next one of that message in a later second says how many (`suppressed=N`), and what is still
 * unsaid when the logger is freed is said then.  A record the descriptor does not take is lost, and
 * counted: logging never fails and never changes errno.
 *
 * Thread safety: all but new and free may be called from any thread.
 *
 * Example: log_info(logger, "listening", log_text("address", text), log_int("port", port));
 */
#ifndef SERVICE_LOG_LOG_H
#define SERVICE_LOG_LOG_H

#include "service/log/log_line.h"

struct logger;

struct logger_config {
    int fd; /* lent: not closed */
    enum log_format format;
    enum log_level level;
    unsigned repeats_per_s;         /* records of one message in one second; 0: any number */
    int64_t (*now_ms)(void *clock); /* UTC; NULL: the system's clock */
    void *clock;
};

/* NULL if there is no memory. */
struct logger *logger_new(const struct logger_config *config) __attribute__((warn_unused_result));

/* Say what was suppressed and free.  NULL is harmless. */
void logger_free(struct logger *logger);

/* Later records of a level below @level are left out. */
void logger_set_level(struct logger *logger, enum log_level level);

/* Records the descriptor did not take so far. */
uint64_t logger_lost(const struct logger *logger);

/* This machine's clock, UTC: what records are dated with, unless the logger has a clock. */
int64_t log_now_ms(void);

/* @message must live as long as the logger: the macros below make sure that it is a literal. */
void log_write(struct logger *logger, enum log_level level, const char *message,
    const struct log_field *fields, size_t n_fields);

#define LOG_FIELDS(...)                                                                            \
    (const struct log_field[]){__VA_ARGS__},                                                       \
        sizeof((const struct log_field[]){__VA_ARGS__}) / sizeof(struct log_field)

/* log_LEVEL(logger, "message", field...): fields come from log_text(), log_slice(), log_int(),
 * log_uint() and log_bool(); there may be none. */
#define log_error(logger, message, ...)                                                            \
    log_write(logger, LOG_LEVEL_ERROR, "" message, LOG_FIELDS(__VA_ARGS__))
#define log_warn(logger, message, ...)                                                             \
    log_write(logger, LOG_LEVEL_WARN, "" message, LOG_FIELDS(__VA_ARGS__))
#define log_info(logger, message, ...)                                                             \
    log_write(logger, LOG_LEVEL_INFO, "" message, LOG_FIELDS(__VA_ARGS__))
#define log_debug(logger, message, ...)                                                            \
    log_write(logger, LOG_LEVEL_DEBUG, "" message, LOG_FIELDS(__VA_ARGS__))

#endif
