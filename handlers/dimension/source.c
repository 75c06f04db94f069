#include "handlers/dimension/source.h"

#include <stdlib.h>
#include <strings.h>

#include "handlers/text/ascii.h"
#include "handlers/text/url.h"
#include "handlers/text/utf8.h"

struct known_source {
    const char *host, *name;
};

/* Well-known hosts, in the order of slice_compare().  An app on Android sends the name of its
 * package in place of a host. */
static const struct known_source known[] = {
    {"amp.reddit.com", "reddit"},
    {"baidu.com", "baidu"},
    {"bing.com", "bing"},
    {"bsky.app", "bluesky"},
    {"chat.openai.com", "chatgpt"},
    {"chatgpt.com", "chatgpt"},
    {"claude.ai", "claude"},
    {"cn.bing.com", "bing"},
    {"com.facebook.katana", "facebook"},
    {"com.google.android.gm", "gmail"},
    {"com.google.android.googlequicksearchbox", "google"},
    {"com.linkedin.android", "linkedin"},
    {"com.pinterest", "pinterest"},
    {"com.reddit.frontpage", "reddit"},
    {"com.slack", "slack"},
    {"com.twitter.android", "twitter"},
    {"copilot.microsoft.com", "copilot"},
    {"discord.com", "discord"},
    {"duckduckgo.com", "duckduckgo"},
    {"ecosia.org", "ecosia"},
    {"facebook.com", "facebook"},
    {"fb.com", "facebook"},
    {"fb.me", "facebook"},
    {"gemini.google.com", "gemini"},
    {"go.bsky.app", "bluesky"},
    {"html.duckduckgo.com", "duckduckgo"},
    {"instagram.com", "instagram"},
    {"kagi.com", "kagi"},
    {"l.facebook.com", "facebook"},
    {"l.instagram.com", "instagram"},
    {"l.threads.net", "threads"},
    {"linkedin.com", "linkedin"},
    {"lm.facebook.com", "facebook"},
    {"lnkd.in", "linkedin"},
    {"m.baidu.com", "baidu"},
    {"m.facebook.com", "facebook"},
    {"m.search.naver.com", "naver"},
    {"m.vk.com", "vk"},
    {"m.youtube.com", "youtube"},
    {"mail.google.com", "gmail"},
    {"mobile.twitter.com", "twitter"},
    {"naver.com", "naver"},
    {"new.reddit.com", "reddit"},
    {"news.ycombinator.com", "hacker news"},
    {"old.reddit.com", "reddit"},
    {"org.telegram.messenger", "telegram"},
    {"out.reddit.com", "reddit"},
    {"perplexity.ai", "perplexity"},
    {"pin.it", "pinterest"},
    {"pinterest.com", "pinterest"},
    {"qwant.com", "qwant"},
    {"reddit.com", "reddit"},
    {"search.brave.com", "brave"},
    {"search.naver.com", "naver"},
    {"search.seznam.cz", "seznam"},
    {"seznam.cz", "seznam"},
    {"sogou.com", "sogou"},
    {"startpage.com", "startpage"},
    {"t.co", "twitter"},
    {"t.me", "telegram"},
    {"threads.net", "threads"},
    {"tiktok.com", "tiktok"},
    {"twitter.com", "twitter"},
    {"vk.com", "vk"},
    {"web.telegram.org", "telegram"},
    {"x.com", "twitter"},
    {"ya.ru", "yandex"},
    {"yahoo.com", "yahoo"},
    {"youtu.be", "youtube"},
    {"youtube.com", "youtube"},
};

/* Search engines that have a host in each country: what stands before the top-level domain. */
static const struct known_source families[] = {
    {"google.", "google"},
    {"images.google.", "google"},
    {"yandex.", "yandex"},
    {"search.yahoo.", "yahoo"},
    {"r.search.yahoo.", "yahoo"},
};

#define TOP_MAX 6 /* bytes of the longest top-level domain that is taken, as "com.br" */

static bool is_scheme(struct slice scheme)
{
    return slice_equal(scheme, SLICE("https")) || slice_equal(scheme, SLICE("http")) ||
           slice_equal(scheme, SLICE("android-app"));
}

/* @authority without the user before its '@': host and port. */
static struct slice behind_user(struct slice authority)
{
    const char *at = authority.n > 0 ? memrchr(authority.p, '@', authority.n) : NULL;
    return at == NULL ? authority
                      : (struct slice){at + 1, (size_t)(authority.p + authority.n - at) - 1};
}

/* @host without its port.  An IPv6 address keeps its brackets. */
static struct slice without_port(struct slice host)
{
    if (host.n > 0 && host.p[0] == '[') {
        const char *end = memchr(host.p, ']', host.n);
        return end == NULL ? SLICE("") : (struct slice){host.p, (size_t)(end - host.p) + 1};
    }
    return slice_until(&host, ':');
}

/* May @c be in a host, which is a name or an address?  Names may have letters of other scripts. */
static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || ascii_is_digit(c) || (c != '\0' && strchr("-._[:]", c)) ||
           (unsigned char)c >= 0x80;
}

struct slice source_without_www(struct slice host)
{
    bool www = host.n > 4 && strncasecmp(host.p, "www.", 4) == 0;
    return www ? (struct slice){host.p + 4, host.n - 4} : host;
}

bool source_host(struct slice url, char *to, struct slice *ret)
{
    struct url parts;
    if (!url_split(url, &parts) || !is_scheme(parts.scheme)) {
        return false;
    }
    struct slice host = without_port(behind_user(parts.authority));
    while (host.n > 0 && host.p[host.n - 1] == '.') {
        host.n--;
    }
    host = source_without_www(host);
    if (host.n == 0 || host.n > SOURCE_HOST_MAX) {
        return false;
    }
    for (size_t i = 0; i < host.n; i++) {
        to[i] = ascii_lower(host.p[i]);
        if (!is_host_char(to[i])) {
            return false;
        }
    }
    *ret = (struct slice){to, host.n};
    return utf8_valid(*ret); /* a referrer may have any bytes, but an answer must be UTF-8 */
}

static int compare(const void *host, const void *source)
{
    return slice_compare(
        *(const struct slice *)host, slice_of(((const struct known_source *)source)->host));
}

/* Is @top a top-level domain, as "de", "com" or "co.uk"? */
static bool is_top(struct slice top)
{
    for (size_t i = 0; i < top.n; i++) {
        if (top.p[i] != '.' && (top.p[i] < 'a' || top.p[i] > 'z')) {
            return false;
        }
    }
    return top.n >= 2 && top.n <= TOP_MAX && top.p[0] != '.';
}

struct slice source_name(struct slice host)
{
    const struct known_source *found =
        bsearch(&host, known, sizeof(known) / sizeof(known[0]), sizeof(known[0]), compare);
    if (found != NULL) {
        return slice_of(found->name);
    }
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        struct slice head = slice_of(families[i].host);
        if (slice_begins(host, head) && is_top((struct slice){host.p + head.n, host.n - head.n})) {
            return slice_of(families[i].name);
        }
    }
    return host;
}
