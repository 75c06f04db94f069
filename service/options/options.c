#include "service/options/options.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handlers/dimension/page_rules.h"
#include "service/options/entries.h"
#include "service/options/limit_option.h"
#include "service/options/loader.h"
#include "service/options/option_table.h"
#include "service/options/option_text.h"
#include "service/options/option_value.h"
#include "service/options/options_file.h"
#include "service/options/redis_url.h"

/* The argument may be the URL of --redis, given without the flag.  So its password is not shown. */
static bool refuse_argument(const struct loader *loader, const char *argument)
{
    char shown[LOADER_SHOWN_MAX];
    option_show(&option_table[loader_find(SLICE("redis"))], argument, shown, sizeof(shown));
    return loader_fail(loader, "unexpected argument \"%s\"", shown);
}

static bool read_flags(struct loader *loader, int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            return refuse_argument(loader, argv[i]);
        }
        const char *name = argv[i] + 2;
        const char *equals = strchr(name, '=');
        size_t n = equals != NULL ? (size_t)(equals - name) : strlen(name);
        size_t at = loader_find((struct slice){name, n});
        if (at == LOADER_NONE) {
            return loader_fail(loader, "unknown option --%.*s; `tallyd --help` lists them all",
                n < LOADER_SHOWN_MAX ? (int)n : LOADER_SHOWN_MAX, name);
        }
        if (equals != NULL) {
            loader->flags[at] = equals + 1;
        } else if (option_table[at].type == OPTION_BOOL) {
            loader->flags[at] = "on";
            if (i + 1 < argc &&
                (strcmp(argv[i + 1], "on") == 0 || strcmp(argv[i + 1], "off") == 0)) {
                return loader_fail(loader, "unexpected argument \"%s\": write --%s=%s", argv[i + 1],
                    option_table[at].name, argv[i + 1]);
            }
        } else if (i + 1 < argc && strncmp(argv[i + 1], "--", 2) != 0) {
            loader->flags[at] = argv[++i];
        } else {
            char allowed[OPTIONS_ERROR / 2];
            option_describe(&option_table[at], "--", allowed, sizeof(allowed));
            return loader_fail(loader, "--%s needs a value: %s", option_table[at].name, allowed);
        }
    }
    return true;
}

/* Does the variable TALLYD_<@name> belong to the clients' commands, the tests or the build?  A
 * shell that starts the service may have such variables, too. */
static bool is_foreign(struct slice name)
{
    static const char *const names[] = {"TOOLS", "BIN", "URL", "TOKEN", "SITE", "FORMAT",
        "NGINX_FORMAT", "SITE_FROM_HOST", "INCLUDE", "ALL", "EXCLUDE", "ONLY", "JSON", "FOLLOW",
        "STATE"};
    bool is_found = slice_begins(name, SLICE("TEST_"));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        is_found = is_found || slice_equal(name, slice_of(names[i]));
    }
    return is_found;
}

static bool read_environment(struct loader *loader, char *const *environment)
{
    for (; *environment != NULL; environment++) {
        const char *equals = strchr(*environment, '=');
        if (equals == NULL ||
            strncmp(*environment, LOADER_PREFIX, sizeof(LOADER_PREFIX) - 1) != 0) {
            continue;
        }
        const char *name = *environment + sizeof(LOADER_PREFIX) - 1;
        struct slice behind = {name, (size_t)(equals - name)};
        size_t at = 0;
        while (at < option_table_n && !loader_is_variable(option_table[at].name, behind)) {
            at++;
        }
        if (at < option_table_n) {
            loader->environment[at] = equals + 1;
        } else if (!is_foreign(behind)) {
            return loader_fail(loader,
                "unknown environment variable " LOADER_PREFIX
                "%.*s; `tallyd --help` lists the options",
                behind.n < LOADER_SHOWN_MAX ? (int)behind.n : LOADER_SHOWN_MAX, name);
        }
    }
    return true;
}

static bool set_all(struct loader *loader, const char *const *texts, enum option_source source)
{
    for (size_t i = 0; i < option_table_n; i++) {
        if (texts[i] != NULL && !loader_set(loader, i, texts[i], source)) {
            return false;
        }
    }
    return true;
}

static bool set_defaults(struct loader *loader)
{
    for (size_t i = 0; i < option_table_n; i++) {
        if (!loader_set(loader, i, option_table[i].fallback, OPTION_DEFAULT)) {
            return false;
        }
    }
    return true;
}

/* Where the option @name has a word whose number is not fixed, as `auto`, make the number @value,
 * also in what `tallyd config` prints. */
static bool resolve(struct loader *loader, struct slice name, int64_t value)
{
    size_t at = loader_find(name);
    const struct option *option = &option_table[at];
    int64_t *field = (int64_t *)(void *)((char *)loader->options + option->offset);
    struct option_origin *origin = &loader->options->origins[at];
    char text[OPTION_VALUE_TEXT];
    if (*field != option->word_value) {
        return true;
    }
    *field = value;
    free(origin->text);
    origin->text = strdup(option->type == OPTION_SIZE ? option_format_size(value, text)
                                                      : option_format_integer(value, text));
    return origin->text != NULL || loader_fail(loader, "out of memory");
}

static bool resolve_memory(struct loader *loader)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (loader->options->redis_memory == OPTION_HALF && (pages <= 0 || page <= 0)) {
        return loader_fail(loader, "redis-memory: the machine's memory is not known, give a size");
    }
    return resolve(loader, SLICE("redis-memory"), (int64_t)pages / 2 * page);
}

/* Where there is a limit, all that a period allows may come at once: one event, and the burst. */
static bool resolve_burst(struct loader *loader)
{
    const char *rate = loader->options->ingest_limit;
    struct limit limit;
    return *rate == '\0' || limit_option_rate(rate, &limit) != NULL ||
           resolve(loader, SLICE("ingest-burst"), limit.count - 1);
}

/* Resolve the values that depend on other options, or on the machine. */
static bool resolve_all(struct loader *loader)
{
    const char *redis = loader->options->redis;
    return resolve_memory(loader) && resolve_burst(loader) &&
           resolve(loader, SLICE("partitions"), redis_url_partitions(redis)) &&
           resolve(loader, SLICE("ack-replicas"), redis_url_ack_replicas(redis));
}

/* A body that is larger than the memory of all bodies could never be taken. */
static bool check_together(const struct loader *loader)
{
    const struct options *options = loader->options;
    if (options->max_body_memory >= options->max_body) {
        return true;
    }
    size_t body = loader_find(SLICE("max-body")), memory = loader_find(SLICE("max-body-memory"));
    char body_at[OPTIONS_ERROR / 4], memory_at[OPTIONS_ERROR / 4];
    loader_place(loader, body, options->origins[body].source, body_at, sizeof(body_at));
    loader_place(loader, memory, options->origins[memory].source, memory_at, sizeof(memory_at));
    return loader_fail(loader, "%s: \"%.50s\" is refused, allowed: at least \"%.50s\" (%s)",
        memory_at, options->origins[memory].text, options->origins[body].text, body_at);
}

static bool is_section(const struct option_entry *entry)
{
    return entry->family == &option_families[OPTION_FAMILY_SECTION];
}

/* In how many sections is a page that begins with the prefix of section @at? */
static size_t sections_around(const struct options *options, const struct option_entry *at)
{
    size_t n = 0;
    for (size_t i = 0; i < options->n_entries; i++) {
        const char *prefix = options->entries[i].value;
        n += is_section(&options->entries[i]) && strncmp(at->value, prefix, strlen(prefix)) == 0;
    }
    return n;
}

/* Refuse more sections than a page can be counted for.  A section that lacks some of its pages
 * would have wrong figures. */
static bool check_sections(const struct loader *loader)
{
    const struct options *options = loader->options;
    size_t n = 0;
    for (size_t i = 0; i < options->n_entries; i++) {
        const struct option_entry *entry = &options->entries[i];
        n += is_section(entry);
        if (is_section(entry) && n > PAGE_SECTIONS_MAX) {
            return loader_fail(loader, "%s:%u: section.%.64s: more than %d sections", loader->path,
                entry->line, entry->name, PAGE_SECTIONS_MAX);
        }
        if (is_section(entry) && sections_around(options, entry) > DIMENSION_SECTIONS_MAX) {
            return loader_fail(loader,
                "%s:%u: section.%.64s: its pages are in more than %d sections, with those of "
                "shorter prefixes",
                loader->path, entry->line, entry->name, DIMENSION_SECTIONS_MAX);
        }
    }
    return true;
}

bool options_load(struct options *options, int argc, char *const *argv, char *const *environment,
    bool again, char *ret_error)
{
    struct loader loader = {.options = options, .again = again, .error = ret_error};
    memset(options, 0, sizeof(*options));
    if (set_defaults(&loader) && read_flags(&loader, argc, argv) &&
        read_environment(&loader, environment) && options_file_read(&loader) &&
        set_all(&loader, loader.environment, OPTION_ENVIRONMENT) &&
        set_all(&loader, loader.flags, OPTION_FLAG) && check_together(&loader) &&
        check_sections(&loader) && resolve_all(&loader)) {
        return true;
    }
    options_release(options);
    return false;
}

void options_release(struct options *options)
{
    for (size_t i = 0; i < OPTIONS_MAX; i++) {
        free(options->origins[i].text);
    }
    entries_release(options);
    memset(options, 0, sizeof(*options));
}
