/* params.h - the query string of a request, checked against what its route takes.
 *
 * Layer: handlers, pure.  A struct params belongs to one thread at a time.
 * application/x-www-form-urlencoded: pairs joined by '&', the first '=' ends the name, '+' is a
 * blank, %XX a byte.  It is read strictly, because a typo must not silently widen a query.
 */
#ifndef HANDLERS_TEXT_PARAMS_H
#define HANDLERS_TEXT_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "storage/base/slice.h"

#define PARAMS_MAX      2048 /* pairs in one query string */
#define PARAMS_NAME_MAX 64   /* bytes of a name that an error shows */

/* What a route takes: one entry a parameter.  Static tables; a struct params points into its own.
 */
struct param_spec {
    const char *name;
    bool repeatable; /* may be given more than once */
};

struct param {
    const struct param_spec *spec;
    struct slice value; /* decoded: valid UTF-8 without NUL, never empty */
};

struct params_error {
    char parameter[PARAMS_NAME_MAX +
                   1];  /* as the client wrote it: printable ASCII, else '?'; cut off */
    const char *detail; /* static */
    bool malformed;     /* an escape that is none; false: it can be read, but is not taken */
};

/* Zeroed it is empty.  Release with params_release. */
struct params {
    struct param *pairs; /* owned; in the order of the query string */
    size_t n;
    char *bytes; /* owned; what the values point into */
    struct params_error error;
};

enum params_result {
    PARAMS_OK,
    PARAMS_REFUSED, /* error says which parameter and why */
    PARAMS_NOMEM,
};

/* Parse @query (raw, without the '?'; may be empty; not used any more afterwards) into @ret, which
 * is overwritten.  The first fault from the left counts: a bad escape, %00 or invalid UTF-8, a name
 * that is not in @specs or has been given before, a missing or empty value, more than PARAMS_MAX
 * pairs. Empty pairs ("&&") are none.  On any other result than PARAMS_OK @ret is empty but for the
 * error. */
enum params_result params_parse(
    struct slice query, const struct param_spec *specs, size_t n_specs, struct params *ret);

/* The same for what strangers' pages ask: a parameter that is not in @specs is passed by, also one
 * that cannot be decoded, and a value may be empty. */
enum params_result params_parse_known(
    struct slice query, const struct param_spec *specs, size_t n_specs, struct params *ret);

void params_release(struct params *params);

/* Decode one segment of a path: %XX is a byte, all else stands for itself.  @to has room for @raw.n
 * bytes and may be @raw's own; *@ret lies there.  Returns what is wrong with it (static), or NULL.
 */
const char *params_decode_segment(struct slice raw, char *to, struct slice *ret);

/* The first value of @name.  False, @ret untouched, if it was not given. */
bool params_get(const struct params *params, const char *name, struct slice *ret);

/* The values of a repeatable @name one after another: the one after @previous, the first if that is
 * NULL.  NULL: no more.
 *
 *     for (const struct param *p = NULL; (p = params_next(params, "page", p)) != NULL;)
 *             add_page(p->value);
 */
const struct param *params_next(
    const struct params *params, const char *name, const struct param *previous);

/* How many values @name has. */
size_t params_count(const struct params *params, const char *name);

/* A flag: 1 or true, 0 or false; false where it was not given.  False, and *ret false, for anything
 * else. */
bool params_flag(const struct params *params, const char *name, bool *ret);
#define PARAMS_FLAG_DETAIL "must be 1 or 0"

/* A whole number from 1 to @max, in decimal digits; *ret untouched where it was not given.  False
 * for anything else. */
bool params_number(const struct params *params, const char *name, size_t max, size_t *ret);

#endif
