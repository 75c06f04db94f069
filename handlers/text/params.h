/* params.h - the query string of a request, taken apart into the parameters that its route takes.
 *
 * Layer: handlers, pure.  A struct params belongs to one thread at a time.
 *
 * A query string is application/x-www-form-urlencoded: pairs are joined by '&', the first '=' of a
 * pair ends its name, '+' is a blank, and %XX is a byte.  The query is read strictly, because a
 * typo must not silently widen a question.
 */
#ifndef HANDLERS_TEXT_PARAMS_H
#define HANDLERS_TEXT_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define PARAMS_MAX      2048 /* pairs in one query string */
#define PARAMS_NAME_MAX 64   /* bytes of a name that an error shows */

/* What a route takes: one entry for each parameter.  Tables are static; a struct params points into
 * the one that it was read with. */
struct param_spec {
    const char *name;
    bool repeatable; /* may be given more than once */
};

/* A table of struct param_spec, and its length: two arguments of a call. */
#define PARAM_SPECS(specs) (specs), sizeof(specs) / sizeof((specs)[0])

struct param {
    const struct param_spec *spec;
    struct slice value; /* decoded: valid UTF-8 without NUL, never empty */
};

struct params_error {
    char parameter[PARAMS_NAME_MAX + 1]; /* its name as the client wrote it, cut off; '?' for what
                                            is no printable ASCII */
    const char *detail;                  /* static */
    bool malformed; /* a '%' lacks its two digits; false: the pair can be read, but is not taken */
    bool unknown;   /* the name is not in the route's table */
};

/* Zeroed it is empty.  Release with params_release. */
struct params {
    struct param *pairs; /* owned; in the order of the query string */
    size_t n;
    char *bytes; /* owned: what the values point into */
    struct params_error error;
};

enum params_result {
    PARAMS_OK,
    PARAMS_REFUSED, /* error says which parameter and why */
    PARAMS_NOMEM,
};

/* Parse @query into @ret, which is overwritten.  @query is raw, without the '?', and may be empty;
 * its bytes are copied.  On any other result than PARAMS_OK @ret is empty but for the error.  The
 * first fault from the left is told:
 *
 *     a bad escape, %00, invalid UTF-8
 *     a name that is not in @specs, or that was given before and may not be repeated
 *     a missing or an empty value
 *     more than PARAMS_MAX pairs; an empty pair ("&&") is none */
enum params_result params_parse(struct slice query, const struct param_spec *specs, size_t n_specs,
    struct params *ret) MUST_CHECK;

/* Parse @query as params_parse() does, but leniently, for queries that anybody's pages make.  A
 * parameter that is not in @specs is ignored, also if it cannot be decoded, and a value may be
 * empty. */
enum params_result params_parse_known(struct slice query, const struct param_spec *specs,
    size_t n_specs, struct params *ret) MUST_CHECK;

void params_release(struct params *params);

/* Decode one segment of a path: %XX is a byte, all other bytes stand for themselves.  The result
 * lies in @to, which has room for @raw.n bytes and may be @raw's own memory.  Returns NULL, or what
 * is wrong (static). */
const char *params_decode_segment(struct slice raw, char *to, struct slice *ret) MUST_CHECK;

/* Find the first value of @name.  False, with @ret untouched: the parameter was not given. */
bool params_get(const struct params *params, const char *name, struct slice *ret);

/* The value of @name that follows @previous; the first one if @previous is NULL.  NULL: there are
 * no more.
 *
 *     for (const struct param *p = NULL; (p = params_next(params, "page", p)) != NULL;)
 *             add_page(p->value);
 */
const struct param *params_next(
    const struct params *params, const char *name, const struct param *previous);

/* Was @name given? */
bool params_has(const struct params *params, const char *name) MUST_CHECK;

/* How many values @name has. */
size_t params_count(const struct params *params, const char *name);

/* Read a flag: 1 or true, 0 or false.  *ret is false where the flag was not given.  False, with
 * *ret false, for any other value. */
bool params_flag(const struct params *params, const char *name, bool *ret) MUST_CHECK;

/* Read a whole number from 1 to @max, in decimal digits without leading zeros.  *ret is untouched
 * where the number was not given.  False for any other value. */
bool params_number(
    const struct params *params, const char *name, size_t max, size_t *ret) MUST_CHECK;

#endif
