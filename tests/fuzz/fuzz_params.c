/* fuzz_params.c - libFuzzer target: any query string given to params_parse().
 *
 *     clang -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_params.c handlers/text/params.c
 * \ handlers/text/utf8.c
 *     ./a.out tests/fuzz/corpus/params
 *
 * What is accepted is written out again, every byte escaped, and must come back the same.
 */
#include "handlers/text/params.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct param_spec specs[] = {{"site", false}, {"page", true}, {"from", false}};
#define N_SPECS (sizeof specs / sizeof specs[0])

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_error(const struct params *params)
{
    const struct params_error *error = &params->error;

    require(params->n == 0 && !params->pairs && !params->bytes);
    require(error->detail && memchr(error->parameter, '\0', sizeof error->parameter));
    for (const char *p = error->parameter; *p; p++) {
        require(*p >= ' ' && *p <= '~');
    }
}

static void check_pairs(const struct params *params, size_t query_n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < params->n; i++) {
        const struct param *pair = &params->pairs[i];

        require(pair->value.n > 0 && utf8_valid(pair->value));
        require(!memchr(pair->value.p, '\0', pair->value.n));
        require(pair->spec->repeatable || params_count(params, pair->spec->name) == 1);
        bytes += pair->value.n;
    }
    require(bytes <= query_n && params->n <= PARAMS_MAX);
}

/* "&name=%41%42" a pair. */
static struct slice escape_pairs(const struct params *params)
{
    size_t room = 1, n = 0;
    char *text;

    for (size_t i = 0; i < params->n; i++) {
        room += params->pairs[i].value.n * 3 + strlen(params->pairs[i].spec->name) + 2;
    }
    text = malloc(room);
    require(text != NULL);
    for (size_t i = 0; i < params->n; i++) {
        struct slice value = params->pairs[i].value;

        n += (size_t)sprintf(text + n, "&%s=", params->pairs[i].spec->name);
        for (size_t k = 0; k < value.n; k++) {
            n += (size_t)sprintf(text + n, "%%%02X", (unsigned)(unsigned char)value.p[k]);
        }
    }
    return (struct slice){text, n};
}

static void check_again(const struct params *params)
{
    struct slice text = escape_pairs(params);
    struct params again;

    require(params_parse(text, specs, N_SPECS, &again) == PARAMS_OK);
    require(again.n == params->n);
    for (size_t i = 0; i < again.n; i++) {
        require(again.pairs[i].spec == params->pairs[i].spec);
        require(slice_equal(again.pairs[i].value, params->pairs[i].value));
    }
    params_release(&again);
    free((void *)(uintptr_t)text.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct params params;
    enum params_result result =
        params_parse((struct slice){(const char *)data, size}, specs, N_SPECS, &params);

    require(result == PARAMS_OK || result == PARAMS_REFUSED);
    if (result == PARAMS_REFUSED) {
        check_error(&params);
    } else {
        check_pairs(&params, size);
        check_again(&params);
    }
    params_release(&params);
    return 0;
}
