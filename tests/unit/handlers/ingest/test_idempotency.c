#include "handlers/ingest/idempotency.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(idempotency, .timeout = 60);

static enum idempotency_key read_field(
    struct slice value, unsigned repeated, char key[IDEMPOTENCY_KEY_MAX], size_t *ret_n)
{
    struct slice fields[HTTP_KNOWN_N] = {[FIELD_IDEMPOTENCY_KEY] = value};
    struct http_request request = {.fields = fields, .repeated = repeated};
    return idempotency_key_read(&request, key, ret_n);
}

static void check(const char *value, const char *expected)
{
    char key[IDEMPOTENCY_KEY_MAX];
    size_t n = 0;
    enum idempotency_key got = read_field(slice_of(value), 0, key, &n);
    if (expected == NULL) {
        cr_expect_eq(got, IDEMPOTENCY_MALFORMED, "%s", value);
        return;
    }
    cr_expect_eq(got, IDEMPOTENCY_KEY, "%s", value);
    cr_expect(slice_equal((struct slice){key, n}, slice_of(expected)), "%s", value);
}

Test(idempotency, bare_and_quoted)
{
    check("k", "k");
    check("\"k\"", "k");
    check(" \tk\t ", "k");
    check(" \"k\" ", "k");
    check("a b", "a b");
    check("\"a b\"", "a b");
    check("\" k \"", " k ");
    check("a\"b", "a\"b");
    check("\"a\\\"b\"", "a\"b");
    check("a\\b", "a\\b");
    check("\"a\\\\b\"", "a\\b");
    check("!~", "!~");
}

Test(idempotency, malformed)
{
    static const char *const values[] = {"", " ", "\"", "\"\"", "\"a", "\"a\"b", "\"a\" b",
        "\"a\\\"", "\"a\\b\"", "\"a\\", "a\x7f", "a\xc3\xa4", "\"\xc3\xa4\"", "a\tb", "\"a\tb\"",
        "\"a\";q=1"};
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        check(values[i], NULL);
    }
}

Test(idempotency, length_counts_without_quotes)
{
    char value[300];
    char key[IDEMPOTENCY_KEY_MAX];
    size_t n = 0;
    memset(value, 'a', sizeof(value));
    cr_expect_eq(read_field((struct slice){value, 128}, 0, key, &n), IDEMPOTENCY_KEY);
    cr_expect_eq(n, 128);
    cr_expect_eq(read_field((struct slice){value, 129}, 0, key, &n), IDEMPOTENCY_MALFORMED);
    value[0] = value[129] = '"';
    cr_expect_eq(read_field((struct slice){value, 130}, 0, key, &n), IDEMPOTENCY_KEY);
    value[129] = 'a';
    value[130] = '"';
    cr_expect_eq(read_field((struct slice){value, 131}, 0, key, &n), IDEMPOTENCY_MALFORMED);
    for (size_t i = 1; i < 257; i += 2) { /* 128 quotes, each escaped */
        value[i] = '\\';
        value[i + 1] = '"';
    }
    value[257] = '"';
    cr_expect_eq(read_field((struct slice){value, 258}, 0, key, &n), IDEMPOTENCY_KEY);
    cr_expect_eq(n, 128);
}

Test(idempotency, none_and_two)
{
    char key[IDEMPOTENCY_KEY_MAX];
    size_t n = 0;
    cr_expect_eq(read_field((struct slice){NULL, 0}, 0, key, &n), IDEMPOTENCY_NONE);
    cr_expect_eq(
        read_field(SLICE("k"), 1u << FIELD_IDEMPOTENCY_KEY, key, &n), IDEMPOTENCY_MALFORMED);
    cr_expect_eq(read_field(SLICE("k"), 1u << FIELD_ACCEPT, key, &n), IDEMPOTENCY_KEY);
}
