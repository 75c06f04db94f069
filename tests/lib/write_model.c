#include "tests/lib/write_model.h"

#include <stdlib.h>

bool write_model_init(struct write_model *model, size_t n_parts, size_t n_writers)
{
    *model = (struct write_model){.now_ms = WRITE_TTL_MS,
        .markers = calloc(n_writers, sizeof(*model->markers)),
        .n_writers = n_writers,
        .applied = calloc(n_parts, sizeof(*model->applied)),
        .n_parts = n_parts};
    return model->markers != NULL && model->applied != NULL;
}

void write_model_release(struct write_model *model)
{
    free(model->history);
    free(model->markers);
    free(model->applied);
    *model = (struct write_model){0};
}

static bool record(struct write_model *model, struct write_change change)
{
    if (model->n == model->capacity) {
        size_t capacity = model->capacity == 0 ? 256 : model->capacity * 2;
        struct write_change *more = reallocarray(model->history, capacity, sizeof(*model->history));
        if (more == NULL) {
            model->fault = "out of memory";
            return false;
        }
        model->history = more;
        model->capacity = capacity;
    }
    model->history[model->n++] = change;
    return true;
}

enum write_code write_model_run(
    struct write_model *model, struct write_command command, bool breaks, bool *ret_applied)
{
    struct write_marker *marker = &model->markers[command.writer];
    uint64_t last = model->now_ms < marker->expires_ms ? marker->last : 0;
    *ret_applied = false;
    if (model->now_ms >= command.gen_ms + WRITE_TTL_MS) {
        return WRITE_STALE;
    }
    if (command.seq <= last) {
        return WRITE_OK;
    }
    if (command.seq > last + 1) {
        return WRITE_GAP;
    }
    if (command.state != model->state) {
        return WRITE_REPLAN;
    }
    struct write_change change = {
        true, command.part, command.writer, marker->last, marker->expires_ms};
    if (!record(model, change)) {
        return WRITE_OK;
    }
    *marker = (struct write_marker){command.seq, model->now_ms + WRITE_MARKER_MS};
    *ret_applied = true;
    if (++model->applied[command.part] > 1 && model->fault == NULL) {
        model->fault = "a part was applied twice";
    }
    return breaks ? WRITE_BROKEN : WRITE_OK;
}

void write_model_move_state(struct write_model *model)
{
    if (record(model, (struct write_change){.is_apply = false})) {
        model->state++;
    }
}

void write_model_lose(struct write_model *model, size_t n)
{
    for (; n > 0 && model->n > 0; n--) {
        const struct write_change *change = &model->history[--model->n];
        if (change->is_apply) {
            model->applied[change->part]--;
            model->markers[change->writer] =
                (struct write_marker){change->last_before, change->expires_before_ms};
        } else {
            model->state--;
        }
    }
}
