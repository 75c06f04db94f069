#include "storage/filter/groups.h"

void filter_groups_begin(struct filter_groups *groups)
{
    groups->n_items = 0;
    groups->n_strings = 0;
}

bool filter_groups_add(struct filter_groups *groups, uint64_t segment)
{
    size_t string = 0;
    while (string < groups->n_strings && groups->segments[string] != segment) {
        string++;
    }
    if (groups->n_items == FILTER_ITEMS_MAX || string == GROUPS_STRINGS_MAX) {
        return false;
    }
    if (string == groups->n_strings) {
        groups->segments[groups->n_strings++] = segment;
    }
    groups->string[groups->n_items++] = (uint16_t)string;
    return true;
}

void filter_groups_end(struct filter_groups *groups)
{
    size_t next[GROUPS_STRINGS_MAX + 1] = {0};
    for (size_t i = 0; i < groups->n_items; i++) {
        next[groups->string[i] + 1]++;
    }
    groups->first[0] = 0;
    for (size_t s = 0; s < groups->n_strings; s++) {
        next[s + 1] += next[s];
        groups->first[s + 1] = next[s + 1];
    }
    for (size_t i = 0; i < groups->n_items; i++) {
        groups->ordered[next[groups->string[i]]++] = (uint16_t)i;
    }
}

bool filter_groups_next(const struct filter_groups *groups, size_t most, struct group *group)
{
    group->from = group->to;
    if (group->from == groups->n_items) {
        return false;
    }
    if (group->from == groups->first[group->string + 1]) {
        group->string++;
    }
    size_t end = groups->first[group->string + 1];
    group->to = end - group->from > most ? group->from + most : end;
    return true;
}
