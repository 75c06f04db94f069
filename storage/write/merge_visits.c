#include "storage/write/merge_visits.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define VISITORS_AT_ONCE 1000 /* of write.lua: unpack() is bounded */

/* Some visitors of a site: a part of the section. */
struct site_visits {
    struct slice site;
    uint64_t site_hash;
    uint32_t first_visitor, last_visitor, n_visitors;
    uint32_t first_minute, last_minute, n_minutes;
};

struct visitor {
    uint32_t site;
    struct visitor_id id;
    int64_t newest_s;
    uint32_t first_candidate, last_candidate, n_candidates;
    uint32_t next;
};

struct candidate {
    int64_t at_s;
    struct slice page;
    uint64_t page_hash;
    uint32_t minute;
    uint32_t next;
};

struct minute {
    uint32_t site;
    uint32_t number; /* from 1, in its site */
    struct write_target targets[LEVELS];
    unsigned n;
    uint32_t next;
};

/* A visitor who came at one time only, in the order of writing. */
struct single {
    int64_t at_s;
    uint64_t page_hash;
    uint32_t visitor;
};

struct merge_visits {
    struct site_visits *sites;
    struct visitor *visitors;
    struct candidate *candidates;
    struct minute *minutes;
    struct single *singles; /* scratch of writing: room for all visitors */
    size_t n_sites, n_visitors, n_candidates, n_minutes;
    size_t sites_capacity, visitors_capacity, candidates_capacity, minutes_capacity;
    size_t singles_capacity;
    struct index visitor_index, minute_index;
};

struct merge_visits *merge_visits_new(void)
{
    return calloc(1, sizeof(struct merge_visits));
}

void merge_visits_free(struct merge_visits *merge)
{
    if (merge != NULL) {
        free(merge->sites);
        free(merge->visitors);
        free(merge->candidates);
        free(merge->minutes);
        free(merge->singles);
        index_release(&merge->visitor_index);
        index_release(&merge->minute_index);
        free(merge);
    }
}

void merge_visits_clear(struct merge_visits *merge)
{
    merge->n_sites = merge->n_visitors = merge->n_candidates = merge->n_minutes = 0;
    index_clear(&merge->visitor_index);
    index_clear(&merge->minute_index);
}

/* The open part of the site: sites are few, the last one is looked at first. */
static uint32_t find_site(struct merge_visits *merge, const struct row *row)
{
    for (size_t i = merge->n_sites; i-- > 0;) {
        struct site_visits *site = &merge->sites[i];
        if (site->site_hash == row->site_hash && slice_equal(site->site, row->site)) {
            if (site->n_visitors < VISITORS_AT_ONCE) {
                return (uint32_t)i;
            }
            break; /* full: a further part */
        }
    }
    if (!array_reserve(
            &merge->sites, &merge->sites_capacity, merge->n_sites, sizeof(*merge->sites))) {
        return INDEX_NONE;
    }
    merge->sites[merge->n_sites] = (struct site_visits){.site = row->site,
        .site_hash = row->site_hash,
        .first_visitor = INDEX_NONE,
        .last_visitor = INDEX_NONE,
        .first_minute = INDEX_NONE,
        .last_minute = INDEX_NONE};
    return (uint32_t)merge->n_sites++;
}

struct visitor_wanted {
    const struct merge_visits *merge;
    const struct visitor_id *id;
};

static bool same_visitor(const void *context, uint32_t item)
{
    const struct visitor_wanted *wanted = context; /* the id has the site in it */
    return memcmp(&wanted->merge->visitors[item].id, wanted->id, sizeof(*wanted->id)) == 0;
}

static struct visitor *find_visitor(struct merge_visits *merge, const struct row *row)
{
    if (!index_reserve(&merge->visitor_index) ||
        !array_reserve(&merge->visitors, &merge->visitors_capacity, merge->n_visitors,
            sizeof(*merge->visitors)) ||
        !array_reserve(&merge->singles, &merge->singles_capacity, merge->n_visitors,
            sizeof(*merge->singles))) {
        return NULL;
    }
    uint64_t hash;
    memcpy(&hash, row->visitor.bytes, sizeof(hash));
    struct visitor_wanted wanted = {merge, &row->visitor};
    struct index_slot *slot = index_find(&merge->visitor_index, hash, same_visitor, &wanted);
    if (slot->item != INDEX_NONE) {
        return &merge->visitors[slot->item];
    }
    uint32_t site_number = find_site(merge, row);
    if (site_number == INDEX_NONE) {
        return NULL;
    }
    uint32_t item = (uint32_t)merge->n_visitors++;
    merge->visitors[item] = (struct visitor){.site = site_number,
        .id = row->visitor,
        .newest_s = INT64_MIN,
        .first_candidate = INDEX_NONE,
        .last_candidate = INDEX_NONE,
        .next = INDEX_NONE};
    index_set(&merge->visitor_index, slot, hash, item);
    struct site_visits *site = &merge->sites[site_number];
    if (site->last_visitor == INDEX_NONE) {
        site->first_visitor = item;
    } else {
        merge->visitors[site->last_visitor].next = item;
    }
    site->last_visitor = item;
    site->n_visitors++;
    return &merge->visitors[item];
}

struct minute_wanted {
    const struct merge_visits *merge;
    uint32_t site;
    int64_t start_s;
};

static bool same_minute(const void *context, uint32_t item)
{
    const struct minute_wanted *wanted = context;
    const struct minute *minute = &wanted->merge->minutes[item];
    return minute->site == wanted->site && minute->targets[0].bucket.start_s == wanted->start_s;
}

static uint32_t find_minute(struct merge_visits *merge, uint32_t site_number,
    const struct write_target *targets, unsigned n_targets)
{
    if (!index_reserve(&merge->minute_index) ||
        !array_reserve(
            &merge->minutes, &merge->minutes_capacity, merge->n_minutes, sizeof(*merge->minutes))) {
        return INDEX_NONE;
    }
    struct minute_wanted wanted = {merge, site_number, targets[0].bucket.start_s};
    uint64_t hash = ((uint64_t)wanted.start_s / 60 + site_number) * 0x9e3779b97f4a7c15u;
    struct index_slot *slot = index_find(&merge->minute_index, hash, same_minute, &wanted);
    if (slot->item != INDEX_NONE) {
        return slot->item;
    }
    struct site_visits *site = &merge->sites[site_number];
    uint32_t item = (uint32_t)merge->n_minutes++;
    struct minute *minute = &merge->minutes[item];
    *minute = (struct minute){
        .site = site_number, .number = ++site->n_minutes, .n = n_targets, .next = INDEX_NONE};
    memcpy(minute->targets, targets, n_targets * sizeof(*targets));
    index_set(&merge->minute_index, slot, hash, item);
    if (site->last_minute == INDEX_NONE) {
        site->first_minute = item;
    } else {
        merge->minutes[site->last_minute].next = item;
    }
    site->last_minute = item;
    return item;
}

bool merge_visits_add(struct merge_visits *merge, const struct row *row, int64_t timeout_s,
    const struct write_target *targets, unsigned n_targets)
{
    struct visitor *visitor = find_visitor(merge, row);
    if (visitor == NULL || !array_reserve(&merge->candidates, &merge->candidates_capacity,
                               merge->n_candidates, sizeof(*merge->candidates))) {
        return false;
    }
    if (visitor->newest_s != INT64_MIN && row->at_s <= visitor->newest_s + timeout_s) {
        if (row->at_s > visitor->newest_s) {
            visitor->newest_s = row->at_s;
        }
        return true;
    }
    uint32_t minute = find_minute(merge, visitor->site, targets, n_targets);
    if (minute == INDEX_NONE) {
        return false;
    }
    uint32_t item = (uint32_t)merge->n_candidates++;
    merge->candidates[item] =
        (struct candidate){row->at_s, row->page, row->page_hash, minute, INDEX_NONE};
    if (visitor->last_candidate == INDEX_NONE) {
        visitor->first_candidate = item;
    } else {
        merge->candidates[visitor->last_candidate].next = item;
    }
    visitor->last_candidate = item;
    visitor->n_candidates++;
    visitor->newest_s = row->at_s;
    return true;
}

static void write_minute(const struct minute *minute, struct slice site, const char *tag,
    struct buffer *keys, size_t *n_keys, struct buffer *args, size_t *n_args)
{
    resp_decimal(args, minute->n);
    for (unsigned i = 0; i < minute->n; i++) {
        const struct write_target *target = &minute->targets[i];
        struct key key;
        key_bucket(&key, tag, KEY_VV, site, target->bucket, (struct slice){NULL, 0});
        resp_word(keys, key.p, key.n);
        resp_text(args, target->bucket.level == LEVEL_MINUTE ? "H" : "Z");
        resp_decimal(args, target->expire_ms);
    }
    *n_keys += minute->n;
    *n_args += 1 + 2 * minute->n;
}

/* Eleven digits: what write.lua stores, until the year 5138. */
static void write_time(struct buffer *args, int64_t at_s)
{
    char text[11];
    for (int i = 10; i >= 0; i--) {
        text[i] = (char)('0' + at_s % 10);
        at_s /= 10;
    }
    resp_word(args, text, sizeof(text));
}

static void write_visitor(const struct merge_visits *merge, const struct visitor *visitor,
    struct buffer *args, size_t *n_args)
{
    write_time(args, visitor->newest_s);
    resp_decimal(args, visitor->n_candidates);
    for (uint32_t c = visitor->first_candidate; c != INDEX_NONE; c = merge->candidates[c].next) {
        const struct candidate *candidate = &merge->candidates[c];
        resp_decimal(args, candidate->at_s);
        resp_decimal(args, merge->minutes[candidate->minute].number);
        resp_word(args, candidate->page.p, candidate->page.n);
    }
    *n_args += 2 + 3 * visitor->n_candidates;
}

/* Most visitors come once in a flush: those are written by time and page, not each by itself. */
static bool is_single(const struct merge_visits *merge, const struct visitor *visitor)
{
    return visitor->n_candidates == 1 &&
           merge->candidates[visitor->first_candidate].at_s == visitor->newest_s;
}

static int compare_singles(const void *a, const void *b)
{
    const struct single *x = a;
    const struct single *y = b;
    if (x->at_s != y->at_s) {
        return x->at_s < y->at_s ? -1 : 1;
    }
    if (x->page_hash != y->page_hash) {
        return x->page_hash < y->page_hash ? -1 : 1;
    }
    return x->visitor < y->visitor ? -1 : x->visitor > y->visitor;
}

static size_t sort_singles(struct merge_visits *merge, const struct site_visits *site)
{
    size_t n = 0;
    for (uint32_t v = site->first_visitor; v != INDEX_NONE; v = merge->visitors[v].next) {
        const struct visitor *visitor = &merge->visitors[v];
        if (is_single(merge, visitor)) {
            uint64_t hash = merge->candidates[visitor->first_candidate].page_hash;
            merge->singles[n++] = (struct single){visitor->newest_s, hash, v};
        }
    }
    qsort(merge->singles, n, sizeof(*merge->singles), compare_singles);
    return n;
}

static const struct candidate *candidate_of(const struct merge_visits *merge, size_t single)
{
    return &merge->candidates[merge->visitors[merge->singles[single].visitor].first_candidate];
}

/* The end of those from @from on, of @n, that share time and page. */
static size_t run_end(const struct merge_visits *merge, size_t from, size_t n)
{
    size_t end = from + 1;
    while (end < n && merge->singles[end].at_s == merge->singles[from].at_s &&
           slice_equal(candidate_of(merge, end)->page, candidate_of(merge, from)->page)) {
        end++;
    }
    return end;
}

/* The @n singles, time by time: the time, its minute, number of pages; pages, each with how many
 * visitors it has. */
static void write_singles(
    const struct merge_visits *merge, size_t n, struct buffer *args, size_t *n_args)
{
    size_t times = 0;
    for (size_t i = 0; i < n; i++) {
        times += i == 0 || merge->singles[i].at_s != merge->singles[i - 1].at_s;
    }
    resp_decimal(args, (int64_t)times);
    *n_args += 1 + 3 * times;
    for (size_t i = 0; i < n;) {
        int64_t at_s = merge->singles[i].at_s;
        size_t pages = 0;
        for (size_t j = i; j < n && merge->singles[j].at_s == at_s; j = run_end(merge, j, n)) {
            pages++;
        }
        write_time(args, at_s);
        resp_decimal(args, merge->minutes[candidate_of(merge, i)->minute].number);
        resp_decimal(args, (int64_t)pages);
        *n_args += 2 * pages;
        for (; pages > 0; pages--) {
            size_t end = run_end(merge, i, n);
            struct slice page = candidate_of(merge, i)->page;
            resp_word(args, page.p, page.n);
            resp_decimal(args, (int64_t)(end - i));
            i = end;
        }
    }
}

static void write_visitors(
    struct merge_visits *merge, const struct site_visits *site, struct buffer *args, size_t *n_args)
{
    size_t n = sort_singles(merge, site);
    for (size_t i = 0; i < n; i++) {
        const struct visitor_id *id = &merge->visitors[merge->singles[i].visitor].id;
        resp_word(args, id->bytes, sizeof(id->bytes));
    }
    for (uint32_t v = site->first_visitor; v != INDEX_NONE; v = merge->visitors[v].next) {
        if (!is_single(merge, &merge->visitors[v])) {
            resp_word(args, merge->visitors[v].id.bytes, sizeof(merge->visitors[v].id.bytes));
        }
    }
    *n_args += site->n_visitors;
    write_singles(merge, n, args, n_args);
    for (uint32_t v = site->first_visitor; v != INDEX_NONE; v = merge->visitors[v].next) {
        if (!is_single(merge, &merge->visitors[v])) {
            write_visitor(merge, &merge->visitors[v], args, n_args);
        }
    }
}

void merge_visits_write(struct merge_visits *merge, const char *tag, int64_t timeout_s,
    struct buffer *keys, size_t *n_keys, struct buffer *args, size_t *n_args)
{
    resp_decimal(args, (int64_t)merge->n_sites);
    *n_args += 1;
    for (size_t i = 0; i < merge->n_sites; i++) {
        const struct site_visits *site = &merge->sites[i];
        struct key prefix;
        key_visit_prefix(&prefix, tag, site->site);
        resp_word(keys, prefix.p, prefix.n);
        *n_keys += 1;
        resp_decimal(args, timeout_s);
        resp_decimal(args, site->n_minutes);
        resp_decimal(args, site->n_visitors);
        *n_args += 3;
        for (uint32_t m = site->first_minute; m != INDEX_NONE; m = merge->minutes[m].next) {
            write_minute(&merge->minutes[m], site->site, tag, keys, n_keys, args, n_args);
        }
        write_visitors(merge, site, args, n_args);
    }
}

void merge_visits_targets(const struct merge_visits *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data)
{
    for (size_t i = 0; i < merge->n_minutes; i++) {
        const struct minute *minute = &merge->minutes[i];
        for (unsigned t = 0; t < minute->n; t++) {
            visit(data, merge->sites[minute->site].site, &minute->targets[t]);
        }
    }
}
