#include "handlers/text/robots.h"

#include <stddef.h>
#include <string.h>

#define AGENT_LOOKED_AT 1024 /* bytes; the rest of a longer one is not looked at */
#define HASHED          3    /* bytes; no name is shorter */

/* Texts in lower case that are looked for anywhere in the user agent.  robots.h says where they
 * come from. */
static const char *const names[ROBOTS_NAMES] = {
    "bot", /* at the end of a word: see is_found() */
    /* What it is. */
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
    /* Who it is. */
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
_Static_assert((ROBOTS_BUCKETS & (ROBOTS_BUCKETS - 1)) == 0, "a bucket is some bits of a hash");

/* The bucket of three bytes: the lower 24 bits of @word.  Each byte has its bit 0x20 set, so that
 * case does not count.  (Knuth's multiplicative hash.) */
static unsigned bucket(uint32_t word)
{
    return (word << 8) * UINT32_C(2654435761) / (UINT32_MAX / ROBOTS_BUCKETS + 1);
}

/* @word with the byte @c behind it. */
static uint32_t shifted(uint32_t word, char c)
{
    return word << 8 | (unsigned char)c | 0x20;
}

void robots_init(struct robots *robots)
{
    memset(robots, 0, sizeof(*robots));
    for (unsigned i = 0; i < ROBOTS_NAMES; i++) {
        uint32_t word = 0;
        for (size_t k = 0; k < HASHED; k++) {
            word = shifted(word, names[i][k]);
        }
        uint8_t *first = &robots->first[bucket(word)];
        robots->next[i + 1] = *first;
        *first = (uint8_t)(i + 1);
    }
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

/* Does @name stand at byte @at of @text?  "bot" must be the end of a word, as in Googlebot/2.1, and
 * not that of Cubot, who makes telephones. */
static bool is_found(struct slice text, size_t at, const char *name)
{
    size_t i = at;
    for (const char *c = name; *c != '\0'; c++, i++) {
        if (i == text.n || lower(text.p[i]) != *c) {
            return false;
        }
    }
    if (name != names[0]) {
        return true;
    }
    bool cubot = at >= 2 && lower(text.p[at - 2]) == 'c' && lower(text.p[at - 1]) == 'u';
    return !cubot && (i == text.n || !is_letter(text.p[i]));
}

bool robots_known(const struct robots *robots, struct slice user_agent)
{
    size_t n = user_agent.n < AGENT_LOOKED_AT ? user_agent.n : AGENT_LOOKED_AT;
    struct slice text = {user_agent.p, n};
    uint32_t word = 0;
    for (size_t i = 0; i < n; i++) {
        word = shifted(word, text.p[i]);
        for (unsigned k = robots->first[bucket(word)]; k > 0; k = robots->next[k]) {
            if (i + 1 >= HASHED && is_found(text, i + 1 - HASHED, names[k - 1])) {
                return true;
            }
        }
    }
    return false;
}
