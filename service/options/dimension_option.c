#include "service/options/dimension_option.h"

#include <stdbool.h>
#include <string.h>

#include "handlers/text/ascii.h"
#include "handlers/text/check.h"
#include "service/options/list_option.h"
#include "storage/job/dimension.h"

#define DIMENSIONS_DETAIL                                                                          \
    "names with commas between: source, utm_source, utm_medium, utm_campaign, utm_term, "          \
    "utm_content, browser, os, device, country, language; or off"

const char *dimension_option_parse(const char *text, uint16_t *ret)
{
    struct slice rest = list_option_begin(text), name;
    *ret = 0;
    if (strcmp(text, "off") == 0) {
        return NULL;
    }
    while (list_option_take(&rest, &name)) {
        enum dimension dimension = dimension_find(name);
        if (dimension == DIMENSION_N) {
            return DIMENSIONS_DETAIL;
        }
        *ret |= (uint16_t)(1u << dimension);
    }
    return NULL;
}

const char *dimension_option_check(const char *text)
{
    uint16_t bits;
    return dimension_option_parse(text, &bits);
}

const char *dimension_option_check_props(const char *text)
{
    struct slice rest = list_option_begin(text), name;
    size_t n = 0;
    while (list_option_take(&rest, &name)) {
        if (!name_valid(name) || ++n > DIMENSION_PROPS_MAX) {
            return "at most two names of [A-Za-z0-9._-]{1,64} with a comma between, as "
                   "plan,variant";
        }
    }
    return NULL;
}

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || ascii_is_digit(c) || c == '.' || c == '-' ||
           (unsigned char)c >= 0x80;
}

const char *dimension_option_check_hosts(const char *text)
{
    struct slice rest = list_option_begin(text), host;
    while (list_option_take(&rest, &host)) {
        bool ok = host.n > 0 && host.p[0] != '.';
        for (size_t i = 0; i < host.n; i++) {
            ok = ok && is_host_char(host.p[i]);
        }
        if (!ok) {
            return "hosts in lower case with commas between, as spam.example,ads.example";
        }
    }
    return NULL;
}

const char *dimension_option_check_header(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        if (!ascii_is_alnum(text[i]) && text[i] != '-' && text[i] != '_') {
            return "the name of a header field, as CF-IPCountry";
        }
    }
    return n <= 64 ? NULL : "a name of at most 64 characters";
}
