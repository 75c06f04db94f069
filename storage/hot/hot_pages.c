#include "storage/hot/hot_pages.h"

#include <pthread.h>
#include <stdlib.h>

#include "storage/base/cond.h"
#include "storage/base/index.h"
#include "storage/hot/space_saving.h"
#include "storage/job/counted_name.h"
#include "storage/schema/hashed_event.h"

#define CORES_MAX 8
#define COUNTERS  ((size_t)SPACE_SAVING_SETS * SPACE_SAVING_WAYS)
#define KEPT      64 /* counters that are kept of a slot that is over */

enum kind { READS, WRITES };
#define KINDS 2

/* A counter that is kept of a slot that is over. */
struct kept {
    uint64_t hash;
    uint32_t count, over;
    struct space_saving_name *name; /* owned */
};

struct slot {
    int64_t number; /* time / HOT_SLOT_MS; a slot older than the window does not count */
    struct {
        struct kept kept[KEPT];
        size_t n;
        uint32_t floor; /* the most that a page without a counter here can have had */
    } kinds[KINDS];
};

/* The counters of one core.  The lock is for the list, and for two threads that meet on a core. */
struct counters {
    pthread_mutex_t lock;
    int64_t number; /* of the slot under way */
    struct space_saving now[KINDS];
    struct slot over[HOT_SLOTS]; /* a slot lies at number % HOT_SLOTS */
};

struct hot_pages {
    int64_t begin_ms;
    unsigned n;
    struct counters cores[];
};

struct hot_pages *hot_pages_new(unsigned cores, int64_t now_ms)
{
    unsigned n = cores == 0 ? 1 : cores > CORES_MAX ? CORES_MAX : cores;
    struct hot_pages *hot = calloc(1, sizeof(*hot) + n * sizeof(hot->cores[0]));
    if (hot == NULL) {
        return NULL;
    }
    hot->begin_ms = now_ms;
    for (; hot->n < n; hot->n++) {
        mutex_init(&hot->cores[hot->n].lock);
        hot->cores[hot->n].number = now_ms / HOT_SLOT_MS;
    }
    return hot;
}

static void drop_slot(struct slot *slot)
{
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < slot->kinds[kind].n; i++) {
            free(slot->kinds[kind].kept[i].name);
        }
        slot->kinds[kind].n = 0;
        slot->kinds[kind].floor = 0;
    }
}

void hot_pages_free(struct hot_pages *hot)
{
    for (unsigned i = 0; hot != NULL && i < hot->n; i++) {
        struct counters *c = &hot->cores[i];
        for (int s = 0; s < HOT_SLOTS; s++) {
            drop_slot(&c->over[s]);
        }
        for (int kind = 0; kind < KINDS; kind++) {
            space_saving_clear(&c->now[kind]);
        }
        pthread_mutex_destroy(&c->lock);
    }
    free(hot);
}

/* ---- a slot ends ---- */

static int by_count(const void *a, const void *b)
{
    const struct kept *x = a;
    const struct kept *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

/* Counter @i of COUNTERS, as it would be kept. */
static struct kept counter_at(const struct space_saving *now, size_t i)
{
    const struct space_saving_set *set = &now->sets[i / SPACE_SAVING_WAYS];
    size_t way = i % SPACE_SAVING_WAYS;
    return (struct kept){set->hash[way], set->count[way], set->over[way], set->name[way]};
}

/* The most that a page can have had that has no counter, or one whose name is not known. */
static uint32_t floor_of(const struct space_saving *now)
{
    uint32_t floor = space_saving_floor(now);
    for (size_t i = 0; i < COUNTERS; i++) {
        struct kept counter = counter_at(now, i);
        floor = counter.name == NULL && counter.count > floor ? counter.count : floor;
    }
    return floor;
}

/* Keep the greatest counters of @now in @slot, which then owns their names.  Empties @now. */
static void keep_greatest(struct space_saving *now, struct slot *slot, enum kind kind)
{
    struct kept all[COUNTERS];
    size_t n = 0;
    uint32_t floor = floor_of(now);
    for (size_t i = 0; i < COUNTERS; i++) {
        all[n] = counter_at(now, i);
        n += all[n].name != NULL;
        now->sets[i / SPACE_SAVING_WAYS].name[i % SPACE_SAVING_WAYS] = NULL;
    }
    qsort(all, n, sizeof(all[0]), by_count);
    for (size_t i = KEPT; i < n; i++) {
        floor = all[i].count > floor ? all[i].count : floor;
        free(all[i].name);
    }
    slot->kinds[kind].n = n < KEPT ? n : KEPT;
    memcpy(slot->kinds[kind].kept, all, slot->kinds[kind].n * sizeof(all[0]));
    slot->kinds[kind].floor = floor;
    space_saving_clear(now);
}

/* Let the slot of @now_ms be the one under way.  With the lock held. */
static void turn_slot(struct counters *c, int64_t now_ms)
{
    int64_t number = now_ms / HOT_SLOT_MS;
    if (number <= c->number) { /* another thread's time may be a moment ahead */
        return;
    }
    struct slot *slot = &c->over[c->number % HOT_SLOTS];
    drop_slot(slot);
    slot->number = c->number;
    for (int kind = 0; kind < KINDS; kind++) {
        keep_greatest(&c->now[kind], slot, (enum kind)kind);
    }
    c->number = number;
}

/* ---- counting ---- */

static struct counters *lock_core(struct hot_pages *hot, unsigned core, int64_t now_ms)
{
    struct counters *c = &hot->cores[core % hot->n];
    pthread_mutex_lock(&c->lock);
    turn_slot(c, now_ms);
    return c;
}

static bool is_page(struct slice name)
{
    return name.n > 0 && counted_name_mark(name) == '\0';
}

void hot_pages_writes(
    struct hot_pages *hot, unsigned core, int64_t now_ms, const struct event *events, size_t n)
{
    struct counters *c = lock_core(hot, core, now_ms);
    for (size_t i = 0; i < n; i++) {
        if (is_page(events[i].page)) {
            space_saving_add(&c->now[WRITES], page_hash(events[i].site, events[i].page),
                events[i].site, events[i].page);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

void hot_pages_reads(struct hot_pages *hot, unsigned core, int64_t now_ms, struct slice site,
    const struct slice *pages, size_t n)
{
    if (n == 0) {
        return;
    }
    struct counters *c = lock_core(hot, core, now_ms);
    for (size_t i = 0; i < n; i++) {
        if (is_page(pages[i])) {
            space_saving_add(&c->now[READS], page_hash(site, pages[i]), site, pages[i]);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

/* ---- the list ---- */

/* What one slot of one core has counted of a page. */
struct part {
    uint64_t hash;
    enum kind kind;
    uint32_t count, over, floor; /* floor: of the slot */
    char *text;                  /* owned; a copy of the name */
    uint16_t site_n, page_n;
};

struct parts {
    struct part *parts;
    size_t n, capacity;
    uint64_t floors[KINDS]; /* sums over all slots and cores */
};

static bool add_part(struct parts *parts, enum kind kind, const struct kept *kept, uint32_t floor)
{
    if (!array_reserve(&parts->parts, &parts->capacity, parts->n, sizeof(*parts->parts))) {
        return false;
    }
    size_t n = (size_t)kept->name->site_n + kept->name->page_n;
    struct part *part = &parts->parts[parts->n];
    *part = (struct part){.hash = kept->hash,
        .kind = kind,
        .count = kept->count,
        .over = kept->over,
        .floor = floor,
        .text = malloc(n == 0 ? 1 : n),
        .site_n = kept->name->site_n,
        .page_n = kept->name->page_n};
    if (part->text == NULL) {
        return false;
    }
    memcpy(part->text, kept->name->text, n);
    parts->n++;
    return true;
}

/* Add the slot under way as if it were over. */
static bool add_now(struct parts *parts, const struct counters *c, enum kind kind)
{
    uint32_t floor = floor_of(&c->now[kind]);
    bool ok = true;
    for (size_t i = 0; ok && i < COUNTERS; i++) {
        struct kept counter = counter_at(&c->now[kind], i);
        ok = counter.name == NULL || add_part(parts, kind, &counter, floor);
    }
    parts->floors[kind] += floor;
    return ok;
}

static bool add_slot(struct parts *parts, const struct slot *slot, enum kind kind)
{
    bool ok = true;
    for (size_t i = 0; ok && i < slot->kinds[kind].n; i++) {
        ok = add_part(parts, kind, &slot->kinds[kind].kept[i], slot->kinds[kind].floor);
    }
    parts->floors[kind] += slot->kinds[kind].floor;
    return ok;
}

static bool gather_parts(struct hot_pages *hot, int64_t now_ms, struct parts *parts)
{
    bool ok = true;
    for (unsigned i = 0; ok && i < hot->n; i++) {
        struct counters *c = lock_core(hot, i, now_ms);
        for (int kind = 0; ok && kind < KINDS; kind++) {
            ok = add_now(parts, c, (enum kind)kind);
            for (int s = 0; ok && s < HOT_SLOTS; s++) {
                if (c->over[s].number > c->number - HOT_SLOTS) {
                    ok = add_slot(parts, &c->over[s], (enum kind)kind);
                }
            }
        }
        pthread_mutex_unlock(&c->lock);
    }
    return ok;
}

static int by_hash(const void *a, const void *b)
{
    const struct part *x = a;
    const struct part *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

/* Sum up the @n parts of one page.  The page takes the name of the first part over. */
static struct hot_page page_of(const struct parts *parts, struct part *part, size_t n, double s)
{
    uint64_t count[KINDS] = {0};
    uint64_t off[KINDS] = {parts->floors[READS], parts->floors[WRITES]};
    for (size_t i = 0; i < n; i++) {
        count[part[i].kind] += part[i].count;
        off[part[i].kind] += part[i].over;
        off[part[i].kind] -= part[i].floor; /* the page has a counter in that slot */
    }
    struct hot_page page = {
        .site = {part->text, part->site_n},
        .page = {part->text + part->site_n, part->page_n},
        .text = part->text,
        .reads_per_s = (double)count[READS] / s,
        .writes_per_s = (double)count[WRITES] / s,
        .error = (double)(off[READS] > off[WRITES] ? off[READS] : off[WRITES]) / s,
    };
    part->text = NULL;
    return page;
}

/* The seconds that the counts cover: since the oldest slot of the window, or the process, began. */
static double seconds_counted(const struct hot_pages *hot, int64_t now_ms)
{
    int64_t first_ms = (now_ms / HOT_SLOT_MS - HOT_SLOTS + 1) * HOT_SLOT_MS;
    first_ms = first_ms > hot->begin_ms ? first_ms : hot->begin_ms;
    return now_ms - first_ms < 1000 ? 1 : (double)(now_ms - first_ms) / 1000;
}

/* Free the @n last pages.  Returns the highest rate that one of them, or a page without a part, can
 * have. */
static double drop_pages(const struct parts *parts, struct hot_page *pages, size_t n, double s)
{
    uint64_t floor =
        parts->floors[READS] > parts->floors[WRITES] ? parts->floors[READS] : parts->floors[WRITES];
    double absent = (double)floor / s;
    for (size_t i = 0; i < n; i++) {
        double most = hot_page_most(&pages[i]);
        absent = most > absent ? most : absent;
        free(pages[i].text);
    }
    return absent;
}

bool hot_pages_list(struct hot_pages *hot, int64_t now_ms, size_t limit, struct hot_page **ret,
    size_t *ret_n, double *ret_absent)
{
    struct parts parts = {0};
    double seconds = seconds_counted(hot, now_ms);
    bool ok = gather_parts(hot, now_ms, &parts);
    struct hot_page *pages = ok ? malloc((parts.n + 1) * sizeof(*pages)) : NULL;
    size_t n = 0;
    if (pages != NULL) {
        if (parts.n > 0) {
            qsort(parts.parts, parts.n, sizeof(*parts.parts), by_hash);
        }
        for (size_t i = 0, end = 0; i < parts.n; i = end) {
            for (end = i + 1; end < parts.n && parts.parts[end].hash == parts.parts[i].hash;
                 end++) {
            }
            pages[n++] = page_of(&parts, &parts.parts[i], end - i, seconds);
        }
        hot_pages_sort(pages, n);
        *ret = pages;
        *ret_n = n < limit ? n : limit;
        *ret_absent = drop_pages(&parts, pages + *ret_n, n - *ret_n, seconds);
    }
    for (size_t i = 0; i < parts.n; i++) {
        free(parts.parts[i].text);
    }
    free(parts.parts);
    return pages != NULL;
}
