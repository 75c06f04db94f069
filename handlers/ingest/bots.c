#include "handlers/ingest/bots.h"

#include <stddef.h>
#include <string.h>

#define AGENT_LOOKED_AT 1024 /* bytes; the rest of a longer one is not looked at */

/* Texts in lower case that are looked for anywhere in the user agent.  bots.h says where they come
 * from. */
static const char *const names[] = {
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

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

/* Is "bot" the end of a word, as in Googlebot/2.1?  (Cubot is a maker of telephones.) */
static bool has_bot(const char *text, size_t n)
{
    const char *end = text + n;
    const char *p = text;
    while ((p = memmem(p, (size_t)(end - p), "bot", 3)) != NULL) {
        const char *behind = p + 3;
        bool cubot = p - text >= 2 && p[-2] == 'c' && p[-1] == 'u';
        if (!cubot && (behind == end || !is_letter(*behind))) {
            return true;
        }
        p = behind;
    }
    return false;
}

bool bots_known(struct slice user_agent)
{
    char text[AGENT_LOOKED_AT];
    size_t n = user_agent.n < sizeof(text) ? user_agent.n : sizeof(text);
    for (size_t i = 0; i < n; i++) {
        char c = user_agent.p[i];
        text[i] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    }
    if (has_bot(text, n)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (memmem(text, n, names[i], strlen(names[i])) != NULL) {
            return true;
        }
    }
    return false;
}
