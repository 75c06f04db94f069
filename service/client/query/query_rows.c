#include "service/client/query/query_rows.h"

#include <stdbool.h>
#include <string.h>

/* The lists of objects that answers have.  The most telling one stands first. */
static const char *const lists[] = {"series", "pages", "sites", "list", "steps", "days", "rows"};

static json_t *list_of(const json_t *answer)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        json_t *list = json_object_get(answer, lists[i]);
        bool names = strcmp(lists[i], "pages") == 0 && json_is_string(json_array_get(list, 0));
        if (json_is_array(list) && !names) { /* names of pages repeat the question */
            return list;
        }
    }
    return NULL;
}

/* Make a row of each figure of /overlap. */
static json_t *rows_of_overlap(const json_t *answer)
{
    static const char *const names[] = {"a", "b", "union", "intersection", "new", "jaccard"};
    json_t *rows = json_array();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const json_t *figure = json_object_get(answer, names[i]);
        if (figure == NULL) { /* "new" is there for two windows only */
            continue;
        }
        json_t *page = json_object_get(figure, "page");
        json_t *set = json_object_get(figure, "pageset");
        json_t *event = json_object_get(figure, "event");
        json_t *uv = json_object_get(figure, "uv");
        json_t *row = json_object();
        page = page != NULL ? page : set != NULL ? set : event;
        json_object_set_new(
            row, "of", json_is_string(page) ? json_incref(page) : json_string(names[i]));
        json_object_set(row, "uv", uv != NULL ? uv : json_object_get(figure, "value"));
        json_object_set(row, "error", json_object_get(figure, "error"));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* Make a row of each offset of a cohort.  Size and first day stand in all of them, and in a row of
 * a cohort that has no offset yet. */
static void add_cohort(json_t *rows, const json_t *cohort)
{
    static const char *const names[] = {"offset", "users", "rate"};
    const json_t *returned = json_object_get(cohort, "returned");
    size_t i = 0;
    do {
        json_t *row = json_object();
        json_object_set(row, "cohort", json_object_get(cohort, "cohort"));
        json_object_set(row, "size", json_object_get(cohort, "size"));
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            json_object_set(row, names[k], json_object_get(json_array_get(returned, i), names[k]));
        }
        json_array_append_new(rows, row);
    } while (++i < json_array_size(returned));
}

/* Make the rows of /retention, for one cohort or for several. */
static json_t *rows_of_retention(const json_t *answer)
{
    const json_t *cohorts = json_object_get(answer, "cohorts");
    const json_t *cohort;
    size_t i;
    json_t *rows = json_array();
    if (cohorts == NULL) {
        add_cohort(rows, answer);
    }
    json_array_foreach(cohorts, i, cohort)
    {
        add_cohort(rows, cohort);
    }
    return rows;
}

/* Make a row of each point of the series of /breakdown's rows. */
static json_t *rows_of_breakdown(const json_t *answer)
{
    const json_t *of_answer = json_object_get(answer, "rows");
    const json_t *row;
    size_t i;
    json_t *rows = json_array();
    json_array_foreach(of_answer, i, row)
    {
        json_t *point;
        size_t k;
        json_array_foreach(json_object_get(row, "series"), k, point)
        {
            json_t *one = json_object();
            json_object_set(one, "value", json_object_get(row, "value"));
            json_object_update(one, point);
            json_array_append_new(rows, one);
        }
    }
    return rows;
}

json_t *query_rows(const json_t *answer)
{
    json_t *made = NULL;
    if (json_object_get(answer, "intersection") != NULL) {
        made = rows_of_overlap(answer);
    } else if (json_object_get(answer, "returned") != NULL ||
               json_object_get(answer, "cohorts") != NULL) {
        made = rows_of_retention(answer);
    } else if (json_object_get(answer, "rows") != NULL && json_object_get(answer, "step") != NULL) {
        made = rows_of_breakdown(answer);
    }
    return made != NULL ? made : json_incref(list_of(answer));
}
