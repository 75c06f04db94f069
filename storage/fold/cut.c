#include "storage/fold/cut.h"

#include <xxhash.h>

#include "storage/schema/key.h"
#include "storage/time/units.h"

/* Rough cost in Redis of counting one event in one bucket, in tenths of a microsecond, measured.
 * Late events go to up to four buckets; expiries and long names cost too. */
#define PAGE_COST       30   /* a counter, two PFADD, and their keys */
#define SAME_PAGE_COST  3    /* one more element for what is there already */
#define VALUE_COST      8    /* of a value of a dimension that is new in the minute.. */
#define SAME_VALUE_COST 1    /* ..and where it is there already */
#define SPARSE_COST     14   /* the same, while a sketch is small: Redis moves its bytes.. */
#define SPARSE          1500 /* ..up to about so many elements */
#define KNOWN_COST      1    /* of a site whose sketch is remembered: most elements are left out */
#define KNOWN           (SIZE_MAX / 2) /* repeats of such a site */
#define VISIT_COST      5              /* an entry written */
#define START_COST      8              /* a visit counted, where the page is new */
#define EXPIRY_COST     16             /* PEXPIREAT of what is written late */
#define USER_COST       8              /* a user's index given, and a bit */
#define ACTION_COST     2              /* a further bit */
#define USERS_COST      60             /* the first user of a site and day: indices, a bitmap */
#define BITMAP_COST     20             /* a further bitmap */
#define FIRST_COST      20             /* of an action that is asked about: a GETBIT */
#define NOTE_COST       40             /* the note of a request that asks: APPEND, PEXPIRE */
#define STATE_COST      30             /* a partition's state: its cursors */
#define BYTES_PER_COST  64             /* of a name, which stands in several keys */
#define COST_PER_US     10

#define PAGES_SEEN 512 /* a page that is forgotten among so many is taken for a new one */

/* What lies in the transaction already, as far as it is remembered. */
struct estimate {
    struct write_plan plan; /* which buckets an event goes to, as far as is known now */
    struct partition_view view;
    const struct known_sketches *sketches; /* NULL: nothing is known */
    const char *tag;
    struct {
        uint64_t
            mark; /* hash of a page, of where visits begin, or of a site, with a bucket; 0: none */
        size_t n; /* how many there were of it */
    } seen[PAGES_SEEN];
    const struct row_site *user_site; /* of the last user.. */
    int64_t user_day;                 /* ..and the day, of UTC: this is a guess of costs */
};

static void estimate_init(struct estimate *e, const struct cutter *cutter)
{
    struct core *core = cutter->core;
    unsigned partition = cutter->partition;
    e->sketches = cutter->sketches;
    e->tag = core->partitions.tag[partition];
    memset(e->seen, 0, sizeof(e->seen));
    e->view = core_view(core, partition);
    write_plan_init(&e->plan, &e->view.retention, &e->view.state);
    e->user_site = NULL;
    e->user_day = INT64_MIN;
}

/* Is @row of the same site and time as the last one?  Remembers it. */
static bool continues(
    const struct row_site **site, int64_t *time, const struct row *row, int64_t at)
{
    bool same = *time == at && *site == row->site;
    *site = row->site;
    *time = at;
    return same;
}

static size_t expiry_cost(const struct write_target *target)
{
    return target->expire_ms > 0 ? EXPIRY_COST : 0;
}

/* How often the page with this hash was there in the bucket, as far as is remembered: a counter. */
static size_t *repeats_of(struct estimate *e, uint64_t hash, struct bucket bucket)
{
    hash ^= (uint64_t)bucket.start_s + (uint64_t)bucket.level;
    uint64_t mark = (hash * UINT64_C(0x9e3779b97f4a7c15)) | 1;
    size_t slot = mark >> 32 & (PAGES_SEEN - 1);
    if (e->seen[slot].mark != mark) {
        e->seen[slot].mark = mark;
        e->seen[slot].n = 0;
    }
    return &e->seen[slot].n;
}

/* Of what is counted for a name with this hash: @new_cost in a bucket that has not got it yet. */
static size_t name_cost(struct estimate *e, uint64_t hash, size_t new_cost, size_t same_cost)
{
    size_t cost = 0;
    for (unsigned t = 0; t < e->plan.n; t++) {
        const struct write_target *target = &e->plan.targets[t];
        bool is_new = (*repeats_of(e, hash, target->bucket))++ == 0;
        cost += !is_new ? same_cost : new_cost + expiry_cost(target);
    }
    return cost;
}

/* Is it remembered what the site's visitors of the minute are? */
static bool is_known(const struct estimate *e, const struct row *row)
{
    struct key key;
    struct bucket minute = bucket_at(row->site->zone, LEVEL_MINUTE, e->plan.minute_s);
    if (e->sketches == NULL) {
        return false;
    }
    key_bucket(&key, e->tag, KEY_UV, row->site->name, minute, SLICE(""));
    return known_sketches_find(e->sketches, XXH3_64bits(key.p, key.n)) != NULL;
}

static size_t activity_cost(struct estimate *e, const struct row *row)
{
    size_t cost = USER_COST + row->n_actions * (size_t)ACTION_COST + row->user.n / BYTES_PER_COST;
    cost += row->ticket == NULL ? 0 : NOTE_COST + row->n_actions * (size_t)FIRST_COST;
    bool more = continues(&e->user_site, &e->user_day, row, row->at_s / DAY_S);
    return more ? cost : cost + USERS_COST + row->n_actions * (size_t)BITMAP_COST;
}

/* All of a site and bucket go to one key, so its sketches get large. */
static size_t site_cost_in(
    struct estimate *e, const struct row *row, const struct write_target *target)
{
    const size_t expiry = expiry_cost(target);
    size_t *n = repeats_of(e, row->site->hash, target->bucket);
    size_t n_same = (*n)++;
    if (n_same >= KNOWN) {
        return KNOWN_COST;
    }
    if (n_same == 0) {
        *n = e->plan.n == 1 && is_known(e, row) ? KNOWN : *n;
        return PAGE_COST + expiry + row->n_values * (size_t)(VALUE_COST + expiry / 2);
    }
    size_t values = row->n_values * (size_t)SAME_VALUE_COST;
    return values + (n_same < SPARSE ? SPARSE_COST : SAME_PAGE_COST);
}

static size_t site_cost(struct estimate *e, const struct row *row)
{
    size_t cost = 0;
    for (unsigned t = 0; t < e->plan.n; t++) {
        cost += site_cost_in(e, row, &e->plan.targets[t]);
    }
    return cost;
}

static size_t task_cost(struct estimate *e, const struct row *row, enum task_kind kind)
{
    write_plan_in(&e->plan, row->site->zone);
    write_plan_at(&e->plan, row->at_s);
    size_t name = row->page.n / BYTES_PER_COST;
    switch (kind) {
    case TASK_PAGE:
        return name_cost(e, row->page_hash, PAGE_COST + name, SAME_PAGE_COST);
    case TASK_SITE:
        return row->is_view ? site_cost(e, row) : 0;
    case TASK_VISIT: /* its starts go to a page of their own key */
        return VISIT_COST + (row->user_is_visitor ? activity_cost(e, row) : 0) +
               (row->is_view ? name_cost(e, ~row->page_hash, START_COST + name, 0) : 0);
    case TASK_USER:
        return activity_cost(e, row);
    }
    return PAGE_COST;
}

void cutter_begin(struct cutter *cutter, struct core *core, const struct batch *batch)
{
    *cutter = (struct cutter){.core = core, .batch = batch};
}

unsigned cut_first(const struct batch *batch, unsigned n_partitions)
{
    unsigned most = 0;
    size_t all = 0;
    for (unsigned p = 0; p < n_partitions; p++) {
        all += batch->tasks[p].n;
        most = batch->tasks[p].n > batch->tasks[most].n ? p : most;
    }
    return batch->tasks[most].n * n_partitions > 2 * all ? most : 0;
}

/* Take the next partition from @first on that no other cutter has taken.  None is left: all is
 * done. */
static void take_shared(struct cutter *cutter, unsigned first)
{
    const unsigned n = cutter->core->partitions.n;
    cutter->partition = n;
    for (unsigned i = 0; i < n && cutter->partition == n; i++) {
        unsigned p = (first + i) % n;
        if (!atomic_exchange(&cutter->shares->is_taken[p], true)) {
            cutter->partition = p;
        }
    }
}

void cutter_share(struct cutter *cutter, struct cut_shares *shares, unsigned first)
{
    cutter->shares = shares;
    take_shared(cutter, first);
}

/* Where the tasks of a partition may be cut: behind a stripe, an entry, an event. */
struct cut_places {
    uint32_t stripe_end, entry_end, event_end; /* tasks; all at the first one: nowhere yet */
};

/* May the tasks be cut in front of task @i, which is not the first one of the cut? */
static void note_places(struct cut_places *places, const struct batch *batch,
    const struct batch_tasks *tasks, uint32_t i)
{
    uint32_t row = task_row_number(tasks->tasks[i]);
    uint32_t before = task_row_number(tasks->tasks[i - 1]);
    if (task_stripe(batch->rows, tasks->tasks[i]) !=
        task_stripe(batch->rows, tasks->tasks[i - 1])) {
        places->stripe_end = i;
    } else if (row != before) {
        places->event_end = i;
        places->entry_end = before < batch_entry_start(batch, row) ? i : places->entry_end;
    }
}

/* End @cut at the best of the places. */
static void cut_at(struct cut *cut, const struct cut_places *places, const struct batch *batch,
    const struct batch_tasks *tasks)
{
    bool behind_stripe = places->stripe_end > cut->from;
    bool behind_entry = places->entry_end > cut->from;
    cut->to = behind_stripe  ? places->stripe_end
              : behind_entry ? places->entry_end
                             : places->event_end;
    uint32_t row = task_row_number(tasks->tasks[cut->to]);
    cut->end_stripe = (uint8_t)task_stripe(batch->rows, tasks->tasks[cut->to]);
    cut->to_row = behind_stripe ? 0 : behind_entry ? batch_entry_start(batch, row) : row;
}

/* What fits of the partition at hand.  True: all the rest of it. */
static bool cut_partition(const struct cutter *cutter, size_t limit_us, struct cut *ret)
{
    const struct batch *batch = cutter->batch;
    const struct batch_tasks *tasks = &batch->tasks[cutter->partition];
    const uint32_t from = cutter->task;
    struct cut_places places = {from, from, from};
    struct estimate e;
    size_t cost = STATE_COST;
    *ret = (struct cut){
        .partition = cutter->partition, .from = from, .first_stripe = cutter->first_stripe};
    if (from < tasks->n) { /* most partitions get nothing of a small batch */
        estimate_init(&e, cutter);
    }
    for (uint32_t i = from; i < tasks->n; i++) {
        if (i > from) {
            note_places(&places, batch, tasks, i);
        }
        cost += task_cost(
            &e, &batch->rows[task_row_number(tasks->tasks[i])], task_kind_of(tasks->tasks[i]));
        if (cost > limit_us * COST_PER_US &&
            (places.stripe_end > from || places.event_end > from)) {
            cut_at(ret, &places, batch, tasks);
            ret->us = (uint32_t)(cost / COST_PER_US);
            return false;
        }
    }
    ret->to = (uint32_t)tasks->n;
    ret->end_stripe = LOG_STRIPES;
    ret->us = (uint32_t)(cost / COST_PER_US);
    return true;
}

/* The first partition from @p on that is to be counted; their number: none. */
static unsigned next_partition(const struct cutter *cutter, unsigned p)
{
    while (
        cutter->only != NULL && p < cutter->core->partitions.n && !part_set_has(cutter->only, p)) {
        p++;
    }
    return p;
}

unsigned cutter_next(
    struct cutter *cutter, uint32_t limit_us, struct cut ret[CUTS_MAX], bool *ret_last)
{
    unsigned n = 0;
    size_t us = 0;
    const unsigned most = cutter->only == NULL ? CUTS_MAX : 1;
    cutter->partition = next_partition(cutter, cutter->partition);
    while (n < most && cutter->partition < cutter->core->partitions.n) {
        bool whole = cut_partition(cutter, limit_us, &ret[n]);
        if (n > 0 && (!whole || us + ret[n].us > limit_us)) {
            break; /* the next transaction begins with it */
        }
        us += ret[n].us;
        cutter->task = whole ? 0 : ret[n].to;
        cutter->first_stripe = whole ? 0 : ret[n].end_stripe;
        if (whole && cutter->shares != NULL) {
            take_shared(cutter, cutter->partition + 1);
        } else {
            cutter->partition = next_partition(cutter, cutter->partition + whole);
        }
        n++;
        if (!whole) {
            break;
        }
    }
    *ret_last = cutter->partition == cutter->core->partitions.n;
    return n;
}
