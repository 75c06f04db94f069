/* merge_sketches_write.c - the commands that add visitors and addresses to sketches. */
#include <xxhash.h>

#include "storage/base/index.h"
#include "storage/merge/merge_counts.h"
#include "storage/merge/merge_writer.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define ELEMENTS_AT_ONCE 4000 /* elements of a command: fold.lua takes at most 8,000 words of it */
#define FRESH_AT_ONCE    1000 /* sketches of an MSET, for the same reason */
#define FRESH_KEPT       ((size_t)128 * 1024) /* the buffer of new sketches keeps so many bytes */
#define SKETCH_ELEMENT   8                    /* bytes of an element */
#define LEARN_MOST       4096 /* of a sketch so many elements are remembered at a time */

/* The member's element for sketches of @kind.  NULL: it has none, or that is not to be written. */
static const uint8_t *element_of(
    const struct merge_counts *merge, const struct member *member, enum key_kind kind)
{
    const struct row *row = &merge->rows[member->row];
    if (kind == KEY_UV) {
        return member->visitor ? row->visitor.bytes : NULL;
    }
    return member->address ? row->address.bytes : NULL;
}

/* Leave the member's element out of the sketch. */
static void drop_element(struct member *member, enum key_kind kind)
{
    if (kind == KEY_UV) {
        member->visitor = false;
    } else {
        member->address = false;
    }
}

/* Leave out the elements that the sketch is @known to hold (NULL: nothing is known), and note which
 * registers the others raise.  Returns how many others there are. */
static uint32_t drop_known(struct merge_counts *merge, const struct page_count *page,
    enum key_kind kind, const struct hll *known)
{
    uint32_t n = 0;
    size_t most = merge->n_places + LEARN_MOST;
    for (uint32_t m = page->members.first; m != INDEX_NONE; m = merge->members[m].next) {
        struct member *member = &merge->members[m];
        const uint8_t *element = element_of(merge, member, kind);
        if (element == NULL) {
            continue;
        }
        struct hll_place place = hll_place_of(element, SKETCH_ELEMENT);
        if (known != NULL && place.count <= known->registers[place.index]) {
            drop_element(member, kind);
            continue;
        }
        n++;
        if (merge->n_places < most && ARRAY_RESERVE(merge, places)) {
            merge->places[merge->n_places++] = place;
        }
    }
    return n;
}

/* Leave out what the sketch at @key is known to hold of the @n elements that came for it.  Returns
 * how many are left. */
static uint32_t drop_elements(struct bucket_writer *w, const struct page_count *page,
    enum key_kind kind, uint32_t n, const struct key *key)
{
    struct merge_counts *merge = w->merge;
    if (!merge_is_recent(merge, w->bucket->target.bucket)) {
        return n;
    }
    uint64_t hash = XXH3_64bits(key->p, key->n);
    const struct hll *known = known_sketches_find(w->known->sketches, hash);
    if ((n < KNOWN_SKETCHES_FEW && known == NULL) || !ARRAY_RESERVE(merge, many)) {
        return n;
    }
    struct many_elements *many = &merge->many[merge->n_many++];
    *many = (struct many_elements){.key_hash = hash, .n = n, .first_place = merge->n_places};
    n = drop_known(merge, page, kind, known);
    many->end_place = merge->n_places;
    return n;
}

/* The next element of a sketch of @kind from member *m on, which moves behind it. */
static const uint8_t *next_element(
    const struct merge_counts *merge, enum key_kind kind, uint32_t *m)
{
    for (;;) {
        const struct member *member = &merge->members[*m];
        const uint8_t *element = element_of(merge, member, kind);
        *m = member->next;
        if (element != NULL) {
            return element;
        }
    }
}

void merge_write_fresh(struct bucket_writer *w)
{
    struct merge_counts *merge = w->merge;
    if (merge->n_fresh > 0) {
        resp_head(w->out, 1 + 2 * merge->n_fresh);
        resp_text(w->out, "MSET");
        buffer_append(w->out, merge->fresh.p, merge->fresh.n);
        w->out->failed = w->out->failed || merge->fresh.failed;
        w->n++;
    }
    merge->n_fresh = 0;
    buffer_clear(&merge->fresh, FRESH_KEPT);
}

/* Make the sketch of @page, which has none in Redis, and set it.  False: it cannot be made here. */
static bool write_new(struct bucket_writer *w, const struct page_count *page, enum key_kind kind,
    const struct key *key)
{
    struct merge_counts *merge = w->merge;
    struct hll_place places[HLL_FEW];
    uint8_t sketch[HLL_FEW_SIZE];
    size_t n = 0;
    for (uint32_t m = page->members.first; m != INDEX_NONE; m = merge->members[m].next) {
        const uint8_t *element = element_of(merge, &merge->members[m], kind);
        if (element != NULL) {
            places[n++] = hll_place_of(element, SKETCH_ELEMENT);
        }
    }
    size_t size = hll_encode_few(places, n, sketch);
    int64_t expire_ms = w->bucket->target.expire_ms;
    if (size == 0) {
        return false;
    }
    if (expire_ms == 0) {
        resp_word(&merge->fresh, key->p, key->n);
        resp_word(&merge->fresh, sketch, size);
        if (++merge->n_fresh == FRESH_AT_ONCE) {
            merge_write_fresh(w);
        }
        return true;
    }
    (void)merge_note_expiry(w, key);
    resp_begin(w->out, "SET", (struct slice){key->p, key->n}, 3);
    resp_word(w->out, sketch, size);
    resp_text(w->out, "PXAT");
    resp_decimal(w->out, expire_ms);
    w->n++;
    return true;
}

/* Add the visitors, or the addresses, of @page to its sketch.  *@members is how many these are. */
static void write_sketch(
    struct bucket_writer *w, const struct page_count *page, enum key_kind kind, uint32_t *members)
{
    struct key key;
    uint32_t m = page->members.first;
    if (*members == 0) {
        return;
    }
    key_bucket(&key, w->tag, kind, w->bucket->site->name, w->bucket->target.bucket, page->page);
    if (page->is_new && *members <= HLL_FEW && write_new(w, page, kind, &key)) {
        return;
    }
    *members = drop_elements(w, page, kind, *members, &key);
    if (*members == 0) {
        return; /* and the key has its expiry */
    }
    for (uint32_t n = *members; n > 0;) {
        uint32_t now = n < ELEMENTS_AT_ONCE ? n : ELEMENTS_AT_ONCE;
        n -= now;
        resp_begin(w->out, "PFADD", (struct slice){key.p, key.n}, now);
        for (; now > 0; now--) {
            resp_word(w->out, next_element(w->merge, kind, &m), SKETCH_ELEMENT);
        }
        w->n++;
    }
    merge_write_expiry(w, &key);
}

void merge_write_sketches(struct bucket_writer *w)
{
    for (uint32_t p = w->bucket->pages.first; p != INDEX_NONE; p = w->merge->pages[p].next) {
        struct page_count *page = &w->merge->pages[p];
        write_sketch(w, page, KEY_UV, &page->n_visitors);
        write_sketch(w, page, KEY_IP, &page->n_addresses);
    }
}

void merge_counts_learn_elements(const struct merge_counts *merge, struct known_sketches *known)
{
    for (size_t i = 0; i < merge->n_many; i++) {
        const struct many_elements *many = &merge->many[i];
        struct hll *hll = known_sketches_take(known, many->key_hash, many->n, merge->now_ms);
        for (size_t p = many->first_place; hll != NULL && p < many->end_place; p++) {
            struct hll_place place = merge->places[p];
            uint8_t *value = &hll->registers[place.index];
            *value = place.count > *value ? place.count : *value;
        }
    }
}
