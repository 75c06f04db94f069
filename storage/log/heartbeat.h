/* heartbeat.h - when a writer says that it lives.
 *
 * Layer: storage, private to the appender.  Belongs to the writer's thread.
 *
 * A heartbeat keeps the log from being closed.  Its answer proves how old what is held is, and that
 * Redis has not gone back for those who want to know (core/standing.h).
 */
#ifndef STORAGE_LOG_HEARTBEAT_H
#define STORAGE_LOG_HEARTBEAT_H

#include "storage/log/append_state.h"

/* CLOCK_MONOTONIC, ms. */
int64_t heartbeat_due_ms(struct appender *a);

#endif
