#include "service/options/option_table.h"

#include "handlers/dimension/page_rules.h"
#include "handlers/http/app.h"
#include "handlers/text/check.h"
#include "service/options/dimension_option.h"
#include "service/options/limit_option.h"
#include "service/options/list_option.h"
#include "service/options/listen.h"
#include "service/options/option_value.h"
#include "service/options/redis_url.h"
#include "service/options/values.h"
#include "storage/job/seen_job.h"
#include "storage/time/units.h"
#include "storage/time/zone_store.h"

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define TIB (INT64_C(1) << 40)

/* The shortest times that a level may be kept for.  The buckets of a level must outlive that of the
 * next level that is made from them, and the rollup that makes it.  That takes two hours of
 * minutes, two days of hours, and a month and a day of days.  Months feed no level; their bound is
 * a year, because days serve shorter times. */
#define MIN_MINUTES_S (2 * HOUR_S)
#define MIN_HOURS_S   (2 * DAY_S)
#define MIN_DAYS_S    (32 * DAY_S)
#define MIN_MONTHS_S  (366 * DAY_S)
#define MAX_KEEP_S    (36525 * DAY_S) /* a century; more is `forever` */

static const char *const fsync_words[] = {"always", "everysec", NULL};
static const char *const rotation_words[] = {"never", "month", "week", "day", NULL};
static const char *const rewrite_words[] = {"off", "daily", NULL};
static const char *const format_words[] = {"logfmt", "json", NULL};
static const char *const level_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const bots_words[] = {"count", "drop", NULL};
static const char *const guard_words[] = {"token", "ip", "site", NULL};
/* For a switch with a word behind it, as `--seen off`.  An OPTION_BOOL takes no such word. */
static const char *const off_on_words[] = {"off", "on", NULL};

static const char *check_listen(const char *text)
{
    struct listen_address address;
    return listen_parse(text, &address);
}

static const char *check_ingest_limit(const char *text)
{
    struct limit limit;
    return *text == '\0' ? NULL : limit_option_rate(text, &limit);
}

/* The rate is for all months together.  A filter must be able to keep a month's share of the
 * rate. */
static const char *check_seen_error(const char *text)
{
    double rate;
    return option_parse_rate(text, &rate) && rate >= 0.000001 && rate <= BLOOM_ERROR_MAX
               ? NULL
               : "a number from 0.000001 to 0.25, as 0.01";
}

#define AT(field)       .offset = offsetof(struct options, field)
#define RANGE(from, to) .min = (from), .max = (to)
#define FOREVER         .word = "forever", .word_value = KEEP_FOREVER

/* All options, in the order of --help and `tallyd config`. */
const struct option option_table[] = {
    {"listen", OPTION_STRING, AT(listen), .fallback = "127.0.0.1:8080", .check = check_listen,
        .unit = "address", .help = "HOST:PORT or [IPV6]:PORT to serve HTTP on; port 0 picks one"},
    {"redis", OPTION_STRING, AT(redis), .fallback = "", .check = redis_url_check, .is_judged = true,
        .secret = true, .unit = "URL",
        .help = "redis://[user:password@]host:port[/db], unix:/path, "
                "redis-cluster://host[:port].., or redis-sentinel://host[:port]../master; "
                "empty: an embedded Redis"},
    {"lock-redis", OPTION_STRING, AT(lock_redis), .fallback = "", .check = redis_url_list_check,
        .secret = true, .unit = "URLs",
        .help = "further Redis servers, commas between, of which most must have the leader's lock"},
    {"data-dir", OPTION_PATH, AT(data_dir), .fallback = "./data", .unit = "path",
        .help = "directory of the embedded Redis, created if missing"},
    {"config", OPTION_STRING, AT(config), .fallback = "", .not_in_file = true, .unit = "path",
        .help = "file of `name = value` lines"},
    {"fsync", OPTION_ENUM, AT(fsync), .fallback = "always", .words = fsync_words, .unit = "policy",
        .help = "when the embedded Redis syncs its append-only file: before each answer or every "
                "second"},
    {"redis-memory", OPTION_SIZE, AT(redis_memory), .fallback = "half", RANGE(16 * MIB, 64 * TIB),
        .word = "half", .word_value = OPTION_HALF, .unit = "bytes",
        .help = "most the embedded Redis may hold; half: of the machine's memory"},
    {"redis-server", OPTION_PATH, AT(redis_server), .fallback = "redis-server", .unit = "path",
        .help = "binary of the embedded Redis"},
    {"partitions", OPTION_INTEGER, AT(partitions), .fallback = "auto", RANGE(1, PARTITIONS_MAX),
        .word = "auto", .word_value = OPTION_AUTO, .unit = "partitions",
        .help = "parts the data is cut into, fixed once there is data; auto: 16, in a cluster 256"},
    {"keep-minutes", OPTION_SECONDS, AT(retention.keep_s[LEVEL_MINUTE]), .fallback = "48h",
        RANGE(MIN_MINUTES_S, MAX_KEEP_S), FOREVER, .unit = "duration",
        .help = "how long single minutes are kept"},
    {"keep-hours", OPTION_SECONDS, AT(retention.keep_s[LEVEL_HOUR]), .fallback = "62d",
        RANGE(MIN_HOURS_S, MAX_KEEP_S), FOREVER, .unit = "duration",
        .help = "how long hours are kept"},
    {"keep-days", OPTION_SECONDS, AT(retention.keep_s[LEVEL_DAY]), .fallback = "1100d",
        RANGE(MIN_DAYS_S, MAX_KEEP_S), FOREVER, .unit = "duration",
        .help = "how long days are kept"},
    {"keep-months", OPTION_SECONDS, AT(retention.keep_s[LEVEL_MONTH]), .fallback = "forever",
        RANGE(MIN_MONTHS_S, MAX_KEEP_S), FOREVER, .unit = "duration",
        .help = "how long months are kept"},
    {"max-body", OPTION_SIZE, AT(max_body), .fallback = "8MiB", RANGE(KIB, GIB), .unit = "bytes",
        .help = "largest request body, decompressed"},
    {"max-body-memory", OPTION_SIZE, AT(max_body_memory), .fallback = "64MiB", RANGE(KIB, TIB),
        .unit = "bytes",
        .help = "most that all bodies in flight may hold together, at least max-body"},
    {"max-future", OPTION_SECONDS, AT(max_future_s), .fallback = "5m", RANGE(0, DAY_S),
        .live = true, .unit = "duration", .help = "how far ahead of now an event's time may be"},
    {"visit-timeout", OPTION_SECONDS, AT(visit_timeout_s), .fallback = "30m", RANGE(1, DAY_S),
        .unit = "duration", .help = "a visit ends when its visitor is silent for this long"},
    {"visitor-rotation", OPTION_ENUM, AT(visitor_rotation), .fallback = "never",
        .words = rotation_words, .unit = "period",
        .help = "how often visitors hashed from their address become new ones, and none can be "
                "recognised"},
    {"aof-rewrite", OPTION_ENUM, AT(aof_rewrite), .fallback = "daily", .words = rewrite_words,
        .unit = "period", .help = "how often Redis is told to rewrite its append-only file"},
    {"ips", OPTION_ENUM, AT(ips), .fallback = "on", .words = off_on_words, .unit = "switch",
        .help = "count distinct addresses, for /ips"},
    {"seen", OPTION_ENUM, AT(seen), .fallback = "on", .words = off_on_words, .unit = "switch",
        .help = "remember which user viewed which page, for /seen"},
    {"seen-capacity", OPTION_INTEGER, AT(seen_capacity), .fallback = "1000000",
        RANGE(1000, BLOOM_CAPACITY_MAX), .unit = "pairs",
        .help = "pairs of user and page of a site and month that are made room for at first"},
    {"seen-error", OPTION_STRING, AT(seen_error), .fallback = "0.01", .check = check_seen_error,
        .unit = "rate", .help = "most of /seen's yeses, to what was not seen, that may be wrong"},
    {"keep-seen", OPTION_SECONDS, AT(keep_seen_s), .fallback = "92d",
        RANGE(SEEN_KEEP_MIN_S, SEEN_KEEP_MAX_S), .unit = "duration",
        .help = "how long a month's pairs of user and page are kept after its end"},
    {"request-timeout", OPTION_MILLISECONDS, AT(request_timeout_ms), .fallback = "10s",
        RANGE(100, HOUR_S * 1000), .unit = "duration",
        .help = "every request is answered within this time"},
    {"max-connections", OPTION_INTEGER, AT(max_connections), .fallback = "4096", RANGE(1, 1000000),
        .unit = "connections", .help = "HTTP connections open at once"},
    {"threads", OPTION_INTEGER, AT(threads), .fallback = "0", RANGE(0, 256), .unit = "threads",
        .help = "HTTP threads; 0: one a core, at most 4"},
    {"readers", OPTION_INTEGER, AT(readers), .fallback = "6", RANGE(1, 64), .unit = "threads",
        .help = "threads that read, each with a connection to Redis"},
    {"cache-mb", OPTION_INTEGER, AT(cache_mb), .fallback = "12", RANGE(0, 65536), .unit = "MiB",
        .help = "memory for what was read of buckets that are over, and of filters of /seen; 0: "
                "read again each time"},
    {"queue", OPTION_INTEGER, AT(queue), .fallback = "50000", RANGE(REQUEST_EVENTS_MAX, 100000000),
        .unit = "events",
        .help = "events that may wait to be written, to all servers of a cluster together; one "
                "request may bring 10000"},
    {"log-hold", OPTION_MILLISECONDS, AT(log_hold_ms), .fallback = "10s", RANGE(1000, 60 * 1000),
        .unit = "duration",
        .help = "with Sentinels or a cluster: what was acknowledged is kept so long, to be "
                "appended again when a replica takes over"},
    {"ack-replicas", OPTION_INTEGER, AT(ack_replicas), .fallback = "auto", RANGE(0, 9),
        .word = "auto", .word_value = OPTION_BY_KIND, .unit = "replicas",
        .help = "so many replicas must have a request before its 202; auto: 1 with Sentinels or a "
                "cluster, else 0"},
    {"log-format", OPTION_ENUM, AT(log_format), .fallback = "logfmt", .words = format_words,
        .unit = "format", .help = "form of a log line"},
    {"log-level", OPTION_ENUM, AT(log_level), .fallback = "info", .words = level_words,
        .live = true, .unit = "level", .help = "least important level that is logged"},
    {"insecure", OPTION_BOOL, AT(insecure), .fallback = "off", .unit = "switch",
        .help = "listen beyond loopback without tokens"},
    {"tokens", OPTION_STRING, AT(tokens), .fallback = "", .unit = "path",
        .help =
            "file of tokens (`tallyd token new`), read again at SIGHUP; empty: nobody needs one"},
    {"metrics-token", OPTION_BOOL, AT(metrics_token), .fallback = "off", .unit = "switch",
        .help = "/healthz, /readyz, /metrics and /openapi.* ask for a token with scope read"},
    {"ingest-limit", OPTION_STRING, AT(ingest_limit), .fallback = "", .check = check_ingest_limit,
        .is_judged = true, .live = true, .unit = "rate",
        .help = "page views taken, as 1000/1s; empty: no limit"},
    {"ingest-burst", OPTION_INTEGER, AT(ingest_burst), .fallback = "limit",
        RANGE(0, LIMIT_BURST_MAX), .word = "limit", .word_value = OPTION_AS_LIMIT, .live = true,
        .unit = "events",
        .help =
            "how many more than one may come at once; limit: one less than --ingest-limit counts"},
    {"ingest-limit-by", OPTION_ENUM, AT(ingest_limit_by), .fallback = "token", .words = guard_words,
        .unit = "who",
        .help = "each of which has the limit for its own: token, client's address, or site"},
    {"trusted-proxies", OPTION_STRING, AT(trusted_proxies), .fallback = "",
        .check = list_option_check_networks, .is_judged = true, .live = true, .unit = "networks",
        .help = "proxies whose X-Forwarded-For is believed, as 127.0.0.1,10.0.0.0/8"},
    {"cors-origins", OPTION_STRING, AT(cors_origins), .fallback = "",
        .check = list_option_check_origins, .live = true, .unit = "origins",
        .help =
            "pages that may read answers, as https://example.org,https://www.example.org, or *"},
    {"respect-dnt", OPTION_BOOL, AT(respect_dnt), .fallback = "off", .live = true, .unit = "switch",
        .help = "browsers that send DNT or Sec-GPC are not counted by their page views"},
    {"bots", OPTION_ENUM, AT(bots), .fallback = "count", .words = bots_words, .live = true,
        .unit = "policy",
        .help = "whether POST /events counts or drops the page views of known robots"},
    {"ignore-ip", OPTION_STRING, AT(ignore_ip), .fallback = "", .check = list_option_check_networks,
        .is_judged = true, .live = true, .unit = "networks",
        .help = "page views from there are dropped, as 203.0.113.0/24,2001:db8::/32"},
    {"only-declared-sites", OPTION_ENUM, AT(only_declared_sites), .fallback = "off",
        .words = off_on_words, .live = true, .unit = "switch",
        .help = "events of a site that no line site.<name>. names are rejected"},
    {"dimensions", OPTION_STRING, AT(dimensions),
        .fallback = "source,utm_source,utm_medium,utm_campaign,browser,os,device,country",
        .check = dimension_option_check, .live = true, .unit = "names",
        .help = "what page views are broken down by, also utm_term, utm_content, language; or off"},
    {"visitors-by", OPTION_STRING, AT(visitors_by), .fallback = "source,country",
        .check = dimension_option_check, .live = true, .unit = "names",
        .help = "those of the dimensions whose values' visitors are counted, too; or off"},
    {"deny-sources", OPTION_STRING, AT(deny_sources), .fallback = "",
        .check = dimension_option_check_hosts, .live = true, .unit = "hosts",
        .help = "hosts that are no source, with those below them, as spam.example,ads.example"},
    {"geo-db", OPTION_STRING, AT(geo_db), .fallback = "", .unit = "path",
        .help = "file in MaxMind's format that says in which country an address is"},
    {"country-header", OPTION_STRING, AT(country_header), .fallback = "",
        .check = dimension_option_check_header, .unit = "name",
        .help = "field in which a trusted proxy says where a browser is, as CF-IPCountry"},
    {"max-pages", OPTION_INTEGER, AT(max_pages), .fallback = "100000", RANGE(0, 100000000),
        .unit = "pages", .help = "pages of a site in an hour; more are counted as one; 0: no cap"},
    {"max-values", OPTION_INTEGER, AT(max_values), .fallback = "500", RANGE(0, 1000000),
        .unit = "values",
        .help = "values of a dimension, a site and an hour; more are counted as one; 0: no cap"},
    {"max-events", OPTION_INTEGER, AT(max_events), .fallback = "500", RANGE(0, 1000000),
        .unit = "names",
        .help = "named events of a site in an hour; more are counted as one; 0: no cap"},
};
const size_t option_table_n = sizeof(option_table) / sizeof(option_table[0]);

static const char *check_zone(const char *name)
{
    const char *fault = NULL;
    struct zone_store *store = zone_store_new(NULL);
    if (store == NULL) {
        return "out of memory";
    }
    (void)zone_store_get(store, slice_of(name), &fault); /* NULL: the fault is set */
    zone_store_free(store);
    return fault;
}

static const char *check_rule_number(struct slice name)
{
    return page_rule_number(name) > 0 ? NULL : "the rules are page.1 to page.100";
}

static const char *check_rule(const char *text)
{
    struct page_rule rule;
    return page_rule_parse(slice_of(text), &rule);
}

static const char *check_name(struct slice name)
{
    return name_valid(name) ? NULL : "the name must be [A-Za-z0-9._-]{1,64}";
}

static const char *check_prefix(const char *text)
{
    return event_check_page(slice_of(text));
}

static const char *check_policy(const char *text)
{
    struct limit_policy policy;
    return limit_option_policy(text, &policy);
}

const struct option_family option_families[] = {
    [OPTION_FAMILY_SITE_TZ] = {OPTION_SITE, ".tz", event_check_site, check_zone, "zone",
        "reporting zone of a site, as Europe/Berlin"},
    [OPTION_FAMILY_SITE_ORIGINS] = {OPTION_SITE, ".origins", event_check_site,
        list_option_check_site_origins, "origins",
        "pages whose browsers need no token for the site, as https://blog.example.org"},
    [OPTION_FAMILY_SITE_DIMENSIONS] = {OPTION_SITE, ".dimensions", event_check_site,
        dimension_option_check, "names",
        "what the site's page views are broken down by, in place of dimensions"},
    [OPTION_FAMILY_SITE_VISITORS_BY] = {OPTION_SITE, ".visitors-by", event_check_site,
        dimension_option_check, "names",
        "those of them whose values' visitors are counted, in place of visitors-by"},
    [OPTION_FAMILY_SITE_PROPS] = {OPTION_SITE, ".props", event_check_site,
        dimension_option_check_props, "names",
        "properties of its own that a site is broken down by, at most two, as plan,variant"},
    [OPTION_FAMILY_PAGE] = {"page.", "", check_rule_number, check_rule, "rule",
        "a rule that makes one page of many, as /user/*/** -> /user/:id; page.1 comes first"},
    [OPTION_FAMILY_SECTION] = {"section.", "", check_name, check_prefix, "prefix",
        "a section: the pages that begin so, as /blog/"},
    [OPTION_FAMILY_POLICY] = {"policy.", "", check_name, check_policy, "limit",
        "a named rate limit, as funnel 5/60s burst 4 + sliding 100/1d + penalty 15m after 3/1h"},
};
const size_t option_families_n = sizeof(option_families) / sizeof(option_families[0]);

_Static_assert(sizeof(option_table) / sizeof(option_table[0]) <= OPTIONS_MAX,
    "struct options has room for the origin of every option");
