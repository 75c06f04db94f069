#include "storage/schema/key.h"

#include <assert.h>
#include <stdio.h>

#include "storage/redis/resp.h"
#include "storage/time/units.h"

#define BUCKET_TEXT 13 /* bytes: a letter and YYYYMMDDhhmm */

static const char letters[LEVELS] = {'m', 'h', 'd', 'M'};
static const char *const kinds[] = {
    [KEY_UV] = "uv:", [KEY_IP] = "ip:", [KEY_PV] = "pv:", [KEY_VV] = "vv:"};

/* Returns the whole key so far. */
static struct slice key_add(struct key *key, const char *p, size_t n)
{
    assert(key->n + n <= sizeof(key->p));
    if (n > 0) {
        memcpy(key->p + key->n, p, n);
    }
    key->n += n;
    return (struct slice){key->p, key->n};
}

static struct slice key_head(struct key *key, const char *tag, const char *name)
{
    key->n = 0;
    key_add(key, "t:{", 3);
    key_add(key, tag, strlen(tag));
    key_add(key, "}:", 2);
    return key_add(key, name, strlen(name));
}

struct slice key_fixed(struct key *key, const char *tag, const char *name, struct slice suffix)
{
    key_head(key, tag, name);
    return key_add(key, suffix.p, suffix.n);
}

void key_put(struct buffer *out, const char *tag, const char *name)
{
    struct key key;
    resp_slice(out, key_head(&key, tag, name));
}

void key_command(
    struct buffer *out, const char *command, const char *tag, const char *name, size_t n)
{
    struct key key;
    resp_begin(out, command, key_head(&key, tag, name), n);
}

static void two_digits(char *p, int value)
{
    p[0] = (char)('0' + value / 10);
    p[1] = (char)('0' + value % 10);
}

static struct slice add_bucket(struct key *key, struct bucket bucket)
{
    int64_t days = bucket.start_s / DAY_S;
    int in_day = (int)(bucket.start_s % DAY_S);
    struct civil_date date = civil_from_days(days);
    char text[BUCKET_TEXT];
    text[0] = letters[bucket.level];
    two_digits(text + 1, (int)(date.year / 100));
    two_digits(text + 3, (int)(date.year % 100));
    two_digits(text + 5, date.month);
    two_digits(text + 7, date.day);
    two_digits(text + 9, in_day / 3600);
    two_digits(text + 11, in_day / 60 % 60);
    return key_add(key, text, sizeof(text));
}

/* t:{tag}:<name><site>: */
static struct slice key_of_site(
    struct key *key, const char *tag, const char *name, struct slice site)
{
    key_fixed(key, tag, name, site);
    return key_add(key, ":", 1);
}

struct slice key_bucket(struct key *key, const char *tag, enum key_kind kind, struct slice site,
    struct bucket bucket, struct slice page)
{
    key_of_site(key, tag, kinds[kind], site);
    struct slice whole = add_bucket(key, bucket);
    if (kind == KEY_UV || kind == KEY_IP) {
        key_add(key, ":", 1);
        whole = key_add(key, page.p, page.n);
    }
    return whole;
}

struct slice key_places(struct key *key, const char *tag, struct slice site, struct bucket hour)
{
    key_of_site(key, tag, "places:", site);
    return add_bucket(key, hour);
}

struct slice key_user_index(struct key *key, const char *tag, struct slice site)
{
    return key_fixed(key, tag, "uid:", site);
}

struct slice key_user_ids(struct key *key, const char *tag, struct slice site)
{
    return key_of_site(key, tag, "ids:", site);
}

struct slice key_page_sets(struct key *key, const char *tag, struct slice site)
{
    return key_fixed(key, tag, "sets:", site);
}

struct slice key_activity_prefix(struct key *key, const char *tag)
{
    return key_head(key, tag, "act:");
}

struct slice key_activity(
    struct key *key, const char *tag, struct slice site, struct slice action, int64_t day)
{
    struct civil_date date = civil_from_days(day);
    char text[8];
    two_digits(text, (int)(date.year / 100));
    two_digits(text + 2, (int)(date.year % 100));
    two_digits(text + 4, date.month);
    two_digits(text + 6, date.day);
    key_of_site(key, tag, "act:", site);
    key_add(key, action.p, action.n);
    key_add(key, ":", 1);
    return key_add(key, text, sizeof(text));
}

bool key_member_of(struct slice member, struct slice site, struct slice *ret_rest)
{
    if (!slice_begins(member, site) || member.n == site.n || member.p[site.n] != ':') {
        return false;
    }
    *ret_rest = (struct slice){member.p + site.n + 1, member.n - site.n - 1};
    return true;
}

struct slice key_visit_prefix(struct key *key, const char *tag, struct slice site)
{
    return key_of_site(key, tag, "visit:", site);
}

unsigned key_limit_partition(const struct partitions *partitions, struct slice who)
{
    return partition_of(partitions, page_hash(SLICE("rl"), who));
}

struct slice key_limit(struct key *key, const struct partitions *partitions,
    enum key_limit_kind kind, size_t nth, struct slice policy, struct slice who)
{
    static const char *const names[] = {[KEY_LIMIT_FUNNEL] = "rl:funnel",
        [KEY_LIMIT_SLIDING] = "rl:sliding",
        [KEY_LIMIT_PENALTY] = "rl:penalty",
        [KEY_LIMIT_GUARD] = "rl:ingest"};
    unsigned partition = key_limit_partition(partitions, who);
    key_head(key, partitions->tag[partition], names[kind]);
    if (nth > 0) {
        char digits[24];
        key_add(key, digits, decimal_print((int64_t)nth + 1, digits));
    }
    key_add(key, ":", 1);
    key_add(key, policy.p, policy.n);
    key_add(key, ":", 1);
    return key_add(key, who.p, who.n);
}

struct slice key_open_member(struct key *member, struct slice site, struct bucket bucket)
{
    member->n = 0;
    key_add(member, site.p, site.n);
    key_add(member, ":", 1);
    return add_bucket(member, bucket);
}

/* The value of @n decimal digits; -1: one of the characters is no digit. */
static int parse_digits(const char *p, int n)
{
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return -1;
        }
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

bool key_open_site(struct slice member, struct slice *ret_site)
{
    if (member.n < 1 + 1 + BUCKET_TEXT || member.p[member.n - BUCKET_TEXT - 1] != ':') {
        return false;
    }
    *ret_site = (struct slice){member.p, member.n - BUCKET_TEXT - 1};
    return true;
}

bool key_open_parse(
    struct slice member, const struct zone *zone, struct slice *ret_site, struct bucket *ret_bucket)
{
    if (!key_open_site(member, ret_site)) {
        return false;
    }
    const char *text = member.p + member.n - BUCKET_TEXT;
    int year = parse_digits(text + 1, 4);
    int month = parse_digits(text + 5, 2);
    int day = parse_digits(text + 7, 2);
    int hour = parse_digits(text + 9, 2);
    int minute = parse_digits(text + 11, 2);
    if (year < 0 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59) {
        return false;
    }
    for (int level = LEVEL_MINUTE; level < LEVELS; level++) {
        if (letters[level] != text[0]) {
            continue;
        }
        int64_t start_s = civil_to_days((struct civil_date){year, month, day}) * DAY_S +
                          hour * HOUR_S + minute * MINUTE_S;
        struct civil_date date = civil_from_days(start_s / DAY_S);
        *ret_bucket = bucket_at(zone, (enum level)level, start_s);
        return date.month == month && date.day == day && ret_bucket->start_s == start_s;
    }
    return false;
}

static struct slice key_of_filter(
    struct key *key, const char *tag, const char *kind, struct slice site, struct slice name)
{
    key_of_site(key, tag, kind, site);
    return key_add(key, name.p, name.n);
}

/* Add ":<layer>.<segment>". */
static struct slice add_segment(struct key *key, unsigned layer, uint64_t segment)
{
    char text[48];
    int n = snprintf(text, sizeof(text), ":%u.%llu", layer, (unsigned long long)segment);
    return key_add(key, text, (size_t)n);
}

struct slice key_filter(struct key *key, const char *tag, struct slice site, struct slice name)
{
    return key_of_filter(key, tag, "bf:", site, name);
}

struct slice key_filter_shard(
    struct key *key, const char *tag, struct slice site, struct slice name)
{
    return key_of_filter(key, tag, "bfs:", site, name);
}

struct slice key_filter_bits(struct key *key, const char *tag, struct slice site, struct slice name,
    uint64_t id, unsigned layer, uint64_t segment)
{
    char text[24];
    int n = snprintf(text, sizeof(text), ":%llu", (unsigned long long)id);
    key_of_filter(key, tag, "bfl:", site, name);
    key_add(key, text, (size_t)n);
    return add_segment(key, layer, segment);
}

struct slice key_seen(
    struct key *key, const char *tag, struct slice site, struct bucket month, const char *what)
{
    key_of_site(key, tag, "seen:", site);
    add_bucket(key, month);
    key_add(key, ":", 1);
    return key_add(key, what, strlen(what));
}

struct slice key_seen_bits(struct key *key, const char *tag, struct slice site, struct bucket month,
    unsigned layer, uint64_t segment)
{
    key_seen(key, tag, site, month, "bits");
    return add_segment(key, layer, segment);
}

static struct slice key_of_digest(
    struct key *key, const char *tag, const char *name, const struct key_digest *digest)
{
    char text[KEY_DIGEST_TEXT];
    key_digest_print(digest, text);
    return key_fixed(key, tag, name, slice_of(text));
}

struct slice key_record(struct key *key, const char *tag, const struct key_digest *digest)
{
    return key_of_digest(key, tag, "key:", digest);
}

struct slice key_first(struct key *key, const char *tag, const struct key_digest *ticket)
{
    return key_of_digest(key, tag, "first:", ticket);
}

void key_site_pattern(struct buffer *out, const char *tag, struct slice site)
{
    buffer_text(out, "t:{");
    buffer_text(out, tag == NULL ? "*" : tag);
    buffer_text(out, "}:*:");
    buffer_append(out, site.p, site.n); /* no byte of it is special */
    buffer_text(out, "*");
}
