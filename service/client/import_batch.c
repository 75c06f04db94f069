#include "service/client/import_batch.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/dimension/campaign.h"
#include "handlers/dimension/source.h"
#include "handlers/text/check.h"
#include "handlers/text/json_scan.h"
#include "handlers/text/utf8.h"
#include "service/client/line_reader.h"
#include "storage/job/event.h"

/* The most bytes of an event: every byte of its line escaped as \u00XX, and names and quotes. */
#define EVENT_BYTES_MAX (6 * LINE_READER_MAX + 768)

#define CAMPAIGN_QUERY_MAX                                                                         \
    4096 /* bytes of a target; the campaign of a longer one is not looked for */

#define HOST_HASH_BYTES 16

/* The most bytes of a line of NDJSON with a site in front. */
#define JSON_BYTES_MAX (LINE_READER_MAX + EVENT_SITE_MAX + 16)
#define JSON_DEPTH_MAX 2048 /* the server takes less, and says so */

struct import_batch {
    const char *site;
    size_t count;
    size_t starts[IMPORT_BATCH_EVENTS + 1]; /* event i is body[starts[i], starts[i + 1]) */
    uint64_t lines[IMPORT_BATCH_EVENTS];
    char body[IMPORT_BATCH_BYTES];
    char scratch[JSON_BYTES_MAX]; /* a copy of JSON, because reading changes the bytes */
};

struct import_batch *import_batch_new(const char *site)
{
    struct import_batch *batch = calloc(1, sizeof(*batch));
    if (batch != NULL) {
        batch->site = site;
    }
    return batch;
}

void import_batch_free(struct import_batch *batch)
{
    free(batch);
}

size_t import_batch_count(const struct import_batch *batch)
{
    return batch->count;
}

void import_batch_clear(struct import_batch *batch)
{
    batch->count = 0;
}

bool import_batch_full(const struct import_batch *batch)
{
    return batch->count == IMPORT_BATCH_EVENTS ||
           batch->starts[batch->count] > IMPORT_BATCH_BYTES - EVENT_BYTES_MAX;
}

static char *put(char *p, struct slice text)
{
    if (text.n > 0) {
        memcpy(p, text.p, text.n);
    }
    return p + text.n;
}

/* Put @text into a JSON string.  The bytes are UTF-8 already, so only what RFC 8259 section 7
 * forbids is escaped. */
static char *put_escaped(char *p, struct slice text)
{
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c < 0x20) {
            p = put(p, SLICE("\\u00"));
            *p++ = hex[c >> 4];
            *p++ = hex[c & 15];
        } else {
            if (c == '"' || c == '\\') {
                *p++ = '\\';
            }
            *p++ = (char)c;
        }
    }
    return p;
}

static char *put_text(char *p, struct slice name, struct slice text)
{
    p = put(p, SLICE(",\""));
    p = put(p, name);
    p = put(p, SLICE("\":\""));
    p = put_escaped(p, text);
    return put(p, SLICE("\""));
}

static char *put_host_user(char *p, const struct log_line *line)
{
    unsigned char hash[HOST_HASH_BYTES];
    char user[sizeof("host-") + 2 * sizeof(hash)] = "host-";
    crypto_generichash_state state;
    /* This fails only for sizes out of range, and these are constants. */
    (void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    (void)crypto_generichash_update(&state, (const unsigned char *)line->client.p, line->client.n);
    (void)crypto_generichash_update(&state, (const unsigned char *)"|", 1);
    if (line->ua.n > 0) {
        (void)crypto_generichash_update(&state, (const unsigned char *)line->ua.p, line->ua.n);
    }
    (void)crypto_generichash_final(&state, hash, sizeof(hash));
    size_t n = strlen(user);
    (void)sodium_bin2hex(user + n, sizeof(user) - n, hash, sizeof(hash));
    return put_text(p, SLICE("user"), slice_of(user));
}

static char *put_visitor(char *p, const struct log_line *line)
{
    if (!line->client_is_ip) {
        return put_host_user(p, line);
    }
    p = put_text(p, SLICE("ip"), line->client);
    return line->ua.p == NULL ? p : put_text(p, SLICE("ua"), line->ua);
}

/* Is the referrer a page of the host that was asked?  Then the visitor was there already. */
static bool is_own_referrer(const struct log_line *line)
{
    struct slice scheme = SLICE("http://"), own, from;
    char url[sizeof("http://") + SOURCE_HOST_MAX], own_room[SOURCE_HOST_MAX],
        from_room[SOURCE_HOST_MAX];
    if (line->host.n == 0 || line->host.n > SOURCE_HOST_MAX) {
        return false;
    }
    char *end = put(put(url, scheme), line->host);
    return source_host((struct slice){url, (size_t)(end - url)}, own_room, &own) &&
           source_host(line->referrer, from_room, &from) && slice_equal(own, from);
}

/* The target with its query, also where the log keeps the two apart.  The result may lie in @room,
 * CAMPAIGN_QUERY_MAX bytes. */
static struct slice whole_target(const struct log_line *line, char *room)
{
    if (line->query.n == 0 || line->query.n >= CAMPAIGN_QUERY_MAX ||
        line->target.n > line->page.n) {
        return line->target;
    }
    char *end = put(put(room, SLICE("?")), line->query); /* the path does not matter here */
    return (struct slice){room, (size_t)(end - room)};
}

/* Put where the visitor came from, as far as the server would take that: no page view is lost
 * because of its referrer. */
static char *put_origin(char *p, const struct log_line *line)
{
    struct slice utm[UTM_N] = {{NULL, 0}};
    char room[CAMPAIGN_QUERY_MAX], target_room[CAMPAIGN_QUERY_MAX];
    struct slice referrer = line->referrer, target = whole_target(line, target_room);
    if (referrer.n > 1 && referrer.n <= EVENT_TEXT_MAX && !text_has_control(referrer) &&
        utf8_valid(referrer) && !is_own_referrer(line)) {
        p = put_text(p, SLICE("referrer"), referrer);
    }
    if (target.n <= CAMPAIGN_QUERY_MAX && campaign_has(target)) {
        campaign_read(target, room, utm);
    }
    for (unsigned i = 0; i < UTM_N; i++) {
        if (utm[i].n > 0) {
            p = put_text(p, utm_name((enum utm)i), utm[i]);
        }
    }
    return p;
}

static char *put_site(char *p, struct slice site)
{
    p = put(p, SLICE("\"site\":\""));
    p = put(p, site);
    return put(p, SLICE("\""));
}

static void end_event(struct import_batch *batch, char *end, uint64_t number)
{
    *end++ = '\n';
    batch->lines[batch->count++] = number;
    batch->starts[batch->count] = (size_t)(end - batch->body);
}

void import_batch_add_event(
    struct import_batch *batch, const struct log_line *line, struct slice site, uint64_t number)
{
    char *p = batch->body + batch->starts[batch->count];
    p = put(p, SLICE("{\"page\":\""));
    p = put_escaped(p, line->page);
    p = put(p, SLICE("\""));
    p = put_visitor(p, line);
    p = put_origin(p, line);
    char ts[32];
    (void)snprintf(ts, sizeof(ts), ",\"ts\":%" PRId64, line->at_s);
    p = put(p, slice_of(ts));
    if (site.n == 0 && batch->site != NULL) {
        site = slice_of(batch->site);
    }
    if (site.n > 0) {
        *p++ = ',';
        p = put_site(p, site);
    }
    *p++ = '}';
    end_event(batch, p, number);
}

/* Facts about a JSON object. */
struct json_facts {
    bool is_empty, has_site;
};

/* Is @text a JSON object whose texts are usable?  As for the server, numbers may have any size. */
static bool is_object(struct import_batch *batch, struct slice text, struct json_facts *ret)
{
    struct json_scan scan;
    *ret = (struct json_facts){.is_empty = true};
    if (text.n == 0 || text.n > sizeof(batch->scratch)) {
        return false;
    }
    memcpy(batch->scratch, text.p, text.n);
    json_scan_init(&scan, batch->scratch, text.n, JSON_DEPTH_MAX);
    if (json_scan_peek(&scan) != SCAN_OBJECT) {
        return false;
    }
    enum scan_step step = json_scan_open(&scan, '}');
    for (; step == SCAN_ITEM; step = json_scan_next(&scan, '}')) {
        struct slice name;
        if (!json_scan_name(&scan, &name) || !json_scan_skip(&scan)) {
            return false;
        }
        ret->is_empty = false;
        ret->has_site = ret->has_site || slice_equal(name, SLICE("site"));
    }
    return step == SCAN_CLOSED && json_scan_finish(&scan) && scan.fault == NULL;
}

bool import_batch_add_json(struct import_batch *batch, struct slice line, uint64_t number)
{
    char *p = batch->body + batch->starts[batch->count];
    if (batch->site != NULL) {
        struct json_facts facts;
        if (!is_object(batch, line, &facts)) {
            return false;
        }
        if (!facts.has_site) {
            const char *brace = memchr(line.p, '{', line.n);
            *p++ = '{';
            p = put_site(p, slice_of(batch->site));
            if (!facts.is_empty) {
                *p++ = ',';
            }
            line.n -= (size_t)(brace + 1 - line.p);
            line.p = brace + 1;
        }
    }
    end_event(batch, put(p, line), number);
    return true;
}

uint64_t import_batch_line(const struct import_batch *batch, size_t index)
{
    return batch->lines[index];
}

struct slice import_batch_body(const struct import_batch *batch, size_t first, size_t count)
{
    size_t start = batch->starts[first];
    return (struct slice){batch->body + start, batch->starts[first + count] - start};
}

bool import_batch_is_object(struct import_batch *batch, size_t index)
{
    struct json_facts ignored;
    return is_object(batch, import_batch_body(batch, index, 1), &ignored);
}
