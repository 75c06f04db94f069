#include "service/options/list_option.h"

#include <stdlib.h>

#include "handlers/access/cors.h"

struct slice list_option_take(struct slice *rest)
{
    return slice_trim(slice_until(rest, ','), " ");
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
    struct slice rest = slice_of(text);
    struct network network;
    const char *fault = NULL;
    while (fault == NULL && rest.n > 0) {
        fault = network_parse(list_option_take(&rest), &network);
    }
    return fault;
}

/* NULL, or @form if not all entries are origins, or if one is "*" and @any is false. */
static const char *check_origins(const char *text, bool any, const char *form)
{
    struct slice rest = slice_of(text);
    while (rest.n > 0) {
        struct slice entry = list_option_take(&rest);
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
    struct slice rest = slice_of(text);
    struct network *networks = calloc(count_entries(text) + 1, sizeof(*networks));
    size_t n = 0;
    while (networks != NULL && rest.n > 0) {
        n += network_parse(list_option_take(&rest), &networks[n]) == NULL;
    }
    *ret_n = n;
    return networks;
}

struct slice *list_option_texts(const char *text, size_t *ret_n)
{
    struct slice rest = slice_of(text);
    struct slice *texts = calloc(count_entries(text) + 1, sizeof(*texts));
    size_t n = 0;
    while (texts != NULL && rest.n > 0) {
        texts[n++] = list_option_take(&rest);
    }
    *ret_n = n;
    return texts;
}
