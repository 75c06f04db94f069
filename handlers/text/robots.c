#include "handlers/text/robots.h"

#include <stddef.h>
#include <string.h>

#include "handlers/text/ascii.h"

/* Texts in lower case that are looked for anywhere in the user agent.  robots.h says where they
 * come from. */
static const char *const names[ROBOTS_NAMES] = {
    "bot", /* at the end of a word: see is_found() */
    /* words for a kind of robot */
    "+http",
    "crawl",
    "spider",
    "scrape",
    "scraping",
    "slurp",
    "archiv",
    "harvest",
    "fetcher",
    "checker",
    "linkcheck",
    "validator",
    "scanner",
    "/scanning",
    "monitor",
    "uptime",
    "synthetic",
    "webhook",
    "web preview",
    "link preview",
    "uripreview",
    "bingpreview",
    "externalhit",
    "feedburner",
    "feedly",
    "feed fetch",
    "feedread",
    "rss/",
    "lighthouse",
    /* names of robots, and of those that run them */
    "acunetix",
    "adscanner",
    "ahrefs",
    "anthropic",
    "apis-google",
    "appinsights",
    "blackbox exporter",
    "botify",
    "brandverity",
    "censys",
    "checkly",
    "dareboost",
    "dataprovider",
    "daumoa",
    "disqus",
    "flipboardproxy",
    "github-camo",
    "google favicon",
    "google-ads",
    "google-inspectiontool",
    "google-read-aloud",
    "google-site-verif",
    "googleimageproxy",
    "googleother",
    "gtmetrix",
    "hatena",
    "heritrix",
    "httrack",
    "ia_archiver",
    "inoreader",
    "ips-agent",
    "lipperhey",
    "masscan",
    "mediapartners",
    "nagios",
    "nessus",
    "netcraft",
    "netvibes",
    "newsblur",
    "nikto/",
    "nmap scripting",
    "nutch",
    "offline explorer",
    "perplexity",
    "pingdom",
    "pocketparser",
    "prtg",
    "ptst/",
    "screaming frog",
    "semrush",
    "silktide",
    "site24x7",
    "siteimprove",
    "slack-imgproxy",
    "sogou web",
    "splunk",
    "storebot-google",
    "teoma",
    "theoldreader",
    "thousandeyes",
    "twingly",
    "webcopier",
    "webzip",
    "whatsapp/",
    "y!j",
    "yahoomailproxy",
    "zapier",
    "zgrab",
};

_Static_assert(ROBOTS_NAMES < UINT8_MAX, "a number of a name is a byte");
_Static_assert((ROBOTS_BUCKETS & (ROBOTS_BUCKETS - 1)) == 0 && ROBOTS_HASHES % ROBOTS_BUCKETS == 0,
    "a bucket is some bits of a hash");

void robots_init(struct robots *robots)
{
    memset(robots, 0, sizeof(*robots));
    for (unsigned i = 0; i < ROBOTS_NAMES; i++) {
        uint32_t three = 0;
        for (const char *c = names[i]; *c != '\0'; c++) {
            three = robots_shifted(three, *c);
        }
        unsigned hash = robots_hash(three);
        uint8_t *first = &robots->first[hash / (ROBOTS_HASHES / ROBOTS_BUCKETS)];
        robots->ends[hash / 64] |= UINT64_C(1) << (hash % 64);
        robots->names[i + 1] = (struct robots_name){three, (uint8_t)strlen(names[i]), *first};
        *first = (uint8_t)(i + 1);
    }
}

/* Does name @i, from 1, end before byte @end of @text?  "bot" must end a word, as in Googlebot/2.1,
 * and the word must not be Cubot, a make of telephones. */
static bool ends_there(const struct robots *robots, unsigned i, struct slice text, size_t end)
{
    const char *name = names[i - 1];
    size_t n = robots->names[i].n;
    if (end < n) {
        return false;
    }
    const char *begin = text.p + end - n;
    for (size_t k = 0; k < n; k++) {
        if (ascii_lower(begin[k]) != name[k]) {
            return false;
        }
    }
    if (name != names[0]) {
        return true;
    }
    bool cubot = end - n >= 2 && ascii_lower(begin[-2]) == 'c' && ascii_lower(begin[-1]) == 'u';
    return !cubot && (end == text.n || !ascii_is_letter(text.p[end]));
}

/* Does any name end before byte @end of @text?  @three are the last three bytes before that. */
static bool any_ends_there(
    const struct robots *robots, uint32_t three, struct slice text, size_t end)
{
    unsigned hash = robots_hash(three);
    unsigned i = robots->first[hash / (ROBOTS_HASHES / ROBOTS_BUCKETS)];
    while (i > 0 && (robots->names[i].last != three || !ends_there(robots, i, text, end))) {
        i = robots->names[i].next;
    }
    return i > 0;
}

bool robots_known(const struct robots *robots, struct slice user_agent)
{
    size_t n = user_agent.n < ROBOTS_LOOKED_AT ? user_agent.n : ROBOTS_LOOKED_AT;
    struct slice text = {user_agent.p, n};
    uint32_t three = 0;
    for (size_t i = 0; i < n; i++) {
        three = robots_shifted(three, text.p[i]);
        if (robots_may_end(robots, three) && any_ends_there(robots, three, text, i + 1)) {
            return true;
        }
    }
    return false;
}
