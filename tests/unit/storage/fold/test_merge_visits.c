#include "storage/fold/merge_visits.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/dice.h"
#include "tests/lib/resp_words.h"
#include "tests/lib/text_lines.h"

TestSuite(merge_visits, .timeout = 60);

#define TAG        "7"
#define NOW_S      INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */
#define TIMEOUT_S  INT64_C(1800)
#define PEOPLE_MAX 3000

static struct row row_of(const char *site, const char *page, int64_t at_s, uint32_t visitor)
{
    uint64_t site_hash = page_hash(slice_of(site), SLICE(""));
    struct row row = {.at_s = at_s,
        .site = slice_of(site),
        .page = slice_of(page),
        .site_hash = site_hash,
        .has_visitor = true};
    memcpy(row.visitor.bytes, &site_hash, sizeof(site_hash));
    memcpy(row.visitor.bytes + 8, &visitor, sizeof(visitor));
    return row;
}

static void plan_make(struct write_plan *plan)
{
    static const struct retention retention = {
        .keep_s = {2 * 86400, 62 * 86400, 1100 * 86400, KEEP_FOREVER}};
    struct rollup_state state = rollup_state_initial(zone_utc(), NOW_S);
    state.readers_s[LEVEL_HOUR] -= 3600; /* the last hour is closing */
    write_plan_init(plan, zone_utc(), &retention, &state);
}

static void print_bucket(char *text, size_t size, struct slice site, struct bucket bucket)
{
    time_t at = (time_t)bucket.start_s;
    struct tm tm;
    char start[16];
    gmtime_r(&at, &tm);
    strftime(start, sizeof(start), "%Y%m%d%H%M", &tm);
    snprintf(
        text, size, "t:{" TAG "}:vv:%.*s:%c%s", (int)site.n, site.p, "mhdM"[bucket.level], start);
}

/* ---- a section, read by write.lua's rule ---- */

/* What Redis remembers of a visitor: the newest entry of the last three slots. */
struct memory {
    struct visitor_id id;
    int64_t newest_s, arrival_s;
};

struct redis {
    struct memory *memories; /* owned; PEOPLE_MAX of them */
    size_t n;
    struct text_lines starts;  /* "<key> <page>" for each visit, in each bucket */
    struct text_lines buckets; /* "<key> <expiry>" for each bucket of the last section */
    size_t largest;            /* most visitors in a part of a section */
};

static struct memory *find_memory(struct redis *redis, struct slice id)
{
    for (size_t i = 0; i < redis->n; i++) {
        if (memcmp(redis->memories[i].id.bytes, id.p, id.n) == 0) {
            return &redis->memories[i];
        }
    }
    cr_assert_lt(redis->n, (size_t)PEOPLE_MAX);
    struct memory *memory = &redis->memories[redis->n++];
    *memory = (struct memory){.newest_s = -1, .arrival_s = INT64_MIN / 2};
    memcpy(memory->id.bytes, id.p, id.n);
    return memory;
}

/* One minute of a part: its buckets' keys. */
struct minute {
    struct slice keys[LEVELS];
    int64_t n;
};

static bool read_minute(
    struct redis *redis, struct resp_words *keys, struct resp_words *args, struct minute *ret)
{
    ret->n = resp_words_number(args);
    if (ret->n < 1 || ret->n > LEVELS) {
        return false;
    }
    for (int64_t l = 0; l < ret->n; l++) {
        ret->keys[l] = resp_words_take(keys);
        struct slice kind = resp_words_take(args);
        text_lines_add(&redis->buckets, "%.*s %" PRId64, (int)ret->keys[l].n, ret->keys[l].p,
            resp_words_number(args));
        if (!slice_equal(kind, l == 0 ? SLICE("H") : SLICE("Z"))) {
            return false;
        }
    }
    return true;
}

/* A candidate of the visitor @memory; if it starts a visit, that is noted. */
static void read_candidate(struct redis *redis, const struct memory *memory, bool known,
    int64_t at_s, const struct minute *minute, struct slice page)
{
    for (int64_t l = 0; l < minute->n && (!known || at_s > memory->newest_s + TIMEOUT_S); l++) {
        struct slice key = minute->keys[l];
        text_lines_add(&redis->starts, "%.*s %.*s", (int)key.n, key.p, (int)page.n, page.p);
    }
}

static bool is_known(const struct memory *memory, int64_t arrival_s)
{
    return arrival_s - memory->arrival_s <= 2 * TIMEOUT_S;
}

static void remember(struct memory *memory, int64_t newest_s, int64_t arrival_s)
{
    bool later = is_known(memory, arrival_s) && memory->newest_s > newest_s;
    memory->newest_s = later ? memory->newest_s : newest_s;
    memory->arrival_s = arrival_s;
}

/* Visitors that came at one time only, from the first one on; how many goes into *ret. */
static const char *read_singles(struct redis *redis, int64_t arrival_s,
    const struct minute *minutes, int64_t n_minutes, struct resp_words *args,
    const struct slice *ids, int64_t n_ids, int64_t *ret)
{
    *ret = 0;
    for (int64_t times = resp_words_number(args); times > 0; times--) {
        struct slice time = resp_words_take(args);
        int64_t m = resp_words_number(args);
        int64_t pages = resp_words_number(args);
        if (time.n != 11 || m < 1 || m > n_minutes || pages < 1) {
            return "a time without a minute, or without a page";
        }
        int64_t at_s = strtoll(time.p, NULL, 10);
        for (; pages > 0; pages--) {
            struct slice page = resp_words_take(args);
            int64_t n = resp_words_number(args);
            if (args->failed || n < 1 || *ret + n > n_ids) {
                return "a page without visitors, or with too many";
            }
            for (; n > 0; n--) {
                struct memory *memory = find_memory(redis, ids[(*ret)++]);
                bool known = is_known(memory, arrival_s);
                read_candidate(redis, memory, known, at_s, &minutes[m - 1], page);
                remember(memory, at_s, arrival_s);
            }
        }
    }
    return NULL;
}

/* Candidates of one visitor; those that start a visit are noted. */
static const char *read_visitor(struct redis *redis, struct slice id, int64_t arrival_s,
    const struct minute *minutes, int64_t n_minutes, struct resp_words *args)
{
    struct slice newest_text = resp_words_take(args);
    int64_t n = resp_words_number(args);
    struct memory *memory = find_memory(redis, id);
    bool known = is_known(memory, arrival_s);
    if (newest_text.n != 11 || n < 1) {
        return "the newest time is not eleven digits, or there is no candidate";
    }
    for (; n > 0; n--) {
        int64_t at_s = resp_words_number(args);
        int64_t m = resp_words_number(args);
        struct slice page = resp_words_take(args);
        if (args->failed || m < 1 || m > n_minutes) {
            return "a candidate without a minute";
        }
        read_candidate(redis, memory, known, at_s, &minutes[m - 1], page);
    }
    remember(memory, strtoll(newest_text.p, NULL, 10), arrival_s);
    return NULL;
}

static const char *read_part(
    struct redis *redis, int64_t arrival_s, struct resp_words *keys, struct resp_words *args)
{
    struct slice prefix = resp_words_take(keys);
    int64_t timeout_s = resp_words_number(args);
    int64_t n_minutes = resp_words_number(args);
    int64_t n_visitors = resp_words_number(args);
    const char *fault = NULL;
    if (timeout_s != TIMEOUT_S || n_minutes < 1 || n_visitors < 1 ||
        prefix.p[prefix.n - 1] != ':') {
        return "the head of a part is wrong";
    }
    redis->largest = (size_t)n_visitors > redis->largest ? (size_t)n_visitors : redis->largest;
    struct minute *minutes = calloc((size_t)n_minutes, sizeof(*minutes));
    for (int64_t m = 0; m < n_minutes && fault == NULL; m++) {
        fault = read_minute(redis, keys, args, &minutes[m]) ? NULL : "a minute is wrong";
    }
    size_t ids = args->next;
    for (int64_t v = 0; v < n_visitors && fault == NULL; v++) {
        fault =
            resp_words_take(args).n == sizeof(struct visitor_id) ? NULL : "an id is not 16 bytes";
    }
    int64_t singles = 0;
    if (fault == NULL) {
        fault = read_singles(
            redis, arrival_s, minutes, n_minutes, args, &args->words[ids], n_visitors, &singles);
    }
    for (int64_t v = singles; v < n_visitors && fault == NULL; v++) {
        fault =
            read_visitor(redis, args->words[ids + (size_t)v], arrival_s, minutes, n_minutes, args);
    }
    free(minutes);
    return fault;
}

/* Write the section and let @redis take it, at its time @arrival_s.  A fault, or NULL. */
static const char *flush(struct merge_visits *merge, struct redis *redis, int64_t arrival_s)
{
    struct buffer key_words;
    struct buffer arg_words;
    struct resp_words keys = {0};
    struct resp_words args = {0};
    size_t n_keys = 4;
    size_t n_args = 6;
    const char *fault = NULL;
    text_lines_clear(&redis->buckets);
    buffer_init(&key_words);
    buffer_init(&arg_words);
    merge_visits_write(merge, TAG, TIMEOUT_S, &key_words, &n_keys, &arg_words, &n_args);
    if (!resp_words_read(&key_words, &keys) || !resp_words_read(&arg_words, &args) ||
        keys.n != n_keys - 4 || args.n != n_args - 6) {
        fault = "the numbers of words are wrong";
    }
    for (int64_t n = resp_words_number(&args); n > 0 && fault == NULL; n--) {
        fault = read_part(redis, arrival_s, &keys, &args);
    }
    if (fault == NULL && !(resp_words_over(&keys) && resp_words_over(&args))) {
        fault = "too many words, or too few";
    }
    resp_words_release(&keys);
    resp_words_release(&args);
    buffer_release(&key_words);
    buffer_release(&arg_words);
    return fault;
}

/* ---- the model: one visitor, one event at a time ---- */

struct person {
    struct row row; /* of the last event */
    bool seen;
    int64_t last_s, arrival_s;
};

/* No event in the timeout before, in the order of arrival; one older than the last starts none; who
 * did not come for two timeouts is forgotten. */
static bool starts_visit(struct person *person, int64_t at_s, int64_t arrival_s)
{
    bool known = person->seen && arrival_s - person->arrival_s <= 2 * TIMEOUT_S;
    bool starts = !known || at_s > person->last_s + TIMEOUT_S;
    person->last_s = known && person->last_s > at_s ? person->last_s : at_s;
    person->arrival_s = arrival_s;
    person->seen = true;
    return starts;
}

static void expect_start(
    struct text_lines *ret, const struct row *row, const struct write_plan *plan)
{
    for (unsigned t = 0; t < plan->n; t++) {
        char key[128];
        print_bucket(key, sizeof(key), row->site, plan->targets[t].bucket);
        text_lines_add(ret, "%s %.*s", key, (int)row->page.n, row->page.p);
    }
}

/* ---- both side by side ---- */

struct scene {
    struct merge_visits *merge;
    struct write_plan plan;
    struct redis redis;
    struct text_lines expected;
};

static void set_up(struct scene *s)
{
    *s = (struct scene){.merge = merge_visits_new()};
    s->redis.memories = calloc(PEOPLE_MAX, sizeof(*s->redis.memories));
    cr_assert(s->merge != NULL && s->redis.memories != NULL);
    plan_make(&s->plan);
}

static void tear_down(struct scene *s)
{
    merge_visits_free(s->merge);
    free(s->redis.memories);
    text_lines_release(&s->redis.starts);
    text_lines_release(&s->redis.buckets);
    text_lines_release(&s->expected);
}

static void add(struct scene *s, struct person *person, const struct row *row, int64_t arrival_s)
{
    write_plan_at(&s->plan, row->at_s);
    cr_assert(merge_visits_add(s->merge, row, TIMEOUT_S, s->plan.targets, s->plan.n));
    if (starts_visit(person, row->at_s, arrival_s)) {
        expect_start(&s->expected, row, &s->plan);
    }
}

/* The flush is over: what is wrong with it, or NULL. */
static const char *settle(struct scene *s, int64_t arrival_s)
{
    const char *fault = flush(s->merge, &s->redis, arrival_s);
    text_lines_sort(&s->redis.starts);
    text_lines_sort(&s->expected);
    if (fault == NULL && text_lines_difference(&s->redis.starts, &s->expected) != NULL) {
        fault = "a visit too many, or too few";
    }
    merge_visits_clear(s->merge);
    text_lines_clear(&s->redis.starts);
    text_lines_clear(&s->expected);
    return fault;
}

/* ---- by hand ---- */

Test(merge_visits, nothing)
{
    struct scene s;
    set_up(&s);
    merge_visits_clear(s.merge);
    cr_expect_null(settle(&s, NOW_S));
    tear_down(&s);
    merge_visits_free(NULL);
}

/* Times in one flush, and how many visits they are. */
Test(merge_visits, within_a_flush)
{
    static const struct {
        int64_t times_s[6];
        unsigned visits;
    } cases[] = {
        {{100}, 1},
        {{100, 100}, 1},
        {{100, 100 + TIMEOUT_S}, 1}, /* exactly the timeout: still the visit */
        {{100, 101 + TIMEOUT_S}, 2},
        {{100, 100 + TIMEOUT_S, 100 + 2 * TIMEOUT_S, 100 + 3 * TIMEOUT_S}, 1},
        {{100 + 2 * TIMEOUT_S, 100}, 1}, /* older than the last: none */
        {{100 + 2 * TIMEOUT_S, 100, 101 + TIMEOUT_S}, 1},
        {{100, 101 + TIMEOUT_S, 100, 102 + TIMEOUT_S}, 2},
        {{100, 101 + TIMEOUT_S, 102 + 2 * TIMEOUT_S}, 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct row rows[6];
        struct scene s;
        struct person person = {.seen = false};
        set_up(&s);
        for (size_t r = 0; r < 6 && cases[i].times_s[r] != 0; r++) {
            rows[r] = row_of("shop", "/", NOW_S / 86400 * 86400 + 86400 + cases[i].times_s[r], 1);
            add(&s, &person, &rows[r], NOW_S);
        }
        cr_expect_eq(s.expected.n, cases[i].visits, "case %zu, the model", i);
        cr_expect_null(settle(&s, NOW_S), "case %zu", i);
        tear_down(&s);
    }
}

Test(merge_visits, words_of_a_small_section)
{
    static const char id[] = "0123456789abcdef";
    struct row rows[3];
    struct scene s;
    struct buffer keys;
    struct buffer args;
    size_t n_keys = 0;
    size_t n_args = 0;
    set_up(&s);
    buffer_init(&keys);
    buffer_init(&args);
    for (int i = 0; i < 3; i++) { /* the last one is in the same visit as the second */
        rows[i] = row_of("shop", i == 0 ? "/a" : "/b", NOW_S - (i == 0 ? 3000 : 10 - i), 1);
        memcpy(rows[i].visitor.bytes, id, 16);
        write_plan_at(&s.plan, rows[i].at_s);
        cr_assert(merge_visits_add(s.merge, &rows[i], TIMEOUT_S, s.plan.targets, s.plan.n));
    }
    merge_visits_write(s.merge, TAG, TIMEOUT_S, &keys, &n_keys, &args, &n_args);
    cr_expect(slice_equal(
                  (struct slice){keys.p, keys.n}, SLICE("$17\r\nt:{7}:visit:shop:\r\n"
                                                        "$27\r\nt:{7}:vv:shop:m202611201427\r\n"
                                                        "$27\r\nt:{7}:vv:shop:h202611201400\r\n"
                                                        "$27\r\nt:{7}:vv:shop:m202611201517\r\n")),
        "%.*s", (int)keys.n, keys.p);
    char expected[512];
    int n = snprintf(expected, sizeof(expected),
        "$1\r\n1\r\n$4\r\n1800\r\n$1\r\n2\r\n$1\r\n1\r\n"
        "$1\r\n2\r\n$1\r\nH\r\n$1\r\n0\r\n$1\r\nZ\r\n$1\r\n0\r\n"
        "$1\r\n1\r\n$1\r\nH\r\n$1\r\n0\r\n"
        "$16\r\n################\r\n"
        "$1\r\n0\r\n"
        "$11\r\n01795187826\r\n$1\r\n2\r\n"
        "$10\r\n1795184834\r\n$1\r\n1\r\n$2\r\n/a\r\n"
        "$10\r\n1795187825\r\n$1\r\n2\r\n$2\r\n/b\r\n");
    memcpy(strchr(expected, '#'), id, 16);
    cr_expect(slice_equal((struct slice){args.p, args.n}, (struct slice){expected, (size_t)n}),
        "%.*s", (int)args.n, args.p);
    cr_expect_eq(n_keys, 4u);
    cr_expect_eq(n_args, 4u + 8 + 1 + 1 + 2 + 6);
    buffer_release(&keys);
    buffer_release(&args);
    tear_down(&s);
}

/* unpack() is bounded: parts of at most 1,000 visitors, also for those that come back later. */
Test(merge_visits, many_visitors_of_one_site)
{
    enum { N = 2500 };
    struct row *rows = calloc(2 * N, sizeof(*rows));
    struct person *people = calloc(N, sizeof(*people));
    struct scene s;
    set_up(&s);
    cr_assert(rows != NULL && people != NULL);
    for (uint32_t i = 0; i < 2 * N; i++) {
        rows[i] = row_of("shop", "/", NOW_S + (i < N ? 0 : 2 * TIMEOUT_S) + i % 3, i % N);
        add(&s, &people[i % N], &rows[i], NOW_S);
    }
    cr_expect_eq(s.expected.n, 2u * N);
    const char *fault = settle(&s, NOW_S);
    cr_expect_null(fault, "%s", fault);
    cr_expect_eq(s.redis.largest, 1000u);
    cr_expect_eq(s.redis.n, (size_t)N);
    tear_down(&s);
    free(rows);
    free(people);
}

/* ---- property ---- */

#define ROWS   200
#define SITES  3
#define PEOPLE 12 /* per site */

/* Near the visitor's last event: exactly a timeout on, a second less or more, before it, or now. */
static int64_t random_time(struct dice *dice, const struct person *person, int64_t arrival_s)
{
    int64_t edge_s = dice_below(dice, 3) - 1;
    switch (person->seen ? dice_below(dice, 6) : 5) {
    case 0:
    case 1:
        return person->last_s + TIMEOUT_S + edge_s;
    case 2:
        return person->last_s - TIMEOUT_S + edge_s;
    case 3:
        return person->last_s + dice_below(dice, 100) - 50;
    case 4:
        return arrival_s - dice_below(dice, 100000);
    default:
        return arrival_s - dice_below(dice, 100);
    }
}

static void random_flush(
    struct dice *dice, struct scene *s, struct person *people, struct row *rows, int64_t arrival_s)
{
    static const char *const sites[SITES] = {"shop", "blog", "s"};
    static const char *const pages[] = {"/", "/a", "/b"};
    size_t n = (size_t)dice_below(dice, dice_chance(dice, 500) ? 4 : ROWS);
    for (size_t i = 0; i < n; i++) {
        uint32_t who = (uint32_t)dice_below(dice, SITES * PEOPLE);
        int64_t at_s = random_time(dice, &people[who], arrival_s);
        rows[i] = row_of(sites[who / PEOPLE], pages[dice_below(dice, 3)], at_s, who % PEOPLE);
        add(s, &people[who], &rows[i], arrival_s);
    }
}

Test(merge_visits, agrees_with_one_event_at_a_time)
{
    static const int64_t pauses_s[] = {
        0, 1, TIMEOUT_S / 2, TIMEOUT_S, 2 * TIMEOUT_S, 2 * TIMEOUT_S + 1};
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    unsigned visits = 0;
    for (int round = 0; round < 100; round++) {
        struct person people[SITES * PEOPLE] = {{.seen = false}};
        struct row rows[ROWS];
        int64_t arrival_s = NOW_S;
        struct scene s;
        set_up(&s);
        for (int flushes = 0; flushes < 25; flushes++) {
            random_flush(&dice, &s, people, rows, arrival_s);
            visits += (unsigned)s.expected.n;
            const char *fault = settle(&s, arrival_s);
            cr_assert_null(fault, "TALLYD_TEST_SEED=%" PRIu64 ", round %d, flush %d: %s", seed,
                round, flushes, fault);
            arrival_s += pauses_s[dice_below(&dice, 6)];
        }
        tear_down(&s);
    }
    cr_expect_gt(visits, 10000u);
}

static void print_target(void *data, struct slice site, const struct write_target *target)
{
    char key[128];
    print_bucket(key, sizeof(key), site, target->bucket);
    text_lines_add(data, "%s %" PRId64, key, target->expire_ms);
}

static void check_same(struct text_lines *found, struct text_lines *expected, const char *what)
{
    text_lines_unite(found);
    text_lines_unite(expected);
    const char *difference = text_lines_difference(found, expected);
    cr_expect_null(difference, "%s: %s", what, difference);
}

/* Every bucket of a candidate is shown and written, with its expiry. */
Test(merge_visits, targets_are_those_of_the_candidates)
{
    struct row rows[40];
    struct text_lines shown = {0};
    struct text_lines expected = {0};
    struct scene s;
    set_up(&s);
    for (uint32_t i = 0; i < 40; i++) {
        rows[i] = row_of(i % 2 == 0 ? "shop" : "blog", "/", NOW_S - (int64_t)i / 4 * 40000, i);
        write_plan_at(&s.plan, rows[i].at_s);
        cr_assert(merge_visits_add(s.merge, &rows[i], TIMEOUT_S, s.plan.targets, s.plan.n));
        for (unsigned t = 0; t < s.plan.n; t++) {
            print_target(&expected, rows[i].site, &s.plan.targets[t]);
        }
    }
    merge_visits_targets(s.merge, print_target, &shown);
    cr_expect_null(flush(s.merge, &s.redis, NOW_S));
    check_same(&shown, &expected, "shown");
    check_same(&s.redis.buckets, &expected, "written");
    text_lines_release(&shown);
    text_lines_release(&expected);
    tear_down(&s);
}
