#include "service/options/redis_url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "storage/job/config.h"
#include "storage/redis/url.h"

static const char hidden[] = "***";

/* The part behind @prefix, NULL if @text does not begin with it. */
static const char *behind(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

const char *redis_url_check(const char *url)
{
    struct redis_url parsed;
    return url[0] == '\0' ? NULL : redis_url_parse(url, &parsed); /* "": the embedded Redis */
}

int64_t redis_url_partitions(const char *url)
{
    /* A cluster spreads partitions over its nodes, and moves them one by one. */
    return behind(url, "redis-cluster://") != NULL ? 256 : 16;
}

int64_t redis_url_ack_replicas(const char *url)
{
    return behind(url, "redis-cluster://") != NULL || behind(url, "redis-sentinel://") != NULL;
}

/* In a malformed URL nearly anything may be the password.  So show only what surely is none. */
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
static bool next_url(const char **at, char url[LOCK_URL_SIZE])
{
    size_t n = strcspn(*at, ",");
    if (n >= LOCK_URL_SIZE) {
        return false;
    }
    (void)snprintf(url, LOCK_URL_SIZE, "%.*s", (int)n, *at);
    *at += (*at)[n] == ',' ? n + 1 : n;
    return true;
}

/* Does @url stand in @urls more than once? */
static bool stands_twice(const char *urls, const char *url)
{
    char other[LOCK_URL_SIZE];
    unsigned times = 0;
    while (*urls != '\0' && next_url(&urls, other)) {
        times += strcmp(other, url) == 0;
    }
    return times > 1;
}

static bool is_of_one_server(const char *url)
{
    struct redis_url parsed;
    return redis_url_parse(url, &parsed) == NULL && parsed.kind == REDIS_ONE;
}

const char *redis_url_list_check(const char *urls)
{
    static const char form[] = "1 or 3 to 9 different URLs with commas between, each "
                               "redis://[user:password@]host:port[/db] or unix:/path";
    const char *at = urls;
    char url[LOCK_URL_SIZE];
    unsigned n = 0;
    while (*at != '\0') {
        if (!next_url(&at, url) || !is_of_one_server(url) || stands_twice(urls, url)) {
            return form;
        }
        n++;
    }
    return n == 2 || n > LOCK_SERVERS_MAX || (n > 0 && urls[strlen(urls) - 1] == ',') ? form : NULL;
}

static void mask_list(const char *urls, char *text, size_t room)
{
    size_t used = 0;
    char url[LOCK_URL_SIZE];
    text[0] = '\0';
    while (*urls != '\0' && next_url(&urls, url)) {
        char masked[LOCK_URL_SIZE + 3];
        redis_url_mask(url, masked, sizeof(masked));
        int n = snprintf(text + used, room - used, "%s%s", used == 0 ? "" : ",", masked);
        used += n > 0 && (size_t)n < room - used ? (size_t)n : room - used - 1;
    }
}

/* ---- well-formed URLs ---- */

/* Append to @text, which holds *used of @room bytes; what does not fit is cut off. */
static void append(char *text, size_t room, size_t *used, const char *p, size_t n)
{
    size_t fits = n < room - *used - 1 ? n : room - *used - 1;
    memcpy(text + *used, p, fits);
    *used += fits;
    text[*used] = '\0';
}

/* The password in the query of a Sentinel URL, NULL if there is none. */
static const char *find_sentinel_password(const char *path)
{
    const char *at = strchr(path, '?');
    while (at != NULL) {
        const char *password = behind(at + 1, "sentinel_password=");
        if (password != NULL) {
            return password;
        }
        at = strchr(at + 1, '&');
    }
    return NULL;
}

/* Hide the password before the hosts, and the one behind "sentinel_password=". */
static void mask_good(const char *url, char *text, size_t room)
{
    const char *authority = strstr(url, "://") + 3;
    const char *end = url + strlen(url);
    const char *path = authority + strcspn(authority, "/");
    const char *at = memrchr(authority, '@', (size_t)(path - authority));
    const char *secret = find_sentinel_password(path);
    size_t used = 0;
    text[0] = '\0';
    if (at != NULL) {
        append(text, room, &used, url, (size_t)(strchr(authority, ':') + 1 - url));
        append(text, room, &used, hidden, sizeof(hidden) - 1);
        url = at;
    }
    if (secret != NULL) {
        append(text, room, &used, url, (size_t)(secret - url));
        append(text, room, &used, hidden, sizeof(hidden) - 1);
        url = secret + strcspn(secret, "&");
    }
    append(text, room, &used, url, (size_t)(end - url));
}

/* Is @url one that storage can read, with a server or servers in it, and no path of a socket? */
static bool is_well_formed(const char *url)
{
    struct redis_url parsed;
    return behind(url, "unix:") == NULL && redis_url_parse(url, &parsed) == NULL;
}

void redis_url_mask(const char *url, char *text, size_t room)
{
    if (is_well_formed(url)) {
        mask_good(url, text, room);
    } else if (redis_url_check(url) != NULL && strchr(url, ',') != NULL &&
               redis_url_list_check(url) == NULL) {
        mask_list(url, text, room);
    } else if (redis_url_check(url) != NULL) {
        mask_malformed(url, text, room);
    } else {
        (void)snprintf(text, room, "%s", url); /* "" or unix: */
    }
}
