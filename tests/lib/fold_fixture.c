#include "tests/lib/fold_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/log/chunk.h"

static struct secret secret = {{1, 2, 3}};

const struct pace fold_no_pace = {.end_s = 0};

struct core *fold_core_make(unsigned partitions)
{
    struct core *core = calloc(1, sizeof(*core));
    cr_assert_not_null(core);
    core_init(core);
    partitions_make(partitions, &core->partitions);
    core->config.retention =
        (struct retention){.keep_s = {KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER, KEEP_FOREVER}};
    core->config.visit_timeout_s = 1800;
    cr_assert(site_zones_init(&core->sites));
    memcpy(core->cfg, FOLD_CFG, sizeof(FOLD_CFG));
    atomic_store(&core->secret, &secret);
    core_time_seen(core, FOLD_NOW_S * 1000000);
    return core;
}

void fold_core_drop(struct core *core)
{
    atomic_store(&core->secret, NULL);
    core_release(core);
    free(core);
}

struct log_entry *fold_entry_of(
    const char *id, uint64_t number, int64_t arrival_s, const struct event *events, size_t n)
{
    const struct identity_keys keys = {.secret = &secret};
    struct log_entry *entry = calloc(1, sizeof(*entry));
    cr_assert_not_null(entry);
    atomic_init(&entry->references, 1);
    (void)snprintf(entry->id, sizeof(entry->id), "%s", id);
    entry->n = number;
    entry->arrival_ms = arrival_s * 1000;
    entry->n_plain = n;
    struct buffer chunk = {0};
    cr_assert(n == 0 || chunk_write(&chunk, events, n, &keys, NULL));
    cr_assert(packed_write(&entry->packed, (struct slice){chunk.p, chunk.n}));
    buffer_release(&chunk);
    return entry;
}

struct log_entry *fold_entry(const char *id, uint64_t n, int64_t arrival_s, size_t events)
{
    static const char *const pages[] = {"/0", "/1", "/2", "/3", "/4", "/5", "/6"};
    struct event *list = calloc(events + 1, sizeof(*list));
    cr_assert_not_null(list);
    for (size_t i = 0; i < events; i++) {
        list[i] = (struct event){.at_s = arrival_s,
            .site = SLICE("shop"),
            .page = slice_of(pages[i % 7]),
            .user = i % 3 == 0 ? SLICE("ann") : SLICE(""),
            .address = {.len = 4, .bytes = {10, 0, 0, (uint8_t)i}}};
    }
    struct log_entry *entry = fold_entry_of(id, n, arrival_s, list, events);
    free(list);
    return entry;
}

struct reply fold_text(const char *text)
{
    return text == NULL ? (struct reply){.type = REPLY_NIL}
                        : (struct reply){.type = REPLY_TEXT, .text = slice_of(text)};
}

struct reply fold_array(struct reply *items, size_t n)
{
    return (struct reply){.type = REPLY_ARRAY, .items = items, .n = n};
}
