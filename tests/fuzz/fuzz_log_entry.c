/* fuzz_log_entry.c - libFuzzer target: an item of a log's stream, and any bytes as chunks.
 *
 *     make build/fuzz/log_entry
 *     build/fuzz/log_entry tests/fuzz/corpus/log_entry
 *
 * An input is taken twice: as chunks (storage/log/chunk.h), and as the parts of an item of XRANGE's
 * reply, of which a filter of users is made.  A part is one byte of length (in multiples of 64
 * where the highest bit is set) and so many bytes; the first part is the item's name, and then come
 * names and values of its fields.
 */
#include "storage/log/chunk.h"
#include "storage/log/entry.h"
#include "storage/log/entry_users.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PARTS_MAX 40

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void require_within(struct slice inner, struct slice outer, size_t least, size_t most)
{
    require(inner.n >= least && inner.n <= most);
    require(inner.n == 0 || (inner.p >= outer.p && inner.p + inner.n <= outer.p + outer.n));
}

static void check_event(const struct chunk_event *event, struct slice bytes)
{
    require_within(event->site, bytes, 1, EVENT_SITE_MAX);
    require_within(event->page, bytes, 0, EVENT_PAGE_MAX); /* activity alone has none */
    require_within(event->user, bytes, 0, EVENT_USER_MAX);
    require(event->n_actions <= EVENT_ACTIONS_MAX);
    for (unsigned i = 0; i < event->n_actions; i++) {
        require_within(event->actions[i], bytes, 1, EVENT_ACTION_MAX);
    }
    if (event->ticket != NULL) {
        require(event->user.n > 0 && event->n_actions > 0);
        require_within((struct slice){(const char *)event->ticket, 16}, bytes, 16, 16);
    }
}

/* The bytes that were read are those of the events: what ends well ends at the end, and bytes that
 * are cut off give the same events as far as they go. */
static size_t read_chunks(struct slice bytes, bool *ret_failed)
{
    struct chunk_reader reader;
    size_t n = 0;
    chunk_reader_init(&reader, bytes);
    while (chunk_next(&reader)) {
        uint64_t told = reader.n_left;
        uint64_t came = 0;
        while (chunk_next_event(&reader)) {
            check_event(&reader.event, bytes);
            came++;
        }
        require(reader.failed || came == told);
        n += came;
    }
    require(reader.failed || reader.left.n == 0);
    require(n * 2 <= bytes.n); /* flags and a time */
    require(!chunk_next(&reader) && (reader.failed || !chunk_next_event(&reader)));
    *ret_failed = reader.failed;
    chunk_reader_release(&reader);
    return n;
}

static void check_chunks(struct slice bytes)
{
    bool failed;
    bool cut_failed;
    size_t n = read_chunks(bytes, &failed);
    if (bytes.n > 0) {
        require(read_chunks((struct slice){bytes.p, bytes.n - 1}, &cut_failed) <= n);
    }
}

/* What was read from @packed is read again from what it is packed to. */
static bool is_packed(struct slice chunks, struct slice packed, struct arena *arena)
{
    struct buffer again = {0};
    struct slice back = {0};
    bool same = packed_write(&again, chunks) &&
                packed_read((struct slice){again.p, again.n}, arena, &back) == PACKED_OK &&
                slice_equal(back, chunks) && again.n <= chunks.n + 4 &&
                (packed.n > 0 || chunks.n == 0);
    buffer_release(&again);
    return same;
}

/* Nobody whose event is there is said to have none. */
static void check_user(void *data, const struct chunk_event *event)
{
    require(event->user.n == 0 || entry_may_have(data, event->site, event->user));
}

static void check_entry(struct log_entry *entry, const struct reply *fields)
{
    uint8_t head[ENTRY_HEAD];
    struct arena arena = {0};
    const size_t n = 1 + entry->n_keyed;
    entry_print_head(entry, head);
    require(entry->n > 0 && memcmp(head, fields->items[1].text.p, ENTRY_HEAD) == 0);
    require(n == (fields->n - 2) / 2);
    for (size_t i = 0; i < n; i++) {
        struct slice value = fields->items[3 + 2 * i].text;
        struct slice chunks;
        enum packed_err err = entry_chunks(entry, i, &arena, &chunks);
        require(err == PACKED_OK || (err == PACKED_BROKEN && i == 0));
        if (err == PACKED_OK) {
            require(i > 0 ? slice_equal(chunks, value) : is_packed(chunks, value, &arena));
            check_chunks(chunks);
        }
    }
    arena_release(&arena);
    (void)!entry_each_near(entry, SLICE(""), check_user, entry); /* false: no chunks */
    require(entry_bytes(entry) > 0 && entry_events(entry) == 0); /* it is not known how many */
}

/* The next part, as a reply.  False: there is none. */
static bool next_part(struct slice *left, struct reply *ret)
{
    if (left->n == 0) {
        return false;
    }
    uint8_t is = (uint8_t)left->p[0];
    size_t n = (is & 0x80) != 0 ? (size_t)(is & 0x7f) * 64 : is;
    n = n > left->n - 1 ? left->n - 1 : n;
    *ret = (struct reply){.type = REPLY_TEXT, .text = {left->p + 1, n}};
    *left = (struct slice){left->p + 1 + n, left->n - 1 - n};
    return true;
}

static void check_item(struct slice bytes)
{
    struct reply parts[PARTS_MAX];
    size_t n = 0;
    while (n < PARTS_MAX && next_part(&bytes, &parts[n])) {
        n++;
    }
    if (n == 0) {
        return;
    }
    struct reply items[2] = {parts[0], {.type = REPLY_ARRAY, .items = parts + 1, .n = n - 1}};
    struct reply item = {.type = REPLY_ARRAY, .items = items, .n = 2};
    bool foreign;
    struct log_entry *entry = entry_parse("0123456789abcdef", &item, &foreign);
    require((entry == NULL) == foreign);
    if (entry != NULL) {
        check_entry(entry, &items[1]);
    }
    entry_release(entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = {(const char *)data, size};
    check_chunks(bytes);
    check_item(bytes);
    return 0;
}
