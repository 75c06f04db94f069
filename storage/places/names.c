#include "storage/places/names.h"

#include <stdlib.h>
#include <xxhash.h>

#include "storage/base/index.h"
#include "storage/job/counted_name.h"

/* What is known of a value in one hour of one site. */
struct value_place {
    const struct row_site *site;
    int64_t start_s, end_s; /* of the hour; start_s == end_s: nothing is known */
    bool asked, has;
};

bool place_names_init(struct place_names *names, const struct core *core)
{
    *names = (struct place_names){.places = places_new(core)};
    return names->places != NULL;
}

void place_names_release(struct place_names *names)
{
    places_free(names->places);
    free(names->found);
    free(names->others);
    arena_release(&names->arena);
}

static void forget_values(struct place_names *names)
{
    if (names->n_values > 0) {
        memset(names->found, 0, names->n_values * sizeof(*names->found));
    }
}

bool place_names_begin(struct place_names *names, const struct counted_value *values,
    size_t n_values, unsigned partition, const struct known_hashes *known,
    const struct places_view *view)
{
    names->values = values;
    names->n_values = n_values;
    names->n_others = 0;
    arena_clear(&names->arena);
    places_begin(names->places, partition, known, view);
    if (!array_reserve(&names->found, &names->found_capacity, n_values, sizeof(*names->found))) {
        return false;
    }
    forget_values(names);
    return true;
}

static struct place_wanted page_wanted(const struct row *row, enum places_table table)
{
    return (struct place_wanted){row, row->page, row->page_hash, table};
}

/* What is remembered of value @number for the row's hour and site.  What was remembered for another
 * hour or site is forgotten. */
static struct value_place *remembered(
    struct place_names *names, const struct row *row, uint32_t number)
{
    struct value_place *place = &names->found[number];
    if (place->site != row->site || row->at_s < place->start_s || row->at_s >= place->end_s) {
        struct bucket hour = bucket_at(row->site->zone, LEVEL_HOUR, row->at_s);
        *place = (struct value_place){row->site, hour.start_s, hour.end_s, false, false};
    }
    return place;
}

bool place_names_ask_page(struct place_names *names, const struct row *row)
{
    struct place_wanted wanted = page_wanted(row, PLACES_COUNTS);
    return places_ask(names->places, &wanted);
}

bool place_names_ask_visit(struct place_names *names, const struct row *row)
{
    struct place_wanted wanted = page_wanted(row, PLACES_STARTS);
    return !row->is_view || places_ask(names->places, &wanted);
}

bool place_names_ask_site(struct place_names *names, const struct row *row)
{
    for (unsigned i = 0; i < row->n_values; i++) {
        const struct counted_value *value = &names->values[row->values[i]];
        struct value_place *place = remembered(names, row, row->values[i]);
        if (place->asked) {
            continue;
        }
        struct place_wanted wanted = {row, value->name, value->hash, PLACES_COUNTS};
        if (!places_ask(names->places, &wanted)) {
            return false;
        }
        place->asked = true;
    }
    return true;
}

void place_names_decide(struct place_names *names)
{
    places_decide(names->places);
    names->n_capped = 0;
    forget_values(names);
}

/* The name that stands for all names of @name's class without a place.  NULL: out of memory. */
static const struct other_name *find_other(struct place_names *names, struct slice name)
{
    struct slice class = counted_name_class(name);
    for (size_t i = 0; i < names->n_others; i++) {
        if (slice_equal(names->others[i].class, class)) {
            return &names->others[i];
        }
    }
    char *text = arena_alloc(&names->arena, class.n + 1);
    if (text == NULL || !ARRAY_RESERVE(names, others)) {
        return NULL;
    }
    struct slice name_of_others = counted_name_of_others(class, text);
    struct other_name *other = &names->others[names->n_others++];
    *other =
        (struct other_name){{text + 1, class.n}, name_of_others, XXH3_64bits(text, class.n + 1)};
    return other;
}

/* Count @name, which has no place, under the name of the others.  The visitors and addresses of
 * pages and named events are counted there, too: they bound those of each page
 * (job/count_job.h). */
static void put_together(struct place_names *names, struct counted_for *name)
{
    const struct other_name *other = find_other(names, name->name);
    if (other != NULL) { /* else a name too many is counted: less harm than to count nothing */
        name->name = other->name;
        name->hash = other->hash;
        names->n_capped++;
    }
}

static struct counted_for page_name(
    struct place_names *names, const struct row *row, enum places_table table)
{
    struct place_wanted wanted = page_wanted(row, table);
    struct counted_for name = counted_for_page(row);
    if (!places_has(names->places, &wanted)) {
        put_together(names, &name);
    }
    return name;
}

static struct counted_for value_name_of(
    struct place_names *names, const struct row *row, uint32_t number)
{
    const struct counted_value *value = &names->values[number];
    struct value_place *place = remembered(names, row, number);
    bool is_section = counted_name_mark(value->name) == NAME_MARK_SECTION;
    struct counted_for name = {
        value->name, value->hash, value->with_visitors || is_section, is_section};
    if (!place->asked) {
        struct place_wanted wanted = {row, value->name, value->hash, PLACES_COUNTS};
        place->asked = true;
        place->has = places_has(names->places, &wanted);
    }
    if (!place->has) {
        name.visitors = false; /* no question asks for the visitors of other values */
        put_together(names, &name);
    }
    return name;
}

/* Append the names of the row's values, or with @sections_only of its sections alone, behind the @n
 * names in @ret.  Returns the new number. */
static size_t add_values(struct place_names *names, const struct row *row, bool sections_only,
    struct counted_for *ret, size_t n)
{
    for (unsigned i = 0; i < row->n_values; i++) {
        struct slice name = names->values[row->values[i]].name;
        if (!sections_only || counted_name_mark(name) == NAME_MARK_SECTION) {
            ret[n++] = value_name_of(names, row, row->values[i]);
        }
    }
    return n;
}

size_t place_names_of_page(
    struct place_names *names, const struct row *row, struct counted_for ret[PLACE_NAMES_MAX])
{
    ret[0] = page_name(names, row, PLACES_COUNTS);
    return 1;
}

size_t place_names_of_site(
    struct place_names *names, const struct row *row, struct counted_for ret[PLACE_NAMES_MAX])
{
    ret[0] = counted_for_site(row);
    return add_values(names, row, false, ret, 1);
}

size_t place_names_of_visit(struct place_names *names, const struct row *row, bool with_page,
    struct counted_for ret[PLACE_NAMES_MAX])
{
    size_t n = 0;
    ret[n++] = counted_for_site(row);
    if (with_page) {
        ret[n++] = page_name(names, row, PLACES_STARTS);
    }
    return add_values(names, row, true, ret, n);
}
