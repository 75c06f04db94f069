#include "storage/log/counted_logs.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"

void counted_logs_release(struct counted_logs *logs)
{
    free(logs->all);
    *logs = (struct counted_logs){.all = NULL};
}

static struct counted_log *counted_logs_find(struct counted_logs *logs, const char *id)
{
    for (size_t i = 0; i < logs->n; i++) {
        if (strcmp(logs->all[i].head.id, id) == 0) {
            return &logs->all[i];
        }
    }
    return NULL;
}

bool counted_logs_long(
    struct counted_logs *logs, const struct log_head *head, int64_t now_ms, int64_t apart_ms)
{
    struct counted_log *log = counted_logs_find(logs, head->id);
    if (log == NULL) {
        if (array_reserve(&logs->all, &logs->capacity, logs->n, sizeof(*logs->all))) {
            logs->all[logs->n++] =
                (struct counted_log){.head = *head, .seen_ms = now_ms, .is_seen = true};
        }
        return false;
    }
    bool same = log->head.n == head->n && log->head.time_ms == head->time_ms;
    log->seen_ms = same ? log->seen_ms : now_ms;
    log->head = *head;
    log->is_seen = true;
    return same && now_ms - log->seen_ms >= apart_ms;
}

void counted_logs_keep(struct counted_logs *logs)
{
    size_t kept = 0;
    for (size_t i = 0; i < logs->n; i++) {
        if (logs->all[i].is_seen) {
            logs->all[kept] = logs->all[i];
            logs->all[kept++].is_seen = false;
        }
    }
    logs->n = kept;
}
