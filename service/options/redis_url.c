#include "service/options/redis_url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "storage/redis/endpoint.h"

#define URL_ROOM    512 /* bytes of one URL in a list */
#define MAX_SERVERS 9   /* the most that storage takes */

static const char hidden[] = "***";

/* The part behind @prefix, NULL if @text does not begin with it. */
static const char *behind(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

const char *redis_url_check(const char *url)
{
    static const char form[] = "redis://[user:password@]host:port[/db], unix:/path, or nothing for "
                               "the embedded Redis";
    if (*url == '\0') {
        return NULL;
    }
    if (behind(url, "redis-cluster://") != NULL) {
        return "redis-cluster:// is not supported yet";
    }
    if (behind(url, "redis-sentinel://") != NULL) {
        return "redis-sentinel:// is not supported yet";
    }
    const char *path = behind(url, "unix:");
    if (path != NULL) {
        if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
            return "the path of a unix socket has at most 107 bytes";
        }
        return path[0] == '/' && path[1] != '/' && path[1] != '\0' ? NULL : form;
    }
    struct redis_endpoint endpoint;
    return redis_endpoint_parse(url, &endpoint) ? NULL : form;
}

/* In a malformed URL nearly anything may be the password: show only what surely is none. */
static void mask_malformed(const char *url, char *text, size_t room)
{
    size_t scheme = strspn(url, "abcdefghijklmnopqrstuvwxyz-");
    const char *rest = behind(url + scheme, "://");
    if (strpbrk(rest != NULL ? rest : url, "@:?") == NULL ||
        (behind(url, "unix:/") != NULL && strchr(url, '@') == NULL)) {
        (void)snprintf(text, room, "%s", url);
    } else {
        (void)snprintf(text, room, "%.*s%s", rest != NULL ? (int)(rest - url) : 0, url, hidden);
    }
}

/* ---- lists ---- */

/* Copy the URL at *@at, and move *@at behind the URL and its comma.  False: the URL is too long. */
static bool next_url(const char **at, char url[URL_ROOM])
{
    size_t n = strcspn(*at, ",");
    if (n >= URL_ROOM) {
        return false;
    }
    (void)snprintf(url, URL_ROOM, "%.*s", (int)n, *at);
    *at += (*at)[n] == ',' ? n + 1 : n;
    return true;
}

/* Does @url stand in @urls more than once? */
static bool stands_twice(const char *urls, const char *url)
{
    char other[URL_ROOM];
    unsigned times = 0;
    while (*urls != '\0' && next_url(&urls, other)) {
        times += strcmp(other, url) == 0;
    }
    return times > 1;
}

const char *redis_url_list_check(const char *urls)
{
    static const char form[] = "1 or 3 to 9 different URLs with commas between, each "
                               "redis://[user:password@]host:port[/db] or unix:/path";
    const char *at = urls;
    char url[URL_ROOM];
    unsigned n = 0;
    while (*at != '\0') {
        if (!next_url(&at, url) || url[0] == '\0' || redis_url_check(url) != NULL ||
            stands_twice(urls, url)) {
            return form;
        }
        n++;
    }
    return n == 2 || n > MAX_SERVERS || (n > 0 && urls[strlen(urls) - 1] == ',') ? form : NULL;
}

static void mask_list(const char *urls, char *text, size_t room)
{
    size_t used = 0;
    char url[URL_ROOM];
    text[0] = '\0';
    while (*urls != '\0' && next_url(&urls, url)) {
        char masked[URL_ROOM + 3];
        redis_url_mask(url, masked, sizeof(masked));
        int n = snprintf(text + used, room - used, "%s%s", used == 0 ? "" : ",", masked);
        used += n > 0 && (size_t)n < room - used ? (size_t)n : room - used - 1;
    }
}

void redis_url_mask(const char *url, char *text, size_t room)
{
    const char *userinfo = behind(url, "redis://");
    const char *at = userinfo != NULL ? strrchr(userinfo, '@') : NULL;
    if (redis_url_check(url) != NULL && strchr(url, ',') != NULL &&
        redis_url_list_check(url) == NULL) {
        mask_list(url, text, room);
    } else if (redis_url_check(url) != NULL) {
        mask_malformed(url, text, room);
    } else if (at == NULL) {
        (void)snprintf(text, room, "%s", url);
    } else {
        (void)snprintf(
            text, room, "%.*s:%s%s", (int)(strchr(userinfo, ':') - url), url, hidden, at);
    }
}
