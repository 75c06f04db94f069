/* test_fold_log.c - one log folded into a month's filter: storage/seen/fold_log.h */
#include "storage/seen/fold_log.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/core/core.h"
#include "storage/read/cache.h"
#include "storage/schema/key.h"
#include "storage/seen/layout.h"
#include "tests/lib/commands.h"
#include "tests/lib/dice.h"
#include "tests/lib/fold_fixture.h"
#include "tests/lib/stand_in.h"

#define SITE        SLICE("shop")
#define STRINGS_MAX 32
#define STEPS_MAX   64
#define PAIRS_MAX   (FOLD_PIECE + 5000)

static struct core *core;
static struct session session;
static struct fold_log fold;
static uint64_t pairs[PAIRS_MAX];

/* One Redis, with one month of one site. */
static struct {
    size_t n_old;      /* pairs in the log that is folded */
    bool is_folded;    /* another process has folded it meanwhile */
    size_t log;        /* bytes of the log that waits */
    const char *fault; /* of the command that seals the log */
    unsigned n_sealed;
    char ver[SEEN_VER_TEXT + 1];
    struct string {
        struct key key;
        struct buffer bits;
    } strings[STRINGS_MAX];
    size_t n_strings;
    struct written {
        char ver[SEEN_VER_TEXT + 1];
        bool is_end;
        uint64_t layer, items;
    } steps[STEPS_MAX];
    size_t n_steps;
    size_t n; /* layers */
    uint64_t items[BLOOM_LAYERS_MAX];
} redis;

static struct string *string_of(struct slice key)
{
    for (size_t i = 0; i < redis.n_strings; i++) {
        struct string *string = &redis.strings[i];
        if (slice_equal((struct slice){string->key.p, string->key.n}, key)) {
            return string;
        }
    }
    cr_assert(redis.n_strings < STRINGS_MAX && key.n <= sizeof(redis.strings[0].key.p));
    struct string *string = &redis.strings[redis.n_strings++];
    memcpy(string->key.p, key.p, key.n);
    string->key.n = key.n;
    return string;
}

static void copy_ver(char to[static SEEN_VER_TEXT + 1], struct slice from)
{
    cr_assert_eq(from.n, (size_t)SEEN_VER_TEXT);
    memcpy(to, from.p, from.n);
    to[from.n] = '\0';
}

static struct bucket month(void)
{
    return bucket_at(zone_utc(), LEVEL_MONTH, FOLD_NOW_S);
}

/* EVALSHA sha 2 filter old, or 3 filter old string, then ver-expected ver expires bits "capacity"
 * .. "error" .. "rules" .. "n" .. layer items. */
static void run_script(const struct command *command)
{
    size_t behind = 3 + (size_t)command_number(command, 2); /* the keys */
    cr_assert(command->n == behind + 14 && redis.n_steps < STEPS_MAX);
    struct written *step = &redis.steps[redis.n_steps++];
    const struct slice *words = &command->words[behind];
    struct slice bits = words[3];
    cr_expect(slice_equal(words[0], slice_of(redis.ver)), "it expects what is there");
    copy_ver(redis.ver, words[1]);
    copy_ver(step->ver, words[1]);
    step->is_end = bits.n == 0;
    cr_expect_eq(behind, step->is_end ? 5u : 6u);
    step->layer = (uint64_t)command_number(command, behind + 12);
    step->items = (uint64_t)command_number(command, behind + 13);
    cr_expect_eq(command_number(command, behind + 2),
        seen_expire_ms(month(), core->config.seen.keep_s), "it expires");
    redis.n = (size_t)command_number(command, behind + 11);
    redis.items[step->layer] = step->items;
    if (step->is_end) {
        redis.n_old = 0;
        return;
    }
    struct string *string = string_of(command->words[5]);
    buffer_clear(&string->bits, SIZE_MAX);
    buffer_append(&string->bits, bits.p, bits.n);
}

static struct slice old_between(const struct command *command)
{
    size_t from = (size_t)command_number(command, 2);
    size_t to = (size_t)command_number(command, 3) + 1;
    size_t n = redis.is_folded ? 0 : redis.n_old * sizeof(pairs[0]);
    to = to < n ? to : n;
    return from < to ? (struct slice){(const char *)pairs + from, to - from} : SLICE("");
}

static struct reply filter(void)
{
    static struct reply items[6 + 2 * BLOOM_LAYERS_MAX];
    static char numbers[1 + 2 * BLOOM_LAYERS_MAX][24];
    const char *const texts[] = {"ver", redis.ver, "rules", "3", "n", numbers[0]};
    size_t n = 0;
    (void)snprintf(numbers[0], sizeof(numbers[0]), "%zu", redis.n);
    for (; n < 6; n++) {
        items[n] = fold_text(texts[n]);
    }
    for (size_t i = 0; i < redis.n; i++) {
        (void)snprintf(numbers[1 + 2 * i], sizeof(numbers[0]), "%zu", i);
        (void)snprintf(numbers[2 + 2 * i], sizeof(numbers[0]), "%zu", (size_t)redis.items[i]);
        items[n++] = fold_text(numbers[1 + 2 * i]);
        items[n++] = fold_text(numbers[2 + 2 * i]);
    }
    return fold_array(items, redis.n > 0 ? n : 0);
}

static const struct reply *answer(const struct buffer *out, size_t i)
{
    static struct reply reply;
    struct commands commands;
    cr_assert(commands_read(out, &commands) && i < commands.n);
    const struct command *command = &commands.commands[i];
    reply = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    if (command_is(command, 0, "STRLEN")) {
        bool is_old = memmem(command->words[1].p, command->words[1].n, ":old", 4) != NULL;
        reply.integer = (long long)(is_old ? redis.n_old * sizeof(pairs[0]) : redis.log);
    } else if (command_is(command, 0, "RENAMENX")) {
        redis.n_sealed++;
        reply = (struct reply){.type = REPLY_ERROR, .text = slice_of(redis.fault)};
    } else if (command_is(command, 0, "HGETALL")) {
        reply = filter();
    } else if (command_is(command, 0, "GETRANGE")) {
        reply = (struct reply){.type = REPLY_TEXT, .text = old_between(command)};
    } else if (command_is(command, 0, "GET")) {
        const struct string *string = string_of(command->words[1]);
        reply = string->bits.n == 0
                    ? (struct reply){.type = REPLY_NIL}
                    : (struct reply){.type = REPLY_TEXT, .text = {string->bits.p, string->bits.n}};
    } else {
        cr_assert(command_is(command, 0, "EVALSHA"));
        run_script(command);
    }
    commands_release(&commands);
    return &reply;
}

static void setup(void)
{
    struct dice dice = dice_make(dice_seed());
    dice_bytes(&dice, pairs, sizeof(pairs));
    core = fold_core_make(1);
    core->config.seen = (struct seen_config){
        .on = true, .capacity = 1000, .error = 0.01, .keep_s = 40 * INT64_C(86400)};
    core->cache = cache_new(8 << 20);
    session = (struct session){.core = core, .redis = stand_in_redis()};
    stand_in.answer = answer;
    fold_log_init(&fold, core);
}

static void teardown(void)
{
    struct cache *cache = core->cache;
    core->cache = NULL;
    cache_free(cache);
    fold_log_release(&fold);
    fold_core_drop(core);
    for (size_t i = 0; i < redis.n_strings; i++) {
        buffer_release(&redis.strings[i].bits);
    }
}

TestSuite(fold_log, .init = setup, .fini = teardown, .timeout = 60);

static void fold_old(size_t n)
{
    redis.n_old = n;
    cr_expect(fold_log(&fold, &session, 0, SITE, month(), INT64_MAX));
    cr_expect_eq(redis.n_old, 0u, "all of the log was folded");
}

static void look_at(void *data, const void *value, size_t n)
{
    *(struct slice *)data = (struct slice){value, n};
}

/* Who reads a string between two steps remembers it under the id that is there then.  So no id may
 * stand for two contents. */
Test(fold_log, each_step_has_an_id_of_its_own)
{
    fold_old(5000);
    cr_assert_gt(redis.n_steps, 3u, "some layers, and the end");
    for (size_t i = 0; i < redis.n_steps; i++) {
        cr_expect_eq(redis.steps[i].is_end, i == redis.n_steps - 1);
        for (size_t k = 0; k < i; k++) {
            cr_expect_str_neq(redis.steps[i].ver, redis.steps[k].ver, "%zu and %zu", i, k);
        }
    }
}

Test(fold_log, no_layer_takes_more_than_its_capacity)
{
    fold_old(5000);
    uint64_t in_all = 0;
    struct bloom_params params = seen_params(&core->config.seen, 1);
    params.rules = BLOOM_OWN;
    params.segment_bits = SEEN_SEGMENT_BITS;
    for (size_t i = 0; i + 1 < redis.n_steps; i++) {
        const struct written *step = &redis.steps[i];
        struct bloom_layer layer = bloom_layer(&params, (unsigned)step->layer);
        cr_expect_leq(step->items, layer.capacity);
        in_all += step->items;
    }
    cr_expect_leq(in_all, 5000u);
    cr_expect_geq(in_all, 4900u, "all but false positives");
}

static struct ver ver_now(void)
{
    struct ver ver = {.n = SEEN_VER_TEXT};
    memcpy(ver.text, redis.ver, SEEN_VER_TEXT);
    return ver;
}

/* What is remembered of the first string, as the filter is now.  Empty: nothing. */
static struct slice remembered(const struct cache_id *id)
{
    struct slice is = {0};
    struct ver ver = ver_now();
    return cache_get(core->cache, id, &ver, look_at, &is) ? is : SLICE("");
}

/* The fold comes to the string twice, with a log of two pieces. */
Test(fold_log, a_string_that_was_read_is_remembered_as_it_stands_behind_the_fold)
{
    struct key key;
    core->config.seen.capacity = 200000;
    key_seen_bits(&key, core->partitions.tag[0], SITE, month(), 0, 0);
    struct cache_id id = cache_id(core->cache, key.p, key.n);
    const struct string *string = string_of((struct slice){key.p, key.n});
    fold_old(100);
    cr_expect_eq(remembered(&id).n, 0u, "no question has read it");
    struct ver ver = ver_now();
    cache_put(core->cache, &id, &ver, string->bits.p, string->bits.n);
    fold_old(PAIRS_MAX);
    struct slice is = {string->bits.p, string->bits.n};
    cr_expect_gt(is.n, 0u);
    cr_expect(slice_equal(remembered(&id), is));
}

static unsigned bits_of(const struct string *string)
{
    unsigned n = 0;
    for (size_t i = 0; i < string->bits.n; i++) {
        n += (unsigned)__builtin_popcount((unsigned char)string->bits.p[i]);
    }
    return n;
}

/* Where the bits of a string are put, another string's were before. */
Test(fold_log, a_string_that_is_not_there_has_no_bits)
{
    struct bloom_params params = seen_params(&core->config.seen, 1);
    const unsigned hashes = bloom_layer(&params, 0).hashes;
    fold_old(1000);
    cr_assert_eq(redis.n_strings, 1u);
    cr_expect_gt(bits_of(&redis.strings[0]), 1000u);
    buffer_release(&redis.strings[0].bits);
    redis.n_strings = redis.n_steps = redis.n = 0; /* another month */
    redis.ver[0] = '\0';
    fold_old(10);
    cr_assert_eq(redis.n_strings, 1u);
    cr_expect_geq(bits_of(&redis.strings[0]), hashes, "no pair was taken for known");
    cr_expect_leq(bits_of(&redis.strings[0]), 10 * hashes);
}

Test(fold_log, a_pair_that_is_in_any_layer_is_not_put_in_again)
{
    fold_old(5000);
    cr_assert_gt(redis.n, 2u);
    redis.n_steps = 0;
    fold_old(5000);
    cr_expect_eq(redis.n_steps, 1u, "the end, and no string");
}

/* The log may be another one by now, which is sealed and not folded. */
Test(fold_log, a_log_that_another_process_has_folded_is_not_ended)
{
    redis.n_old = 10;
    redis.is_folded = true;
    cr_expect(fold_log(&fold, &session, 0, SITE, month(), INT64_MAX));
    cr_expect_eq(redis.n_steps, 0u);
}

/* Redis would lend the rest of the string to no layer. */
Test(fold_log, a_string_that_is_longer_than_its_layer_is_left_alone)
{
    fold_old(100);
    struct buffer *bits = &redis.strings[0].bits;
    buffer_append(bits, "\0\0\0\0\0\0\0\0", 8);
    redis.n_steps = 0;
    redis.n_old = 200;
    cr_expect(fold_log(&fold, &session, 0, SITE, month(), INT64_MAX));
    cr_expect_eq(redis.n_steps, 0u);
    cr_expect_eq(redis.n_old, 200u, "questions read the log");
}

Test(fold_log, where_no_layer_can_be_added_the_log_stays)
{
    struct bloom_params params = seen_params(&core->config.seen, 1);
    redis.n = BLOOM_LAYERS_MAX;
    for (unsigned i = 0; i < BLOOM_LAYERS_MAX; i++) {
        redis.items[i] = bloom_layer(&params, i).capacity;
    }
    redis.n_old = 1;
    cr_expect(fold_log(&fold, &session, 0, SITE, month(), INT64_MAX));
    cr_expect_eq(redis.n_steps, 0u);
    cr_expect_eq(redis.n_old, 1u);
}

/* ---- when a log is folded ---- */

static unsigned n_notices;

static void notice(void *data, enum storage_notice what, const char *detail)
{
    (void)data;
    (void)detail;
    cr_expect_eq(what, STORAGE_SEEN_FAILED);
    n_notices++;
}

/* Is a log of @n bytes sealed? */
static bool is_sealed(size_t n)
{
    redis.n_sealed = 0;
    redis.log = n;
    redis.fault = "ERR no such key"; /* another process was faster */
    cr_expect(fold_log(&fold, &session, 0, SITE, month(), INT64_MAX));
    return redis.n_sealed == 1;
}

/* Each fold writes the newest layer anew. */
Test(fold_log, a_larger_filter_waits_for_a_longer_log)
{
    cr_expect_not(is_sealed(SEEN_LOG_BYTES - 8));
    cr_expect(is_sealed(SEEN_LOG_BYTES));
    core->config.seen.capacity = 400000;
    struct bloom_params params = seen_params(&core->config.seen, 1);
    struct bloom_layer layer = bloom_layer(&params, 0);
    size_t logs = 1 + layer.bits / 8 * layer.segments / (512 << 10);
    cr_assert(logs > 1 && logs < 8);
    redis.n = 1;
    cr_expect_not(is_sealed(logs * SEEN_LOG_BYTES - 8));
    cr_expect(is_sealed(logs * SEEN_LOG_BYTES));
    core->config.seen.capacity = 100000000;
    cr_expect_not(is_sealed(8 * SEEN_LOG_BYTES - 8));
    cr_expect(is_sealed(8 * SEEN_LOG_BYTES), "questions read the log, so it is not longer");
}

Test(fold_log, an_error_is_told_but_for_one)
{
    core->config.notice = notice;
    cr_expect(is_sealed(SEEN_LOG_BYTES));
    cr_expect_eq(n_notices, 0u, "another process has sealed it");
    redis.fault = "WRONGTYPE";
    cr_expect(fold_log(&fold, &session, 0, SITE, month(), INT64_MAX));
    cr_expect_eq(n_notices, 1u);
    redis.fault = "READONLY";
    cr_expect_not(fold_log(&fold, &session, 0, SITE, month(), INT64_MAX), "connect anew");
}
