#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "service/http/body.h"
#include "tests/lib/gzip.h"

#define SMALL 16

/* A body with a small first buffer, as the server has it. */
struct fixture {
    struct body_budget budget;
    struct body body;
    char first[SMALL];
};

static struct fixture *fixture_new(size_t limit, size_t budget)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->budget.max = budget;
    body_init(&f->body, &f->budget, limit, f->first, sizeof(f->first));
    return f;
}

/* Every test ends here: nothing may stay reserved. */
static void fixture_free(struct fixture *f)
{
    body_release(&f->body);
    cr_expect_eq(f->budget.used, 0, "%zu bytes are still reserved", (size_t)f->budget.used);
    body_release(&f->body);
    cr_expect_eq(f->budget.used, 0, "released twice");
    free(f);
}

static char *pattern(size_t n)
{
    char *bytes = malloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)('a' + i * 7 % 26 + (i >> 9) % 3);
    }
    return bytes;
}

static void append_in_pieces(struct body *body, const char *p, size_t n, size_t piece)
{
    for (size_t at = 0; at < n; at += piece) {
        (void)body_append(body, p + at, n - at < piece ? n - at : piece);
    }
}

static void expect_body(const struct body *body, const char *p, size_t n)
{
    cr_assert_eq(body->n, n, "%zu bytes, not %zu", body->n, n);
    cr_expect_eq(memcmp(body->bytes, p, n), 0);
}

/* Success scenarios */

Test(body, stays_in_the_first_buffer)
{
    struct fixture *f = fixture_new(100, 0);
    cr_expect_eq(body_claim(&f->body, SMALL), BODY_OK);
    append_in_pieces(&f->body, "0123456789abcdef", SMALL, 5);
    cr_expect_eq(body_end(&f->body), BODY_OK);
    cr_expect_eq(f->body.bytes, f->first);
    expect_body(&f->body, "0123456789abcdef", SMALL);
    fixture_free(f);
}

Test(body, empty)
{
    struct fixture *f = fixture_new(0, 0);
    cr_expect_eq(body_append(&f->body, "", 0), BODY_OK);
    cr_expect_eq(body_end(&f->body), BODY_OK);
    cr_expect_not_null(f->body.bytes);
    cr_expect_eq(f->body.n, 0);
    fixture_free(f);
}

Test(body, grows_to_the_limit_and_not_beyond)
{
    static const size_t pieces[] = {1, 3, 17, 4096, 100000};
    char *bytes = pattern(100001);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct fixture *f = fixture_new(100000, 100000);
        append_in_pieces(&f->body, bytes, 100000, pieces[i]);
        cr_expect_eq(body_end(&f->body), BODY_OK);
        expect_body(&f->body, bytes, 100000);
        cr_expect_eq(f->budget.used, 100000);
        cr_expect_eq(body_append(&f->body, bytes, 1), BODY_TOO_LARGE);
        cr_expect_eq(f->budget.used, 0, "a refused body holds memory");
        cr_expect_eq(body_append(&f->body, bytes, 1), BODY_TOO_LARGE);
        cr_expect_eq(body_end(&f->body), BODY_TOO_LARGE);
        fixture_free(f);
    }
    free(bytes);
}

Test(body, a_claim_reserves_little_until_the_bytes_come)
{
    size_t n = 8 * BODY_CLAIM_MAX;
    char *bytes = pattern(n);
    struct fixture *f = fixture_new(n, n);
    cr_expect_eq(body_claim(&f->body, n), BODY_OK);
    cr_expect_eq(f->budget.used, 0);
    cr_expect_eq(body_append(&f->body, bytes, SMALL + 1), BODY_OK);
    cr_expect_eq(f->budget.used, BODY_CLAIM_MAX);
    append_in_pieces(&f->body, bytes + SMALL + 1, n - SMALL - 1, 9000);
    cr_expect_eq(body_end(&f->body), BODY_OK);
    cr_expect_eq(f->budget.used, n, "more than was claimed");
    expect_body(&f->body, bytes, n);
    fixture_free(f);
    free(bytes);
}

Test(body, more_than_was_claimed)
{
    struct fixture *f = fixture_new(1000, 1000);
    char *bytes = pattern(1000);
    cr_expect_eq(body_claim(&f->body, 20), BODY_OK);
    append_in_pieces(&f->body, bytes, 1000, 7);
    cr_expect_eq(body_end(&f->body), BODY_OK);
    expect_body(&f->body, bytes, 1000);
    fixture_free(f);
    free(bytes);
}

Test(body, gzip_in_pieces)
{
    static const size_t sizes[] = {0, 1, SMALL, SMALL + 1, 100000};
    static const size_t pieces[] = {1, 2, 1000, 1000000};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        size_t n;
        char *bytes = pattern(sizes[s]);
        char *zipped = gzip_member(bytes, sizes[s], &n);
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
            struct fixture *f = fixture_new(sizes[s], 100000 + BODY_INFLATE_MEM);
            cr_expect_eq(body_coding(&f->body, SLICE("GZip")), BODY_OK);
            cr_expect_eq(body_claim(&f->body, n), BODY_OK);
            append_in_pieces(&f->body, zipped, n, pieces[i]);
            cr_expect_eq(body_end(&f->body), BODY_OK);
            expect_body(&f->body, bytes, sizes[s]);
            fixture_free(f);
        }
        free(bytes);
        free(zipped);
    }
}

Test(body, gzip_of_two_members)
{
    size_t n;
    char *zipped = gzip_member("hello", 5, &n);
    struct fixture *f = fixture_new(10, 1000000);
    cr_expect_eq(body_coding(&f->body, SLICE("x-gzip")), BODY_OK);
    append_in_pieces(&f->body, zipped, n, 3);
    append_in_pieces(&f->body, zipped, n, n);
    cr_expect_eq(body_end(&f->body), BODY_OK);
    expect_body(&f->body, "hellohello", 10);
    fixture_free(f);
    free(zipped);
}

Test(body, identity_codings)
{
    struct fixture *f = fixture_new(10, 0);
    cr_expect_eq(body_coding(&f->body, SLICE("")), BODY_OK);
    cr_expect_eq(body_coding(&f->body, SLICE("Identity ")), BODY_OK);
    cr_expect_eq(body_append(&f->body, "abc", 3), BODY_OK);
    cr_expect_eq(body_end(&f->body), BODY_OK);
    expect_body(&f->body, "abc", 3);
    fixture_free(f);
}

/* Failure scenarios */

Test(body, claims_are_refused_early)
{
    struct fixture *f = fixture_new(100, 1000);
    cr_expect_eq(body_claim(&f->body, 101), BODY_TOO_LARGE);
    cr_expect_eq(body_append(&f->body, "a", 1), BODY_TOO_LARGE);
    fixture_free(f);
    f = fixture_new(100, 50);
    cr_expect_eq(body_claim(&f->body, 51), BODY_NO_BUDGET);
    fixture_free(f);
    f = fixture_new(100, 50);
    cr_expect_eq(body_claim(&f->body, SMALL), BODY_OK, "the first buffer costs no budget");
    fixture_free(f);
}

Test(body, bodies_share_the_budget)
{
    struct fixture *f = fixture_new(1000, 300);
    struct body other;
    char first[SMALL];
    char *bytes = pattern(200);
    body_init(&other, &f->budget, 1000, first, sizeof(first));
    cr_expect_eq(body_append(&f->body, bytes, 200), BODY_OK);
    cr_expect_eq(body_append(&other, bytes, 101), BODY_NO_BUDGET);
    cr_expect_eq(body_end(&other), BODY_NO_BUDGET);
    cr_expect_eq(f->budget.used, 200);
    body_release(&other);
    body_init(&other, &f->budget, 1000, first, sizeof(first));
    cr_expect_eq(body_append(&other, bytes, 100), BODY_OK);
    body_release(&other);
    cr_expect_eq(body_coding(&f->body, SLICE("gzip")), BODY_NO_BUDGET);
    fixture_free(f);
    free(bytes);
}

Test(body, gzip_bomb)
{
    size_t n;
    char *zeros = calloc(1, 10000000);
    char *zipped = gzip_member(zeros, 10000000, &n);
    static const size_t limits[] = {0, 1, SMALL, 1000, 9999999};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct fixture *f = fixture_new(limits[i], limits[i] + BODY_INFLATE_MEM);
        cr_expect_eq(body_coding(&f->body, SLICE("gzip")), BODY_OK);
        append_in_pieces(&f->body, zipped, n, 500);
        cr_expect_eq(body_end(&f->body), BODY_TOO_LARGE);
        fixture_free(f);
    }
    free(zeros);
    free(zipped);
}

Test(body, gzip_cut_off_anywhere)
{
    size_t n;
    char *zipped = gzip_member("hello hello hello", 17, &n);
    for (size_t cut = 0; cut < n; cut++) {
        struct fixture *f = fixture_new(100, 1000000);
        cr_expect_eq(body_coding(&f->body, SLICE("gzip")), BODY_OK);
        cr_expect_eq(body_append(&f->body, zipped, cut), BODY_OK);
        cr_expect_eq(body_end(&f->body), BODY_TRUNCATED, "%zu bytes of %zu pass", cut, n);
        fixture_free(f);
    }
    free(zipped);
}

/* The first one is whole. */
Test(body, a_second_member_cut_off_anywhere)
{
    size_t n;
    char *zipped = gzip_member("hello", 5, &n);
    for (size_t cut = 1; cut < n; cut++) {
        struct fixture *f = fixture_new(100, 1000000);
        cr_expect_eq(body_coding(&f->body, SLICE("gzip")), BODY_OK);
        cr_expect_eq(body_append(&f->body, zipped, n), BODY_OK);
        cr_expect_eq(body_append(&f->body, zipped, cut), BODY_OK);
        cr_expect_eq(body_end(&f->body), BODY_TRUNCATED, "%zu bytes of %zu pass", cut, n);
        fixture_free(f);
    }
    free(zipped);
}

Test(body, gzip_followed_by_something_else)
{
    size_t n;
    char *zipped = gzip_member("hello", 5, &n);
    struct fixture *f = fixture_new(100, 1000000);
    cr_expect_eq(body_coding(&f->body, SLICE("gzip")), BODY_OK);
    cr_expect_eq(body_append(&f->body, zipped, n), BODY_OK);
    cr_expect_eq(body_append(&f->body, "x", 1), BODY_OK); /* may be a header's first byte ... */
    cr_expect_eq(body_append(&f->body, "yz", 2), BODY_BAD_GZIP); /* ... but is not */
    fixture_free(f);
    free(zipped);
}

Test(body, gzip_damaged)
{
    size_t n;
    char *zipped = gzip_member("hello hello hello", 17, &n);
    for (size_t at = 10; at < n; at++) { /* behind the header, where a flipped bit must show */
        struct fixture *f = fixture_new(1000, 1000000);
        zipped[at] = (char)(zipped[at] ^ 0x10);
        cr_expect_eq(body_coding(&f->body, SLICE("gzip")), BODY_OK);
        (void)body_append(&f->body, zipped, n);
        cr_expect_neq(body_end(&f->body), BODY_OK, "byte %zu may be anything", at);
        zipped[at] = (char)(zipped[at] ^ 0x10);
        fixture_free(f);
    }
    free(zipped);
}

Test(body, what_is_no_gzip)
{
    struct fixture *f = fixture_new(100, 1000000);
    cr_expect_eq(body_coding(&f->body, SLICE("gzip")), BODY_OK);
    cr_expect_eq(body_append(&f->body, "{\"page\":\"/\"}", 12), BODY_BAD_GZIP);
    fixture_free(f);
}

Test(body, codings_that_are_not_known)
{
    static const char *rows[] = {"br", "deflate", "gzip, gzip", "gzip;q=1", ",", "gzi", "gzipp"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fixture *f = fixture_new(100, 1000000);
        cr_expect_eq(body_coding(&f->body, slice_of(rows[i])), BODY_CODING, "%s", rows[i]);
        cr_expect_eq(body_append(&f->body, "a", 1), BODY_CODING);
        cr_expect_eq(body_end(&f->body), BODY_CODING);
        fixture_free(f);
    }
}
