#include "storage/filter_groups.h"

void filter_groups_begin(struct filter_groups *groups, const struct bloom_layer *layer)
{
    groups->layer = layer;
    groups->run = layer->strings == 1 ? layer->hashes : 1;
    groups->n_items = 0;
    groups->n_bits = 0;
    groups->n_strings = 0;
}

/* Where it stands in strings; false: there is no room for it. */
static bool number_of(struct filter_groups *groups, uint64_t string, uint16_t *ret)
{
    for (size_t i = 0; i < groups->n_strings; i++) {
        if (groups->strings[i] == string) {
            *ret = (uint16_t)i;
            return true;
        }
    }
    if (groups->n_strings == GROUPS_STRINGS_MAX) {
        return false;
    }
    *ret = (uint16_t)groups->n_strings;
    groups->strings[groups->n_strings++] = string;
    return true;
}

bool filter_groups_add(struct filter_groups *groups, struct bloom_hash hash)
{
    const struct bloom_layer *layer = groups->layer;
    size_t strings = groups->n_strings;
    if (groups->n_bits + layer->hashes > GROUPS_BITS_MAX) {
        return false;
    }
    for (unsigned i = 0; i < layer->hashes; i++) {
        struct bloom_place place = bloom_place(layer, hash, i);
        struct group_bit *bit = &groups->bits[groups->n_bits + i];
        bit->bit = (uint32_t)place.bit;
        bit->item = (uint16_t)groups->n_items;
        if (!number_of(groups, place.string, &bit->string)) {
            groups->n_strings = strings;
            return false;
        }
    }
    groups->n_bits += layer->hashes;
    groups->n_items++;
    return true;
}

void filter_groups_end(struct filter_groups *groups)
{
    size_t next[GROUPS_STRINGS_MAX + 1] = {0};
    for (size_t i = 0; i < groups->n_bits; i++) {
        next[groups->bits[i].string + 1]++;
    }
    groups->first[0] = 0;
    for (size_t s = 0; s < groups->n_strings; s++) {
        next[s + 1] += next[s];
        groups->first[s + 1] = next[s + 1];
    }
    for (size_t i = 0; i < groups->n_bits; i++) {
        groups->ordered[next[groups->bits[i].string]++] = groups->bits[i];
    }
}

bool filter_groups_next(const struct filter_groups *groups, size_t most, struct group *group)
{
    most = most < groups->run ? groups->run : most / groups->run * groups->run;
    group->from = group->to;
    if (group->from == groups->n_bits) {
        return false;
    }
    if (group->from == groups->first[group->string + 1]) {
        group->string++;
    }
    size_t end = groups->first[group->string + 1];
    group->to = end - group->from > most ? group->from + most : end;
    return true;
}
