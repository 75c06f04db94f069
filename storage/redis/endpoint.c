#include "storage/redis/endpoint.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "storage/base/slice.h"

/* Percent-decode @n bytes into a text of @size bytes. */
static bool percent_decode(const char *p, size_t n, char *text, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if ((unsigned char)c <= ' ') {
            return false;
        }
        if (c == '%') {
            if (i + 2 >= n || hex_digit(p[i + 1]) < 0 || hex_digit(p[i + 2]) < 0) {
                return false;
            }
            c = (char)(hex_digit(p[i + 1]) * 16 + hex_digit(p[i + 2]));
            i += 2;
        }
        if (c == '\0' || at + 1 >= size) {
            return false;
        }
        text[at++] = c;
    }
    text[at] = '\0';
    return true;
}

/* The value of the decimal digits [p, end), which is at most @max; -1 for anything else. */
static int parse_number(const char *p, const char *end, int max)
{
    int value = 0;
    if (p == end) {
        return -1;
    }
    for (; p < end; p++) {
        if (!isdigit((unsigned char)*p) || value > max / 10) {
            return -1;
        }
        value = value * 10 + (*p - '0');
    }
    return value <= max ? value : -1;
}

static bool parse_credentials(const char *p, size_t n, struct redis_endpoint *ret)
{
    const char *colon = memchr(p, ':', n);
    if (colon == NULL || memchr(p, '/', n) != NULL || memchr(p, '@', n) != NULL) {
        return false;
    }
    size_t user_n = (size_t)(colon - p);
    return percent_decode(p, user_n, ret->user, sizeof(ret->user)) &&
           percent_decode(colon + 1, n - user_n - 1, ret->password, sizeof(ret->password));
}

/* host:port or [v6]:port */
static bool parse_host(const char *p, const char *end, struct redis_endpoint *ret)
{
    bool v6 = p < end && *p == '[';
    p += v6;
    const char *host_end = memchr(p, v6 ? ']' : ':', (size_t)(end - p));
    if (host_end == NULL) {
        return false;
    }
    const char *colon = host_end + v6;
    size_t n = (size_t)(host_end - p);
    if (colon >= end || *colon != ':' || end - colon > 6 || n == 0 || n >= sizeof(ret->host)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)p[i] <= ' ' || p[i] == '?' || p[i] == '#') {
            return false;
        }
    }
    memcpy(ret->host, p, n);
    ret->host[n] = '\0';
    ret->port = parse_number(colon + 1, end, 65535);
    return ret->port > 0;
}

bool redis_endpoint_parse(const char *url, struct redis_endpoint *ret)
{
    struct redis_endpoint endpoint = {0};
    if (strncmp(url, "unix:", 5) == 0) {
        size_t n = strlen(url + 5);
        if (n == 0 || n >= sizeof(endpoint.unix_path)) {
            return false;
        }
        memcpy(endpoint.unix_path, url + 5, n + 1);
        *ret = endpoint;
        return true;
    }
    if (strncmp(url, "redis://", 8) != 0) {
        return false;
    }
    const char *p = url + 8;
    const char *end = p + strlen(p);
    const char *at = strrchr(p, '@');
    if (at != NULL) {
        if (!parse_credentials(p, (size_t)(at - p), &endpoint)) {
            return false;
        }
        p = at + 1;
    }
    const char *slash = strchr(p, '/');
    if (slash != NULL) {
        endpoint.db = parse_number(slash + 1, end, 100000);
    }
    if (endpoint.db < 0 || !parse_host(p, slash == NULL ? end : slash, &endpoint)) {
        return false;
    }
    *ret = endpoint;
    return true;
}
