#include "storage/fold/batch.h"

#include <stdlib.h>
#include <xxhash.h>

#include "storage/job/counted_name.h"
#include "storage/log/chunk.h"
#include "storage/time/units.h"

#define OLD_S      DAY_S /* an event is old if it arrives later than this after its time */
#define FEW_EVENTS 16    /* a request with fewer events is small */
#define ROWS_KEPT  4096  /* the memory of more rows is given back */

/* ---- entries ---- */

static void drop_entries(struct batch *batch, size_t from)
{
    while (batch->n_entries > from) {
        entry_release(batch->entries[--batch->n_entries].entry);
    }
}

void batch_clear(struct batch *batch)
{
    drop_entries(batch, 0);
    arena_clear(&batch->arena);
    if (batch->rows_capacity > ROWS_KEPT) {
        free(batch->rows);
        batch->rows = NULL;
        batch->rows_capacity = 0;
    }
    for (unsigned p = 0; p < PARTITIONS_MAX; p++) {
        batch_tasks_clear(&batch->tasks[p]);
    }
    batch->n_logs = batch->n_rows = batch->n_requests = batch->n_sites = batch->n_values = 0;
    index_clear(&batch->site_index);
    index_clear(&batch->value_index);
}

void batch_release(struct batch *batch)
{
    batch_clear(batch);
    for (unsigned p = 0; p < PARTITIONS_MAX; p++) {
        batch_tasks_release(&batch->tasks[p]);
    }
    arena_release(&batch->arena);
    free(batch->entries);
    free(batch->rows);
    free(batch->sites);
    free(batch->values);
    index_release(&batch->site_index);
    index_release(&batch->value_index);
    *batch = (struct batch){0};
}

struct batch_log *batch_add_log(struct batch *batch, const char *id, uint64_t from)
{
    if (batch->n_logs == BATCH_LOGS) {
        return NULL;
    }
    struct batch_log *log = &batch->logs[batch->n_logs++];
    *log = (struct batch_log){.from = from, .to = from};
    memcpy(log->id, id, sizeof(log->id));
    return log;
}

bool batch_add(struct batch *batch, struct log_entry *entry)
{
    uint32_t log = (uint32_t)batch->n_logs - 1;
    if (!ARRAY_RESERVE(batch, entries)) {
        entry_release(entry);
        return false;
    }
    int64_t order_ms = entry->arrival_ms;
    if (batch->n_entries > 0) {
        const struct batch_entry *last = &batch->entries[batch->n_entries - 1];
        order_ms = last->log == log && last->order_ms > order_ms ? last->order_ms : order_ms;
    }
    batch->entries[batch->n_entries++] = (struct batch_entry){
        .entry = entry, .log = log, .arrival_s = entry->arrival_ms / 1000, .order_ms = order_ms};
    batch->logs[log].to = entry->n;
    return true;
}

/* By arrival; entries of a log stay in their order. */
static int compare_entries(const void *a, const void *b)
{
    const struct batch_entry *x = a;
    const struct batch_entry *y = b;
    if (x->order_ms != y->order_ms) {
        return x->order_ms < y->order_ms ? -1 : 1;
    }
    if (x->log != y->log) {
        return x->log < y->log ? -1 : 1;
    }
    return x->entry->n < y->entry->n ? -1 : x->entry->n > y->entry->n;
}

/* Where a log goes on behind the batch, what arrived later in others is left for the next batch.
 * Nothing waits for an entry that cannot be read. */
static void drop_later(struct batch *batch)
{
    int64_t limit_ms[BATCH_LOGS] = {0}; /* the last arrival of each log in the batch */
    int64_t least_ms = INT64_MAX;
    for (size_t i = 0; i < batch->n_entries; i++) {
        limit_ms[batch->entries[i].log] = batch->entries[i].order_ms;
    }
    for (size_t l = 0; l < batch->n_logs; l++) {
        const struct batch_log *log = &batch->logs[l];
        if (log->more && !log->broken && limit_ms[l] < least_ms) {
            least_ms = limit_ms[l];
        }
    }
    size_t n = batch->n_entries;
    while (n > 0 && batch->entries[n - 1].order_ms > least_ms) {
        n--;
        struct batch_log *log = &batch->logs[batch->entries[n].log];
        log->more = true;
        log->broken = false;                      /* the broken entry is left for later, too */
        log->to = batch->entries[n].entry->n - 1; /* the log's first dropped entry comes last */
    }
    drop_entries(batch, n);
}

/* ---- rows ---- */

static bool copy_actions(struct batch *batch, const struct chunk_event *event, struct row *row)
{
    if (event->n_actions == 0) {
        return true;
    }
    struct slice *actions = arena_alloc(&batch->arena, event->n_actions * sizeof(*actions));
    if (actions == NULL) {
        return false;
    }
    memcpy(actions, event->actions, event->n_actions * sizeof(*actions));
    row->actions = actions;
    row->n_actions = event->n_actions;
    return true;
}

struct value_wanted {
    const struct batch *batch;
    const struct chunk_value *value;
};

static bool same_value(const void *context, uint32_t item)
{
    const struct value_wanted *wanted = context;
    const struct counted_value *value = &wanted->batch->values[item];
    return value->with_visitors == wanted->value->with_visitors &&
           slice_equal(value->name, wanted->value->name);
}

/* The number of a chunk's value in the batch; INDEX_NONE: out of memory. */
static uint32_t find_value(struct batch *batch, struct chunk_value *value)
{
    struct value_wanted wanted = {batch, value};
    if (value->id != UINT32_MAX) {
        return value->id;
    }
    bool is_new;
    uint64_t hash = XXH3_64bits(value->name.p, value->name.n);
    value->id = INDEX_ADD(batch, value_index, values, hash, same_value, &wanted, &is_new);
    if (is_new) {
        batch->values[value->id] = (struct counted_value){value->name, hash, value->with_visitors};
    }
    return value->id;
}

static bool find_values(struct batch *batch, struct chunk_reader *reader, struct row *row)
{
    const struct chunk_event *event = &reader->event;
    if (event->n_values == 0) {
        return true;
    }
    uint32_t *values = arena_alloc(&batch->arena, event->n_values * sizeof(*values));
    for (unsigned i = 0; values != NULL && i < event->n_values; i++) {
        values[i] = find_value(batch, &reader->values[event->values[i]]);
        if (values[i] == INDEX_NONE) {
            return false;
        }
    }
    row->values = values;
    row->n_values = event->n_values;
    return values != NULL;
}

struct site_wanted {
    const struct batch *batch;
    struct slice name;
};

static bool same_site(const void *context, uint32_t item)
{
    const struct site_wanted *wanted = context;
    return slice_equal(wanted->batch->sites[item]->name, wanted->name);
}

/* NULL: out of memory. */
static const struct row_site *find_site(
    struct batch *batch, const struct core *core, struct slice name)
{
    if (batch->n_rows > 0 && slice_equal(batch->rows[batch->n_rows - 1].site->name, name)) {
        return batch->rows[batch->n_rows - 1].site; /* the site of the event before, most often */
    }
    bool is_new;
    struct site_wanted wanted = {batch, name};
    uint64_t hash = page_hash(name, (struct slice){NULL, 0});
    uint32_t item = index_add(&batch->site_index, hash, same_site, &wanted, &batch->sites,
        &batch->sites_capacity, &batch->n_sites, sizeof(struct row_site *), &is_new);
    if (is_new) {
        struct row_site *site = arena_alloc(&batch->arena, sizeof(*site));
        batch->sites[item] = site;
        if (site != NULL) {
            *site = (struct row_site){name, hash, site_zones_get(&core->sites, name)};
        }
    }
    return item == INDEX_NONE ? NULL : batch->sites[item];
}

/* Set the row's user, who is also the visitor of a page view or named event without another one. */
static void set_user(const struct secret *secret, struct row *row)
{
    identity_user(secret, row->site->name, row->user, &row->user_id);
    if (!row->has_visitor && row->page.n > 0) {
        row->visitor = row->user_id;
        row->has_visitor = row->user_is_visitor = true;
    }
}

/* The row of @event. */
static void make_row(const struct secret *secret, const struct chunk_event *event,
    const struct row_site *site, struct row *ret)
{
    *ret = (struct row){.at_s = event->at_s,
        .site = site,
        .page = event->page,
        .page_hash = page_hash(event->site, event->page),
        .user = event->user,
        .has_address = event->has_address,
        .address = event->address,
        .has_visitor = event->has_visitor,
        .visitor = event->visitor,
        .ticket = event->ticket,
        .index = event->index};
    ret->is_view = event->page.n > 0 && !event_name_is(event->page);
    if (event->user.n > 0) {
        set_user(secret, ret);
    }
}

/* Make the next row.  @has_key: the request has an Idempotency-Key.  False: out of memory. */
static bool add_row(struct batch *batch, const struct core *core, const struct secret *secret,
    struct chunk_reader *reader, uint32_t entry, bool has_key)
{
    const struct chunk_event *event = &reader->event;
    const struct row_site *site = find_site(batch, core, event->site);
    if (site == NULL || !ARRAY_RESERVE(batch, rows)) {
        return false;
    }
    struct row *row = &batch->rows[batch->n_rows++];
    make_row(secret, event, site, row);
    row->entry = entry;
    row->is_old = event->at_s < batch->entries[entry].arrival_s - OLD_S;
    row->has_key = has_key;
    return copy_actions(batch, event, row) && find_values(batch, reader, row) &&
           batch_tasks_add(batch->tasks, &core->partitions, row, batch->n_rows - 1);
}

/* Make rows of the events in @chunks: of one request with a key, or of all requests without. */
static enum packed_err decode_chunks(struct batch *batch, const struct core *core,
    const struct secret *secret, struct slice chunks, uint32_t entry, bool has_key)
{
    struct chunk_reader reader;
    bool ok = true;
    chunk_reader_init(&reader, chunks);
    for (; ok && chunk_next(&reader); batch->n_requests++) {
        while (ok && chunk_next_event(&reader)) {
            ok = add_row(batch, core, secret, &reader, entry, has_key);
        }
    }
    enum packed_err err = !ok || reader.no_memory ? PACKED_NOMEM
                          : reader.failed         ? PACKED_BROKEN
                                                  : PACKED_OK;
    chunk_reader_release(&reader);
    return err;
}

/* Take the rows from @n_rows on away again. */
static void undo_rows(struct batch *batch, size_t n_rows)
{
    for (unsigned p = 0; p < PARTITIONS_MAX; p++) {
        batch_tasks_undo(&batch->tasks[p], n_rows);
    }
    batch->n_rows = n_rows;
}

static bool decode_entry(
    struct batch *batch, const struct core *core, const struct secret *secret, uint32_t number)
{
    struct batch_entry *entry = &batch->entries[number];
    struct batch_log *log = &batch->logs[entry->log];
    enum packed_err err = PACKED_OK;
    entry->first_row = (uint32_t)batch->n_rows;
    if (entry->entry->n > log->to) {
        return true; /* an entry before this one cannot be read */
    }
    for (size_t i = 0; err == PACKED_OK && i <= entry->entry->n_keyed; i++) {
        struct slice chunks;
        err = entry_chunks(entry->entry, i, &batch->arena, &chunks);
        err = err == PACKED_OK ? decode_chunks(batch, core, secret, chunks, number, i > 0) : err;
    }
    if (err == PACKED_BROKEN) {
        undo_rows(batch, entry->first_row);
        log->broken = true;
        log->to = entry->entry->n - 1;
    }
    entry->n_rows = (uint32_t)batch->n_rows - entry->first_row;
    return err != PACKED_NOMEM;
}

/* ---- all of it ---- */

size_t batch_events(const struct batch *batch)
{
    size_t n = 0;
    for (size_t i = 0; i < batch->n_entries; i++) {
        n += entry_events(batch->entries[i].entry);
    }
    return n;
}

uint64_t batch_missing(const struct batch *batch, size_t log)
{
    const struct batch_log *is = &batch->logs[log];
    uint64_t n = is->to > is->from ? is->to - is->from : 0;
    for (size_t i = 0; i < batch->n_entries; i++) {
        const struct batch_entry *entry = &batch->entries[i];
        n -= entry->log == log && entry->entry->n > is->from && entry->entry->n <= is->to;
    }
    return n;
}

/* Make room for as many rows as there are events: an array that doubles would take up to twice as
 * much.  If memory is out, the array grows later, or not at all. */
static void expect_rows(struct batch *batch)
{
    size_t n = batch_events(batch);
    if (n > batch->rows_capacity) { /* the batch has no rows so far */
        free(batch->rows);
        batch->rows = reallocarray(NULL, n, sizeof(*batch->rows));
        batch->rows_capacity = batch->rows == NULL ? 0 : n;
    }
}

bool batch_finish(struct batch *batch, const struct core *core)
{
    const struct secret *secret = atomic_load(&core->secret);
    if (secret == NULL) {
        return false;
    }
    if (batch->n_entries > 1) {
        qsort(batch->entries, batch->n_entries, sizeof(*batch->entries), compare_entries);
    }
    drop_later(batch);
    expect_rows(batch);
    for (size_t i = 0; i < batch->n_entries; i++) {
        if (!decode_entry(batch, core, secret, (uint32_t)i)) {
            return false;
        }
    }
    for (unsigned p = 0; p < core->partitions.n; p++) {
        if (!batch_tasks_sort(&batch->tasks[p], batch->rows)) {
            return false;
        }
    }
    return true;
}

bool batch_has_many(const struct batch *batch)
{
    return batch->n_rows < FEW_EVENTS * batch->n_requests;
}

struct log_position batch_position(const struct batch *batch, uint32_t log, uint32_t row)
{
    const struct batch_log *is = &batch->logs[log];
    if (row >= batch->n_rows) {
        return (struct log_position){is->to, 0};
    }
    for (size_t i = 0; i < batch->n_entries; i++) {
        const struct batch_entry *entry = &batch->entries[i];
        if (entry->log == log && entry->first_row + entry->n_rows > row) {
            uint32_t events = row > entry->first_row ? row - entry->first_row : 0;
            return (struct log_position){entry->entry->n - 1, events};
        }
    }
    return (struct log_position){is->to, 0};
}
