#include "storage/time/zone_file.h"

#include <stdlib.h>

#include "storage/time/units.h"
#include "storage/time/zone_rule.h"

#define HEADER_SIZE 44
#define TYPE_SIZE   6
#define YEARS_LATER 2   /* so many years behind the file's last change the rule alone decides */
#define ERA_YEARS   402 /* the table holds so many years of the rule behind those */
#define FIRST_YEAR  1969

static const char no_zone_file[] = "it is no TZif file: give an IANA name such as Europe/Berlin";

/* A block of the file: six counts, then arrays. */
struct block {
    size_t ut, standard, leaps, times, types, name_bytes;
    size_t time_size; /* 4 in the first block, 8 in the second */
    const unsigned char *at;
    size_t size; /* without the header */
};

static uint64_t big_endian(const unsigned char *p, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value = value << 8 | p[i];
    }
    return value;
}

static int64_t read_time(const struct block *block, size_t i)
{
    const unsigned char *p = block->at + i * block->time_size;
    return block->time_size == 4 ? (int64_t)(int32_t)(uint32_t)big_endian(p, 4)
                                 : (int64_t)big_endian(p, 8);
}

static size_t read_type(const struct block *block, size_t i)
{
    return block->at[block->times * block->time_size + i];
}

static int64_t read_offset(const struct block *block, size_t type)
{
    const unsigned char *types = block->at + block->times * (block->time_size + 1);
    return (int32_t)(uint32_t)big_endian(types + type * TYPE_SIZE, 4);
}

/* Cut a block and its header off the front of @rest.  False: it is not complete. */
static bool take_block(struct slice *rest, size_t time_size, struct block *ret, char *ret_version)
{
    const unsigned char *p = (const unsigned char *)rest->p;
    if (rest->n < HEADER_SIZE || memcmp(p, "TZif", 4) != 0) {
        return false;
    }
    *ret_version = (char)p[4];
    *ret = (struct block){
        .ut = big_endian(p + 20, 4),
        .standard = big_endian(p + 24, 4),
        .leaps = big_endian(p + 28, 4),
        .times = big_endian(p + 32, 4),
        .types = big_endian(p + 36, 4),
        .name_bytes = big_endian(p + 40, 4),
        .time_size = time_size,
        .at = p + HEADER_SIZE,
    };
    /* The counts have 32 bits each, so the sum cannot overflow. */
    ret->size = ret->times * (time_size + 1) + ret->types * TYPE_SIZE + ret->name_bytes +
                ret->leaps * (time_size + 4) + ret->standard + ret->ut;
    if (rest->n - HEADER_SIZE < ret->size) {
        return false;
    }
    rest->p += HEADER_SIZE + ret->size;
    rest->n -= HEADER_SIZE + ret->size;
    return true;
}

/* Read the rule behind the second block, "\nCET-1CEST,M3.5.0,M10.5.0/3\n".  *ret_is false: the text
 * between the newlines is empty.  False: this is no footer. */
static bool read_footer(struct slice rest, struct zone_rule *ret, bool *ret_is)
{
    struct slice rule;
    *ret_is = false;
    if (!slice_take(&rest, '\n') || !slice_take_until(&rest, '\n', &rule)) {
        return false;
    }
    *ret_is = rule.n > 0;
    return rule.n == 0 || zone_rule_parse(rule, ret);
}

static int64_t year_of(int64_t at_s)
{
    return civil_from_days(floor_div(at_s, DAY_S)).year;
}

/* Write the changes that the rule makes behind the file's last one.  Returns their number. */
static size_t add_rule(const struct zone_rule *rule, const struct zone_change *last,
    int64_t first_year, struct zone_change *ret)
{
    size_t n = 0;
    for (int64_t year = first_year; year < first_year + YEARS_LATER + ERA_YEARS; year++) {
        struct zone_change two[2];
        zone_rule_changes(rule, year, two);
        for (int i = 0; i < 2; i++) {
            if (last == NULL || two[i].at_s > last->at_s) {
                ret[n++] = two[i];
            }
        }
    }
    return n;
}

/* Make the zone of the file's changes and, behind them, those of the rule. */
static struct zone *assemble_zone(const struct block *block, const struct zone_rule *rule,
    const char *name, const char **ret_fault)
{
    size_t n = block->times;
    size_t room = n + 2 * (YEARS_LATER + ERA_YEARS);
    struct zone_change *changes = malloc(room * sizeof(*changes));
    if (changes == NULL) {
        *ret_fault = "out of memory";
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        changes[i] =
            (struct zone_change){read_time(block, i), read_offset(block, read_type(block, i))};
        /* A time so far away would make arithmetic overflow.  No event is there. */
        if (changes[i].at_s > INT64_C(1) << 40) {
            changes[i].at_s = INT64_C(1) << 40;
        }
        if (changes[i].at_s < -(INT64_C(1) << 40)) {
            changes[i].at_s = -(INT64_C(1) << 40);
        }
    }
    int64_t first_year = FIRST_YEAR;
    if (rule != NULL) {
        const struct zone_change *last = n > 0 ? &changes[n - 1] : NULL;
        if (last != NULL && year_of(last->at_s) > first_year) {
            first_year = year_of(last->at_s);
        }
        n += add_rule(rule, last, first_year, changes + n);
    }
    struct zone *zone = zone_make(name, read_offset(block, 0), changes, n, rule != NULL,
        civil_to_days((struct civil_date){first_year + YEARS_LATER, 1, 1}) * DAY_S, ret_fault);
    free(changes);
    return zone;
}

static const char *check_block(const struct block *block)
{
    if (block->leaps != 0) {
        return "it counts leap seconds: give an IANA name such as Europe/Berlin";
    }
    if (block->types == 0) {
        return no_zone_file;
    }
    for (size_t i = 0; i < block->times; i++) {
        if (read_type(block, i) >= block->types) {
            return no_zone_file;
        }
    }
    return NULL;
}

struct zone *zone_from_file(struct slice content, const char *name, const char **ret_fault)
{
    struct block block;
    char version;
    *ret_fault = no_zone_file;
    if (content.n > ZONE_FILE_MAX || !take_block(&content, 4, &block, &version)) {
        return NULL;
    }
    struct zone_rule rule;
    bool has_rule = false;
    char again;
    if (version >= '2' &&
        (!take_block(&content, 8, &block, &again) || !read_footer(content, &rule, &has_rule))) {
        return NULL;
    }
    *ret_fault = check_block(&block);
    if (*ret_fault != NULL) {
        return NULL;
    }
    /* Without saving time the rule only repeats the file's last change. */
    return assemble_zone(&block, has_rule && rule.has_saving ? &rule : NULL, name, ret_fault);
}
