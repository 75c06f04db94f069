#include "service/client/import_filter.h"

#include <string.h>
#include <strings.h>

#define IMPORT_CLASS_NAME(name, text) text,
static const char *const class_names[] = {IMPORT_CLASSES(IMPORT_CLASS_NAME)};
#undef IMPORT_CLASS_NAME

const char *import_class_name(enum import_class class)
{
    return class_names[class];
}

void import_filter_init(struct import_filter *filter)
{
    *filter = (struct import_filter){0};
    robots_init(&filter->robots);
}

/* The class that a user may name, IMPORT_CLASS_COUNT if there is none. */
static enum import_class class_named(struct slice name)
{
    for (size_t i = 0; i < IMPORT_PATH; i++) {
        if (slice_equal(name, slice_of(class_names[i]))) {
            return (enum import_class)i;
        }
    }
    return IMPORT_CLASS_COUNT;
}

const char *import_filter_include(struct import_filter *filter, struct slice value)
{
    enum import_class class = class_named(value);
    if (class == IMPORT_CLASS_COUNT || class == IMPORT_MALFORMED) {
        return IMPORT_CLASSES_EXPECTED;
    }
    filter->included |= 1u << class;
    return NULL;
}

static const char *add_prefix(struct slice *prefixes, size_t *n, struct slice value)
{
    if (value.n == 0 || value.p[0] != '/') {
        return "/PREFIX, the beginning of a path";
    }
    if (*n == IMPORT_PREFIXES_MAX) {
        return "given at most 64 times with a path";
    }
    prefixes[(*n)++] = value;
    return NULL;
}

const char *import_filter_exclude(struct import_filter *filter, struct slice value)
{
    if (value.n > 0 && value.p[0] == '/') {
        return add_prefix(filter->exclude, &filter->n_exclude, value);
    }
    enum import_class class = class_named(value);
    if (class == IMPORT_CLASS_COUNT) {
        return IMPORT_CLASSES_EXPECTED ", or /PREFIX, the beginning of a path";
    }
    filter->excluded |= 1u << class;
    return NULL;
}

const char *import_filter_only(struct import_filter *filter, struct slice value)
{
    return add_prefix(filter->only, &filter->n_only, value);
}

/* Is @page, to judge by its suffix, a part of a page and no page itself? */
static bool is_file(struct slice page)
{
    static const char *const suffixes[] = {"css", "js", "mjs", "map", "json", "xml", "txt", "ico",
        "png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "bmp", "woff", "woff2", "ttf", "otf",
        "eot", "mp3", "mp4", "webm", "ogg"};
    const char *dot = memrchr(page.p, '.', page.n);
    size_t n = dot != NULL ? (size_t)(page.p + page.n - dot) - 1 : 0;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        if (n == strlen(suffixes[i]) && strncasecmp(dot + 1, suffixes[i], n) == 0) {
            return true;
        }
    }
    return false;
}

static bool begins(struct slice page, const struct slice *prefixes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_begins(page, prefixes[i])) {
            return true;
        }
    }
    return false;
}

static bool fits(
    const struct import_filter *filter, enum import_class class, const struct log_line *line)
{
    switch (class) {
    case IMPORT_METHOD:
        return line->method != LOG_GET && line->method != LOG_POST;
    case IMPORT_ROBOT:
        return robots_known(&filter->robots, line->ua);
    case IMPORT_ERROR:
        return line->status >= 400 && line->status <= 599;
    case IMPORT_REDIRECT:
        return line->status >= 300 && line->status <= 399 && line->status != 304;
    case IMPORT_FILE:
        return is_file(line->page);
    case IMPORT_PATH:
        return begins(line->page, filter->exclude, filter->n_exclude) ||
               (filter->n_only > 0 && !begins(line->page, filter->only, filter->n_only));
    case IMPORT_MALFORMED:
    case IMPORT_CLASS_COUNT:
        break;
    }
    return false;
}

/* Do lines of @class count, as far as --all and --include say? */
static bool is_counted(
    const struct import_filter *filter, enum import_class class, const struct log_line *line)
{
    if ((filter->included >> class & 1) != 0) {
        return true;
    }
    return filter->all && class != IMPORT_PATH &&
           (class != IMPORT_METHOD || line->method == LOG_HEAD);
}

bool import_filter_counts_robots(const struct import_filter *filter)
{
    return (filter->all || (filter->included >> IMPORT_ROBOT & 1) != 0) &&
           (filter->excluded >> IMPORT_ROBOT & 1) == 0;
}

enum import_class import_filter_class(
    const struct import_filter *filter, const struct log_line *line)
{
    bool has_class = false;
    for (enum import_class class = IMPORT_METHOD; class < IMPORT_CLASS_COUNT; class ++) {
        bool is_excluded = (filter->excluded >> class & 1) != 0 || class == IMPORT_PATH;
        bool is_harmless = has_class || (filter->all && class != IMPORT_METHOD);
        if ((is_harmless && !is_excluded) || !fits(filter, class, line)) {
            continue;
        }
        if (is_excluded || !is_counted(filter, class, line)) {
            return class;
        }
        has_class = true;
    }
    return IMPORT_PAGE_VIEW;
}
