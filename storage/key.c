#include "storage/key.h"

#include <assert.h>
#include <stdio.h>

#define BUCKET_TEXT 13 /* letter and YYYYMMDDhhmm */

static const char letters[LEVELS] = {'m', 'h', 'd', 'M'};
static const char *const kinds[] = {
    [KEY_UV] = "uv", [KEY_IP] = "ip", [KEY_PV] = "pv", [KEY_VV] = "vv"};

static void add(struct key *key, const char *p, size_t n)
{
    assert(key->n + n <= sizeof(key->p));
    if (n > 0) {
        memcpy(key->p + key->n, p, n);
    }
    key->n += n;
}

static void head(struct key *key, const char *tag, const char *name)
{
    key->n = 0;
    add(key, "t:{", 3);
    add(key, tag, strlen(tag));
    add(key, "}:", 2);
    add(key, name, strlen(name));
}

void key_fixed(struct key *key, const char *tag, const char *name, struct slice suffix)
{
    head(key, tag, name);
    add(key, suffix.p, suffix.n);
}

static void two_digits(char *p, int value)
{
    p[0] = (char)('0' + value / 10);
    p[1] = (char)('0' + value % 10);
}

static void add_bucket(struct key *key, struct bucket bucket)
{
    int64_t days = bucket.start_s / 86400;
    int in_day = (int)(bucket.start_s % 86400);
    struct civil_date date = civil_from_days(days);
    char text[BUCKET_TEXT];
    text[0] = letters[bucket.level];
    two_digits(text + 1, (int)(date.year / 100));
    two_digits(text + 3, (int)(date.year % 100));
    two_digits(text + 5, date.month);
    two_digits(text + 7, date.day);
    two_digits(text + 9, in_day / 3600);
    two_digits(text + 11, in_day / 60 % 60);
    add(key, text, sizeof(text));
}

void key_bucket(struct key *key, const char *tag, enum key_kind kind, struct slice site,
    struct bucket bucket, struct slice page)
{
    head(key, tag, kinds[kind]);
    add(key, ":", 1);
    add(key, site.p, site.n);
    add(key, ":", 1);
    add_bucket(key, bucket);
    if (kind == KEY_UV || kind == KEY_IP) {
        add(key, ":", 1);
        add(key, page.p, page.n);
    }
}

void key_visit_prefix(struct key *key, const char *tag, struct slice site)
{
    head(key, tag, "visit:");
    add(key, site.p, site.n);
    add(key, ":", 1);
}

void key_open_member(struct key *member, struct slice site, struct bucket bucket)
{
    member->n = 0;
    add(member, site.p, site.n);
    add(member, ":", 1);
    add_bucket(member, bucket);
}

/* @n decimal digits; -1 if one is none. */
static int digits(const char *p, int n)
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
    int year = digits(text + 1, 4);
    int month = digits(text + 5, 2);
    int day = digits(text + 7, 2);
    int hour = digits(text + 9, 2);
    int minute = digits(text + 11, 2);
    if (year < 0 || month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59) {
        return false;
    }
    for (int level = LEVEL_MINUTE; level < LEVELS; level++) {
        if (letters[level] != text[0]) {
            continue;
        }
        int64_t start_s = civil_to_days((struct civil_date){year, month, day}) * 86400 +
                          hour * 3600 + minute * 60;
        struct civil_date date = civil_from_days(start_s / 86400);
        *ret_bucket = bucket_at(zone, (enum level)level, start_s);
        return date.month == month && date.day == day && ret_bucket->start_s == start_s;
    }
    return false;
}
