#include "storage/log/watched_logs.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"

void watched_logs_release(struct watched_logs *logs)
{
    free(logs->all);
    *logs = (struct watched_logs){.all = NULL};
}

const struct watched_log *watched_logs_see(
    struct watched_logs *logs, const struct log_head *head, int64_t now_ms)
{
    size_t i = 0;
    while (i < logs->n && strcmp(logs->all[i].head.id, head->id) != 0) {
        i++;
    }
    if (!array_reserve(&logs->all, &logs->capacity, i, sizeof(*logs->all))) {
        return NULL;
    }
    struct watched_log *log = &logs->all[i];
    if (i == logs->n || log->head.n != head->n || log->head.time_ms != head->time_ms) {
        *log = (struct watched_log){.head = *head, .since_ms = now_ms};
        logs->n += i == logs->n;
    }
    log->is_seen = true;
    return log;
}

void watched_logs_keep(struct watched_logs *logs)
{
    size_t kept = 0;
    for (size_t i = 0; i < logs->n; i++) {
        if (logs->all[i].is_seen) {
            logs->all[kept] = logs->all[i];
            logs->all[kept].is_seen = false;
            logs->all[kept++].is_old = true;
        }
    }
    logs->n = kept;
}
