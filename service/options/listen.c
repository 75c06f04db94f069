#include "service/options/listen.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "handlers/text/ascii.h"
#include "service/options/option_value.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

static bool is_name(const char *host)
{
    const char *dot = strrchr(host, '.');
    const char *last = dot != NULL ? dot + 1 : host;
    return host[strspn(host, NAME_CHARACTERS)] == '\0' && *host != '.' && *host != '-' &&
           *last != '\0' && !ascii_is_digit(*last);
}

static bool classify(const char *host, bool bracketed, enum listen_family *ret)
{
    struct in6_addr address;
    if (bracketed) {
        if (inet_pton(AF_INET6, host, &address) != 1) {
            return false;
        }
        *ret = LISTEN_IPV6;
        return true;
    }
    if (inet_pton(AF_INET, host, &address) == 1) {
        *ret = LISTEN_IPV4;
        return true;
    }
    *ret = LISTEN_NAME;
    return is_name(host);
}

const char *listen_parse(const char *text, struct listen_address *ret)
{
    static const char allowed[] =
        "HOST:PORT or [IPV6]:PORT, as 127.0.0.1:8080 or [::1]:0, port 0 to 65535";
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (colon == NULL || !option_parse_integer(colon + 1, &port) || port > UINT16_MAX) {
        return allowed;
    }
    bool bracketed = text[0] == '[' && colon - text >= 2 && colon[-1] == ']';
    const char *host = text + bracketed;
    size_t n = (size_t)(colon - host) - bracketed;
    if (n == 0 || n > LISTEN_HOST_MAX) {
        return allowed;
    }
    struct listen_address address = {.port = (uint16_t)port};
    memcpy(address.host, host, n);
    if (!classify(address.host, bracketed, &address.family)) {
        return allowed;
    }
    *ret = address;
    return NULL;
}

bool listen_is_loopback(const struct listen_address *address)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    switch (address->family) {
    case LISTEN_IPV4:
        return inet_pton(AF_INET, address->host, bytes) == 1 && bytes[0] == 127;
    case LISTEN_IPV6:
        return inet_pton(AF_INET6, address->host, bytes) == 1 &&
               memcmp(bytes, &in6addr_loopback, sizeof(bytes)) == 0;
    case LISTEN_NAME:
        return strcasecmp(address->host, "localhost") == 0;
    }
    return false;
}
