#include "storage/log/entry.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static struct log_entry *entry_make(void)
{
    struct log_entry *entry = calloc(1, sizeof(*entry));
    if (entry != NULL) {
        atomic_init(&entry->references, 1);
    }
    return entry;
}

struct log_entry *entry_reference(struct log_entry *entry)
{
    atomic_fetch_add(&entry->references, 1);
    return entry;
}

void entry_release(struct log_entry *entry)
{
    if (entry != NULL && atomic_fetch_sub(&entry->references, 1) == 1) {
        buffer_release(&entry->packed);
        arena_release(&entry->arena);
        free(entry->keyed);
        free(atomic_load(&entry->users));
        free(entry);
    }
}

/* ---- of requests ---- */

static bool entry_add_keyed(struct log_entry *entry, struct storage_job *job)
{
    const struct write_job *write = &job->u.write;
    if (entry->keyed == NULL) {
        return false;
    }
    struct entry_keyed *keyed = &entry->keyed[entry->n_keyed];
    *keyed = (struct entry_keyed){.key = write->keyed->key,
        .body = write->keyed->body,
        .answer = write->keyed->answer,
        .chunk = job->chunk,
        .n_events = write->n,
        .is_ticketed = write->ticket != NULL};
    write->keyed->in_entry = entry->n_keyed++;
    return arena_copy(&entry->arena, &keyed->answer) && arena_copy(&entry->arena, &keyed->chunk);
}

/* How many requests have a key.  *ret_plain: how many bytes the chunks of the others have. */
static size_t count_keyed(const struct storage_job *jobs, size_t *ret_plain)
{
    size_t n = 0;
    *ret_plain = 0;
    for (; jobs != NULL; jobs = jobs->next) {
        bool keyed = jobs->u.write.keyed != NULL;
        n += keyed;
        *ret_plain += keyed ? 0 : jobs->chunk.n;
    }
    return n;
}

/* A scratch buffer keeps so many bytes for the next entry: enough for some hundred single events.
 */
#define SCRATCH_KEPT ((size_t)64 * 1024)

void entry_scratch_release(struct entry_scratch *scratch)
{
    buffer_release(&scratch->chunks);
    buffer_release(&scratch->packed);
}

/* Copy @packed into the entry, without memory to spare.  False: out of memory. */
static bool entry_set_packed(struct log_entry *entry, struct slice packed)
{
    bool ok = buffer_expect(&entry->packed, packed.n);
    buffer_append(&entry->packed, packed.p, packed.n);
    return ok;
}

/* Pack the chunks of the jobs without a key, of @n_plain bytes, into the entry. */
static bool entry_add_plain(struct log_entry *entry, const struct storage_job *jobs, size_t n_plain,
    struct entry_scratch *scratch)
{
    struct buffer *chunks = &scratch->chunks;
    buffer_clear(chunks, SCRATCH_KEPT);
    buffer_clear(&scratch->packed, SCRATCH_KEPT);
    bool ok = buffer_expect(chunks, n_plain);
    for (; ok && jobs != NULL; jobs = jobs->next) {
        if (jobs->u.write.keyed == NULL) {
            buffer_append(chunks, jobs->chunk.p, jobs->chunk.n);
            entry->n_plain += jobs->u.write.n;
        }
    }
    return ok && packed_write(&scratch->packed, (struct slice){chunks->p, chunks->n}) &&
           entry_set_packed(entry, (struct slice){scratch->packed.p, scratch->packed.n});
}

struct log_entry *entry_new(
    struct storage_job *jobs, int64_t arrival_ms, struct entry_scratch *scratch)
{
    struct log_entry *entry = entry_make();
    size_t n_plain;
    size_t n_keyed = count_keyed(jobs, &n_plain);
    if (entry == NULL) {
        return NULL;
    }
    entry->arrival_ms = arrival_ms;
    entry->keyed = n_keyed == 0 ? NULL : calloc(n_keyed, sizeof(*entry->keyed));
    bool ok = entry_add_plain(entry, jobs, n_plain, scratch);
    for (struct storage_job *job = jobs; ok && job != NULL; job = job->next) {
        if (job->u.write.keyed != NULL) {
            ok = entry_add_keyed(entry, job);
        }
    }
    if (!ok) {
        entry_release(entry);
        return NULL;
    }
    entry->jobs = jobs;
    return entry;
}

/* ---- of the stream ---- */

static bool entry_parse_head(struct log_entry *entry, struct slice head)
{
    if (head.n != ENTRY_HEAD || head.p[0] != ENTRY_VERSION) {
        return false;
    }
    uint64_t ms;
    memcpy(&ms, head.p + 1, sizeof(ms));
    entry->arrival_ms = (int64_t)le64toh(ms);
    return true;
}

static bool is_field(const struct reply *field, char name)
{
    return field->type == REPLY_TEXT && field->text.n == 1 && field->text.p[0] == name;
}

/* Are @fields those of an entry of ours? */
static bool entry_is_ours(const struct reply *fields)
{
    if (fields->type != REPLY_ARRAY || fields->n < 4 || fields->n % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < fields->n; i += 2) {
        if (!is_field(&fields->items[i], i == 0   ? 'h'
                                         : i == 2 ? 'p'
                                                  : 'k') ||
            fields->items[i + 1].type != REPLY_TEXT) {
            return false;
        }
    }
    return true;
}

static bool entry_take_fields(struct log_entry *entry, const struct reply *fields)
{
    bool expected = entry_set_packed(entry, fields->items[3].text);
    entry->n_keyed = (fields->n - 4) / 2;
    if (!expected || entry->n_keyed == 0) {
        return expected;
    }
    entry->keyed = calloc(entry->n_keyed, sizeof(*entry->keyed));
    bool ok = entry->keyed != NULL;
    for (size_t i = 0; ok && i < entry->n_keyed; i++) {
        entry->keyed[i].is_in = true;
        entry->keyed[i].chunk = fields->items[5 + 2 * i].text;
        ok = arena_copy(&entry->arena, &entry->keyed[i].chunk);
    }
    return ok;
}

/* The number in the name of an item: "<n>-0".  0: it is none of ours. */
static uint64_t item_number(const struct reply *name)
{
    struct reply digits = *name;
    if (name->type != REPLY_TEXT || name->text.n < 3 ||
        memcmp(name->text.p + name->text.n - 2, "-0", 2) != 0) {
        return 0;
    }
    digits.text.n -= 2;
    return (uint64_t)reply_integer(&digits, 0);
}

struct log_entry *entry_parse(const char *id, const struct reply *item, bool *ret_foreign)
{
    bool ours = item->type == REPLY_ARRAY && item->n == 2 && item_number(&item->items[0]) > 0 &&
                entry_is_ours(&item->items[1]);
    *ret_foreign = !ours;
    struct log_entry *entry = ours ? entry_make() : NULL;
    if (entry == NULL) {
        return NULL;
    }
    const struct reply *fields = &item->items[1];
    memcpy(entry->id, id, LOG_ID_TEXT);
    entry->n = item_number(&item->items[0]);
    entry->state = ENTRY_ANSWERED;
    if (!entry_parse_head(entry, fields->items[1].text)) {
        *ret_foreign = true;
    } else if (entry_take_fields(entry, fields)) {
        return entry;
    }
    entry_release(entry);
    return NULL;
}

/* ---- what is in it ---- */

size_t entry_events(const struct log_entry *entry)
{
    size_t n = entry->n_plain;
    for (size_t i = 0; i < entry->n_keyed; i++) {
        n += entry->keyed[i].is_in ? entry->keyed[i].n_events : 0;
    }
    return n;
}

size_t entry_bytes(const struct log_entry *entry)
{
    size_t n = sizeof(*entry) + entry->packed.capacity;
    for (size_t i = 0; i < entry->n_keyed; i++) {
        n += sizeof(entry->keyed[i]) + entry->keyed[i].chunk.n + entry->keyed[i].answer.n;
    }
    return n;
}

enum packed_err entry_chunks(
    const struct log_entry *entry, size_t i, struct arena *arena, struct slice *ret)
{
    if (i == 0) {
        return packed_read((struct slice){entry->packed.p, entry->packed.n}, arena, ret);
    }
    const struct entry_keyed *keyed = &entry->keyed[i - 1];
    *ret = keyed->is_in ? keyed->chunk : (struct slice){NULL, 0};
    return PACKED_OK;
}

void entry_print_head(const struct log_entry *entry, uint8_t head[ENTRY_HEAD])
{
    uint64_t ms = htole64((uint64_t)entry->arrival_ms);
    head[0] = ENTRY_VERSION;
    memcpy(head + 1, &ms, sizeof(ms));
}
