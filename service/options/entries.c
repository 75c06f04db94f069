#include "service/options/entries.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct wanted {
    const struct options *options;
    const struct option_family *family;
    struct slice name;
};

static bool is_wanted(const void *context, uint32_t item)
{
    const struct wanted *wanted = context;
    const struct option_entry *entry = &wanted->options->entries[item];
    return entry->family == wanted->family && slice_equal(slice_of(entry->name), wanted->name);
}

static uint64_t hash_of(const struct option_family *family, struct slice name)
{
    return XXH3_64bits_withSeed(name.p, name.n, (uint64_t)(family - option_families));
}

struct option_entry *entries_add(
    struct options *options, const struct option_family *family, struct slice name, bool *ret_new)
{
    char *copy = strndup(name.p, name.n); /* first: the index must not hold an entry without one */
    struct wanted wanted = {options, family, name};
    bool is_new = false;
    uint32_t at = copy == NULL ? INDEX_NONE
                               : INDEX_ADD(options, entry_index, entries, hash_of(family, name),
                                     is_wanted, &wanted, &is_new);
    if (at == INDEX_NONE) {
        free(copy);
        return NULL;
    }
    if (is_new) {
        options->entries[at] = (struct option_entry){.family = family, .name = copy};
    } else {
        free(copy);
    }
    *ret_new = is_new;
    return &options->entries[at];
}

const struct option_entry *entries_find(
    const struct options *options, const struct option_family *family, struct slice name)
{
    struct wanted wanted = {options, family, name};
    if (options->n_entries == 0) {
        return NULL;
    }
    uint32_t at =
        index_find(&options->entry_index, hash_of(family, name), is_wanted, &wanted)->item;
    return at == INDEX_NONE ? NULL : &options->entries[at];
}

void entries_release(struct options *options)
{
    for (size_t i = 0; i < options->n_entries; i++) {
        free(options->entries[i].name);
        free(options->entries[i].value);
    }
    free(options->entries);
    index_release(&options->entry_index);
}
