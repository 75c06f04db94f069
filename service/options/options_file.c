#include "service/options/options_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/text/utf8.h"
#include "service/options/entries.h"
#include "service/settings_file.h"

#define FILE_MAX (1u << 20) /* bytes of a configuration file */

static const char blanks[] = " \t\r\n";

static bool has_family(const struct option_family *family, struct slice text, struct slice *ret)
{
    size_t before = strlen(family->before), after = strlen(family->after);
    if (text.n <= before + after || memcmp(text.p, family->before, before) != 0 ||
        memcmp(text.p + text.n - after, family->after, after) != 0) {
        return false;
    }
    *ret = (struct slice){text.p + before, text.n - before - after};
    return true;
}

static bool add_entry(struct loader *loader, const struct option_family *family, struct slice name,
    struct slice value, unsigned number)
{
    bool is_new;
    struct option_entry *entry = entries_add(loader->options, family, name, &is_new);
    if (entry == NULL) {
        return loader_fail(loader, "out of memory");
    }
    if (!is_new) {
        return loader_fail(loader, "%s:%u: %s%s%s stands here a second time, first in line %u",
            loader->path, number, family->before, entry->name, family->after, entry->line);
    }
    entry->line = number;
    entry->value = strndup(value.p, value.n);
    if (entry->value == NULL) {
        return loader_fail(loader, "out of memory");
    }
    const char *fault = family->check_name(name);
    if (fault == NULL) {
        fault = family->check(entry->value);
    }
    return fault == NULL ||
           loader_fail(loader, "%s:%u: %s%s%s: \"%.100s\" is refused: %s", loader->path, number,
               family->before, entry->name, family->after, entry->value, fault);
}

/* Read line @number of the file.  @line has @n bytes and room for one more, and is changed. */
static bool read_line(struct loader *loader, unsigned number, char *line, size_t n)
{
    struct slice all = slice_trim((struct slice){line, n}, blanks);
    if (memchr(line, '\0', n) != NULL) {
        return loader_fail(loader, "%s:%u: a NUL byte", loader->path, number);
    }
    if (all.n == 0 || all.p[0] == '#') {
        return true;
    }
    struct slice name, value = all;
    if (!slice_take_until(&value, '=', &name)) {
        return loader_fail(loader, "%s:%u: no `name = value`", loader->path, number);
    }
    name = slice_trim(name, blanks);
    value = slice_trim(value, blanks);
    size_t at = loader_find(name);
    for (size_t i = 0; at == LOADER_NONE && i < option_families_n; i++) {
        struct slice who;
        if (name.n < LOADER_SHOWN_MAX && has_family(&option_families[i], name, &who)) {
            return add_entry(loader, &option_families[i], who, value, number);
        }
    }
    if (at == LOADER_NONE) {
        return loader_fail(loader, "%s:%u: unknown option \"%.*s\"; `tallyd --help` lists them all",
            loader->path, number, name.n < LOADER_SHOWN_MAX ? (int)name.n : LOADER_SHOWN_MAX,
            name.p);
    }
    if (option_table[at].not_in_file) {
        return loader_fail(loader, "%s:%u: %s can only be a flag or in the environment",
            loader->path, number, option_table[at].name);
    }
    if (loader->lines[at] != 0) {
        return loader_fail(loader, "%s:%u: %s stands here a second time, first in line %u",
            loader->path, number, option_table[at].name, loader->lines[at]);
    }
    loader->lines[at] = number;
    line[value.p + value.n - line] = '\0';
    return loader_set(loader, at, value.p, OPTION_FILE);
}

/* Read all lines.  @text has @n bytes and room for one more, and is changed. */
static bool read_lines(struct loader *loader, char *text, size_t n)
{
    unsigned number = 0;
    while (n > 0) {
        char *end = memchr(text, '\n', n);
        size_t length = end != NULL ? (size_t)(end - text) : n;
        size_t used = end != NULL ? length + 1 : n;
        if (!read_line(loader, ++number, text, length)) {
            return false;
        }
        text += used;
        n -= used;
    }
    return true;
}

/* The file is read in one piece of bounded size: a device without lines cannot fill the memory. */
static bool read_text(struct loader *loader, FILE *file)
{
    char *text = malloc(FILE_MAX + 1);
    if (text == NULL) {
        return loader_fail(loader, "out of memory");
    }
    bool ok = false;
    size_t n = fread(text, 1, FILE_MAX + 1, file);
    if (ferror(file)) {
        (void)loader_fail(
            loader, "cannot read the file %s (option config): %s", loader->path, strerror(errno));
    } else if (n > FILE_MAX) {
        (void)loader_fail(loader, "%s: larger than 1 MiB", loader->path);
    } else if (utf8_is_utf16((struct slice){text, n})) {
        (void)loader_fail(loader, "%s: UTF-16: save it as UTF-8", loader->path);
    } else {
        struct slice lines = utf8_without_mark((struct slice){text, n});
        ok = read_lines(loader, text + (n - lines.n), lines.n);
    }
    free(text);
    return ok;
}

bool options_file_read(struct loader *loader)
{
    size_t at = loader_find(SLICE("config"));
    const char *path = loader->flags[at] != NULL ? loader->flags[at] : loader->environment[at];
    if (path == NULL || *path == '\0') {
        return true;
    }
    loader->path = path;
    const char *why;
    FILE *file = settings_file_open(path, loader->again, &why);
    if (file == NULL) {
        return loader_fail(loader, "cannot open the file %s (option config)%s: %s", path,
            loader->again ? " again" : "", why);
    }
    bool ok = read_text(loader, file);
    (void)fclose(file); /* the file was only read: nothing can be lost */
    return ok;
}
