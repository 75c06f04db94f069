#include "tests/lib/fake_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/log/packed.h"

#define FOREIGN_ID "ffffffffffffffff"

/* What stands for a script's digest. */
#define APPEND    "append----------------------------------"
#define HEARTBEAT "heartbeat-------------------------------"

enum { OK, DUP, GAP, GONE };

static void must(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "fake_log: %s\n", what);
        abort();
    }
}

static void remember(struct fake_log *fake)
{
    if (fake->n_past == FAKE_PAST) { /* the older half is forgotten */
        size_t half = FAKE_PAST / 2;
        memmove(fake->past, fake->past + half, (FAKE_PAST - half) * sizeof(*fake->past));
        memmove(fake->past_ms, fake->past_ms + half, (FAKE_PAST - half) * sizeof(*fake->past_ms));
        fake->n_past -= half;
        fake->floor = fake->floor > half ? fake->floor - half : 0;
        must(fake->received >= half, "the replica's state is forgotten");
        fake->received -= half;
    }
    fake->past[fake->n_past] = fake->now;
    fake->past_ms[fake->n_past++] = monotonic_ms();
}

static struct fake_stream *add_log(struct fake_log *fake, struct slice id)
{
    must(fake->now.n_logs < FAKE_LOGS && id.n == LOG_ID_TEXT, "too many logs");
    struct fake_stream *log = &fake->now.logs[fake->now.n_logs++];
    *log = (struct fake_stream){.time_ms = monotonic_ms()};
    memcpy(log->id, id.p, LOG_ID_TEXT);
    return log;
}

void fake_log_init(struct fake_log *fake)
{
    struct fake_state *past = fake->past;
    *fake = (struct fake_log){.past = past != NULL ? past : calloc(FAKE_PAST, sizeof(*past))};
    must(fake->past != NULL, "no memory");
    (void)add_log(fake, SLICE(FOREIGN_ID));
    remember(fake);
}

void fake_log_release(struct fake_log *fake)
{
    free(fake->past);
}

void fake_log_scripts(struct script_digests *ret)
{
    *ret = (struct script_digests){0};
    memcpy(ret->sha[SCRIPT_APPEND], APPEND, sizeof(APPEND));
    memcpy(ret->sha[SCRIPT_HEARTBEAT], HEARTBEAT, sizeof(HEARTBEAT));
}

struct fake_stream *fake_log_find(struct fake_log *fake, struct slice id)
{
    for (size_t i = 0; i < fake->now.n_logs; i++) {
        if (slice_equal(slice_of(fake->now.logs[i].id), id)) {
            return &fake->now.logs[i];
        }
    }
    return NULL;
}

/* ---- replies ---- */

static void put_integer(struct fake_reply *ret, size_t i, int64_t value)
{
    must(i < FAKE_ITEMS, "too many items");
    ret->items[i] = (struct reply){.type = REPLY_INTEGER, .integer = value};
    ret->reply.n = i + 1 > ret->reply.n ? i + 1 : ret->reply.n;
}

static void put_text(struct fake_reply *ret, size_t i, struct slice text)
{
    must(i < FAKE_ITEMS && text.n < sizeof(ret->texts[0]), "too large a reply");
    memcpy(ret->texts[i], text.p, text.n);
    ret->texts[i][text.n] = '\0';
    ret->items[i] =
        (struct reply){.type = REPLY_TEXT, .text = (struct slice){ret->texts[i], text.n}};
    ret->reply.n = i + 1 > ret->reply.n ? i + 1 : ret->reply.n;
}

static void put_error(struct fake_reply *ret, const char *text)
{
    ret->reply = (struct reply){.type = REPLY_ERROR, .text = slice_of(text)};
}

static void answer(struct fake_reply *ret, int code)
{
    int64_t us = monotonic_us() + FAKE_EPOCH_MS * 1000;
    ret->reply = (struct reply){.type = REPLY_ARRAY, .items = ret->items};
    put_integer(ret, 0, code);
    put_integer(ret, 1, us / 1000000);
    put_integer(ret, 2, us % 1000000);
}

/* ---- append.lua ---- */

static struct fake_record *find_record(struct fake_log *fake, struct slice key)
{
    for (size_t i = 0; i < fake->now.n_records; i++) {
        if (slice_equal(slice_of(fake->now.records[i].key), key)) {
            return &fake->now.records[i];
        }
    }
    return NULL;
}

static void set_record(struct fake_log *fake, struct slice key, struct slice value)
{
    must(fake->now.n_records < FAKE_RECORDS, "too many records");
    struct fake_record *record = &fake->now.records[fake->now.n_records++];
    must(key.n < sizeof(record->key) && value.n <= sizeof(record->value), "too large a record");
    *record = (struct fake_record){.n = value.n};
    memcpy(record->key, key.p, key.n);
    memcpy(record->value, value.p, value.n);
}

static void add_request(struct fake_log *fake, struct fake_entry *entry, char chunk)
{
    uint8_t request = (uint8_t)chunk;
    must(entry->n_requests < FAKE_PLACES && request < FAKE_REQUESTS, "too large an entry");
    entry->requests[entry->n_requests++] = request;
    fake->appended[request] = true;
}

static struct fake_entry *add_entry(
    struct fake_log *fake, struct fake_stream *log, uint64_t n, struct slice era)
{
    must(log->n_entries < FAKE_ENTRIES, "too many entries");
    must(log->n_entries == 0 || log->entries[log->n_entries - 1].n < n, "XADD of a smaller id");
    must(era.n <= LOG_ID_TEXT, "too long an era");
    fake->has_jumped = fake->has_jumped || n != log->n + 1;
    log->n = n;
    log->time_ms = monotonic_ms();
    memset(log->era, 0, sizeof(log->era));
    memcpy(log->era, era.p, era.n);
    struct fake_entry *entry = &log->entries[log->n_entries++];
    *entry = (struct fake_entry){.n = n};
    return entry;
}

/* The words of a call of append.lua. */
struct call {
    const struct slice *keys, *args;
    size_t n_keyed;
};

/* Set the records of the requests with keys; those whose keys were free go into the entry. */
static void take_keys(struct fake_log *fake, const struct call *call, struct fake_entry *entry,
    struct fake_reply *ret)
{
    for (size_t i = 0; i < call->n_keyed; i++) {
        const struct fake_record *record = find_record(fake, call->keys[2 + i]);
        if (record != NULL) {
            put_text(ret, 3 + i, (struct slice){record->value, record->n});
            continue;
        }
        const struct slice *of =
            &call->args[6 + 3 * i]; /* its record, how long that lives, its chunk */
        set_record(fake, call->keys[2 + i], of[0]);
        must(of[2].n == 1, "a chunk that is no byte");
        add_request(fake, entry, of[2].p[0]);
        put_text(ret, 3 + i, SLICE(""));
    }
}

static void append(struct fake_log *fake, const struct command *command, const struct call *call,
    struct fake_reply *ret)
{
    struct fake_stream *log = fake_log_find(fake, call->args[0]);
    uint64_t n = (uint64_t)command_number(command, (size_t)(call->args + 1 - command->words));
    if (log == NULL) {
        answer(ret, GONE);
        return;
    }
    if (n <= log->n) {
        fake->wrote = true; /* the time in the head */
        answer(ret, DUP);
        for (size_t i = 0; i < call->n_keyed; i++) {
            const struct fake_record *record = find_record(fake, call->keys[2 + i]);
            put_text(
                ret, 3 + i, record == NULL ? SLICE("") : (struct slice){record->value, record->n});
        }
        return;
    }
    if (n > log->n + 1 && !slice_equal(call->args[3], SLICE("1"))) {
        answer(ret, GAP);
        return;
    }
    answer(ret, OK);
    fake->wrote = true;
    struct fake_entry *entry = add_entry(fake, log, n, call->args[2]);
    struct arena arena = {0};
    struct slice chunks;
    must(packed_read(call->args[5], &arena, &chunks) == PACKED_OK, "chunks that are not packed");
    for (size_t i = 0; i < chunks.n; i++) {
        add_request(fake, entry, chunks.p[i]);
    }
    arena_release(&arena);
    take_keys(fake, call, entry, ret);
    remember(fake);
}

static void heartbeat(struct fake_log *fake, struct slice id, struct fake_reply *ret)
{
    struct fake_stream *log = fake_log_find(fake, id);
    bool is = log != NULL;
    ret->reply = (struct reply){.type = REPLY_INTEGER, .integer = is};
    if (is) {
        fake->wrote = true;
        log->time_ms = monotonic_ms();
    }
}

static void register_log(struct fake_log *fake, struct slice id, struct fake_reply *ret)
{
    bool is_new = fake_log_find(fake, id) == NULL;
    ret->reply = (struct reply){.type = REPLY_INTEGER, .integer = is_new};
    if (is_new) {
        (void)add_log(fake, id);
        remember(fake);
    }
}

/* A connection that has written nothing waits for nothing. */
static void wait_for_replica(struct fake_log *fake, struct fake_reply *ret)
{
    bool received = !fake->wrote || !fake->is_alone;
    if (fake->wrote && received) {
        fake->received = fake->n_past - 1;
    }
    ret->reply = (struct reply){.type = REPLY_INTEGER, .integer = received};
}

void fake_log_run(struct fake_log *fake, const struct command *command, struct fake_reply *ret)
{
    *ret = (struct fake_reply){0};
    if (fake->is_loading) {
        put_error(ret, "LOADING Redis is loading the dataset in memory");
    } else if (command_is(command, 0, "WAIT") && command->n == 3) {
        wait_for_replica(fake, ret);
    } else if (command->n == 7 && command_is(command, 4, "HSETNX")) {
        register_log(fake, command->words[5], ret);
    } else if (fake->is_full) {
        put_error(ret, "OOM command not allowed when used memory > 'maxmemory'.");
    } else if (command_is(command, 1, HEARTBEAT) && command->n == 5) {
        heartbeat(fake, command->words[4], ret);
    } else {
        must(command_is(command, 1, APPEND), "an unknown command");
        size_t n_keys = (size_t)command_number(command, 2);
        struct call call = {command->words + 3, command->words + 3 + n_keys, n_keys - 2};
        must(n_keys >= 2 && command->n == 9 + n_keys + 3 * call.n_keyed, "words are missing");
        append(fake, command, &call, ret);
    }
}

/* ---- others ---- */

bool fake_log_append_foreign(
    struct fake_log *fake, const char *key, struct slice record, uint8_t request)
{
    struct fake_stream *log = fake_log_find(fake, SLICE(FOREIGN_ID));
    must(log != NULL, "the other process's log is gone");
    if (find_record(fake, slice_of(key)) != NULL) {
        return false;
    }
    set_record(fake, slice_of(key), record);
    add_request(fake, add_entry(fake, log, log->n + 1, SLICE("e")), (char)request);
    remember(fake);
    return true;
}

void fake_log_fold(struct fake_log *fake)
{
    for (size_t l = 0; l < fake->now.n_logs; l++) {
        struct fake_stream *log = &fake->now.logs[l];
        for (size_t i = 0; i < log->n_entries; i++) {
            const struct fake_entry *entry = &log->entries[i];
            for (size_t r = 0; entry->n > log->cursor && r < entry->n_requests; r++) {
                fake->now.counted[entry->requests[r]]++;
            }
        }
        log->cursor = log->n;
    }
    remember(fake);
}

void fake_log_close(struct fake_log *fake, struct fake_stream *log)
{
    must(log->cursor == log->n, "a log is closed that is not counted");
    *log = fake->now.logs[--fake->now.n_logs];
    remember(fake);
}

void fake_log_go_back(struct fake_log *fake, int64_t ms, bool beyond)
{
    size_t i = fake->n_past - 1;
    size_t floor = beyond ? 0 : fake->floor;
    while (i > floor && fake->past_ms[i] > ms) {
        i--;
    }
    fake->now = fake->past[i];
    fake->n_past = i + 1;
    fake->floor = i;
    fake->received = fake->received < i ? fake->received : i;
}

void fake_log_fail_over(struct fake_log *fake)
{
    fake->now = fake->past[fake->received];
    fake->n_past = fake->received + 1;
    fake->floor = fake->floor < fake->received ? fake->floor : fake->received;
}

static unsigned state_has(const struct fake_state *state, uint8_t request)
{
    unsigned n = state->counted[request];
    for (size_t l = 0; l < state->n_logs; l++) {
        const struct fake_stream *log = &state->logs[l];
        for (size_t i = 0; i < log->n_entries; i++) {
            const struct fake_entry *entry = &log->entries[i];
            for (size_t r = 0; entry->n > log->cursor && r < entry->n_requests; r++) {
                n += entry->requests[r] == request;
            }
        }
    }
    return n;
}

unsigned fake_log_has(const struct fake_log *fake, uint8_t request)
{
    return state_has(&fake->now, request);
}

bool fake_log_received(const struct fake_log *fake, uint8_t request)
{
    return state_has(&fake->past[fake->received], request) > 0;
}
