#include "service/options/list_option.h"

#include <stdlib.h>

#include "handlers/access/cors.h"

struct slice list_option_begin(const char *text)
{
    return *text == '\0' ? (struct slice){NULL, 0} : slice_of(text);
}

bool list_option_take(struct slice *rest, struct slice *ret)
{
    if (rest->p == NULL) {
        return false;
    }
    if (!slice_take_until(rest, ',', ret)) {
        *ret = *rest;
        *rest = (struct slice){NULL, 0};
    }
    *ret = slice_trim(*ret, " ");
    return true;
}

static size_t count_entries(const char *text)
{
    size_t n = *text != '\0';
    for (; *text != '\0'; text++) {
        n += *text == ',';
    }
    return n;
}

const char *list_option_check_networks(const char *text)
{
    struct slice rest = list_option_begin(text), entry;
    struct network network;
    const char *fault = NULL;
    while (fault == NULL && list_option_take(&rest, &entry)) {
        fault = network_parse(entry, &network);
    }
    return fault;
}

/* NULL, or @form if not all entries are origins, or if one is "*" and @any is false. */
static const char *check_origins(const char *text, bool any, const char *form)
{
    struct slice rest = list_option_begin(text), entry;
    while (list_option_take(&rest, &entry)) {
        if (!cors_origin_valid(entry) || (!any && slice_equal(entry, SLICE("*")))) {
            return form;
        }
    }
    return NULL;
}

#define ORIGINS "origins as browsers write them with commas between: https://example.org"

const char *list_option_check_origins(const char *text)
{
    return check_origins(text, true, "*, or " ORIGINS);
}

const char *list_option_check_site_origins(const char *text)
{
    return check_origins(text, false, ORIGINS);
}

struct network *list_option_networks(const char *text, size_t *ret_n)
{
    struct slice rest = list_option_begin(text), entry;
    struct network *networks = calloc(count_entries(text) + 1, sizeof(*networks));
    size_t n = 0;
    while (networks != NULL && list_option_take(&rest, &entry)) {
        n += network_parse(entry, &networks[n]) == NULL;
    }
    *ret_n = n;
    return networks;
}

struct slice *list_option_texts(const char *text, size_t *ret_n)
{
    struct slice rest = list_option_begin(text), entry;
    struct slice *texts = calloc(count_entries(text) + 1, sizeof(*texts));
    size_t n = 0;
    while (texts != NULL && list_option_take(&rest, &entry)) {
        texts[n++] = entry;
    }
    *ret_n = n;
    return texts;
}
