#include "handlers/text/params.h"

#include <stdlib.h>

#include "handlers/text/plain.h"
#include "handlers/text/utf8.h"

static const char bad_escape[] = "a '%' must be followed by two hexadecimal digits";
static const char has_nul[] = "must not contain a NUL byte (%00)";
static const char unknown[] = "unknown parameter";
static const char bad_utf8[] = "is not valid UTF-8";

/* Decode @raw to *@to, which has room for as many bytes, and move *@to behind the result.  Returns
 * NULL, or what is wrong. */
static const char *decode(struct slice raw, bool plus_is_blank, char **to, struct slice *ret)
{
    char *start = *to;
    char *end = start;
    for (size_t i = 0; i < raw.n; i++) {
        char c = plus_is_blank && raw.p[i] == '+' ? ' ' : raw.p[i];
        if (c == '%') {
            int high = raw.n - i > 2 ? hex_digit(raw.p[i + 1]) : -1;
            int low = raw.n - i > 2 ? hex_digit(raw.p[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return bad_escape;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0') {
            return has_nul;
        }
        *end++ = c;
    }
    *to = end;
    *ret = (struct slice){start, (size_t)(end - start)};
    return utf8_valid(*ret) ? NULL : bad_utf8;
}

const char *params_decode_segment(struct slice raw, char *to, struct slice *ret)
{
    return decode(raw, false, &to, ret);
}

static const struct param_spec *find_spec(
    struct slice name, const struct param_spec *specs, size_t n_specs)
{
    for (size_t i = 0; i < n_specs; i++) {
        if (slice_equal(name, slice_of(specs[i].name))) {
            return &specs[i];
        }
    }
    return NULL;
}

/* Note which parameter is at fault, and why.  The client has chosen the name, and it may be shown
 * anywhere, so only printable ASCII of it is kept. */
static enum params_result refuse(struct params *params, struct slice name, const char *detail)
{
    struct params_error *error = &params->error;
    size_t n = name.n < PARAMS_NAME_MAX ? name.n : PARAMS_NAME_MAX;
    for (size_t i = 0; i < n; i++) {
        error->parameter[i] = name.p[i] >= ' ' && name.p[i] <= '~' ? name.p[i] : '?';
    }
    error->parameter[n] = '\0';
    error->detail = detail;
    error->malformed = detail == bad_escape;
    error->unknown = detail == unknown;
    return PARAMS_REFUSED;
}

/* Append one pair, which is not empty; its decoded bytes go to *@to. */
static enum params_result add_pair(struct params *params, struct slice pair,
    const struct param_spec *specs, size_t n_specs, bool strict, char **to)
{
    struct slice raw_name = slice_until(&pair, '=');
    struct slice name, value;
    const char *fault = decode(raw_name, true, to, &name);
    if (fault != NULL) {
        return strict ? refuse(params, raw_name, fault) : PARAMS_OK;
    }
    if (name.n == 0) {
        return strict ? refuse(params, name, "a parameter without a name") : PARAMS_OK;
    }
    const struct param_spec *spec = find_spec(name, specs, n_specs);
    if (spec == NULL) {
        return strict ? refuse(params, name, unknown) : PARAMS_OK;
    }
    if (!spec->repeatable && params_has(params, spec->name)) {
        return refuse(params, name, "given more than once");
    }
    fault = decode(pair, true, to, &value);
    if (fault != NULL) {
        return refuse(params, name, fault);
    }
    if (value.n == 0 && strict) {
        return refuse(params, name, "must not be empty");
    }
    if (params->n == PARAMS_MAX) {
        return refuse(params, name, "too many parameters");
    }
    params->pairs[params->n++] = (struct param){spec, value};
    return PARAMS_OK;
}

/* How many pairs @query has, at most PARAMS_MAX; empty pairs are counted, too. */
static size_t count_pairs(struct slice query)
{
    size_t n = 1;
    for (size_t i = 0; i < query.n && n < PARAMS_MAX; i++) {
        n += query.p[i] == '&';
    }
    return n;
}

static void drop_pairs(struct params *params)
{
    free(params->pairs);
    free(params->bytes);
    params->pairs = NULL;
    params->bytes = NULL;
    params->n = 0;
}

static enum params_result parse(struct slice query, const struct param_spec *specs, size_t n_specs,
    bool strict, struct params *ret)
{
    *ret = (struct params){0};
    if (query.n == 0) {
        return PARAMS_OK;
    }
    ret->pairs = calloc(count_pairs(query), sizeof(*ret->pairs));
    ret->bytes = malloc(query.n); /* decoding never lengthens */
    char *to = ret->bytes;
    enum params_result result = ret->pairs == NULL || ret->bytes == NULL ? PARAMS_NOMEM : PARAMS_OK;
    while (result == PARAMS_OK && query.n > 0) {
        struct slice pair = slice_until(&query, '&');
        if (pair.n > 0) {
            result = add_pair(ret, pair, specs, n_specs, strict, &to);
        }
    }
    if (result != PARAMS_OK) {
        drop_pairs(ret);
    }
    return result;
}

enum params_result params_parse(
    struct slice query, const struct param_spec *specs, size_t n_specs, struct params *ret)
{
    return parse(query, specs, n_specs, true, ret);
}

enum params_result params_parse_known(
    struct slice query, const struct param_spec *specs, size_t n_specs, struct params *ret)
{
    return parse(query, specs, n_specs, false, ret);
}

void params_release(struct params *params)
{
    drop_pairs(params);
    params->error = (struct params_error){0};
}

bool params_get(const struct params *params, const char *name, struct slice *ret)
{
    const struct param *param = params_next(params, name, NULL);
    if (param != NULL) {
        *ret = param->value;
    }
    return param != NULL;
}

const struct param *params_next(
    const struct params *params, const char *name, const struct param *previous)
{
    size_t i = previous != NULL ? (size_t)(previous - params->pairs) + 1 : 0;
    for (; i < params->n; i++) {
        if (strcmp(params->pairs[i].spec->name, name) == 0) {
            return &params->pairs[i];
        }
    }
    return NULL;
}

bool params_has(const struct params *params, const char *name)
{
    return params_next(params, name, NULL) != NULL;
}

size_t params_count(const struct params *params, const char *name)
{
    size_t n = 0;
    for (const struct param *p = NULL; (p = params_next(params, name, p)) != NULL;) {
        n++;
    }
    return n;
}

bool params_flag(const struct params *params, const char *name, bool *ret)
{
    struct slice value = SLICE("0");
    (void)params_get(params, name, &value);
    *ret = slice_equal(value, SLICE("1")) || slice_equal(value, SLICE("true"));
    return *ret || slice_equal(value, SLICE("0")) || slice_equal(value, SLICE("false"));
}

bool params_number(const struct params *params, const char *name, size_t max, size_t *ret)
{
    struct slice text;
    uint64_t value = 0;
    if (!params_get(params, name, &text)) {
        return true;
    }
    if (!text_number(text, max, &value) || text.p[0] == '0') {
        return false;
    }
    *ret = value;
    return true;
}
