#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "handlers/routes.h"
#include "service/tokens/token_file.h"

/* SHA-256 of "abc" and of "" (FIPS 180-2). */
#define ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define EMPTY "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"

static struct token_set *parse(const char *text, char *error)
{
    return token_file_parse("file", text, strlen(text), error);
}

Test(token_file, a_line_is_a_token)
{
    char error[TOKEN_FILE_ERROR] = "";
    struct token_set *set =
        parse("# who\n\n" ABC " ingest,admin site=a,b-2 back.end\n" EMPTY "\tread  \t x", error);
    cr_assert(set != NULL, "%s", error);
    cr_expect_eq(set->n, 2);
    const struct access *token = token_set_find(set, SLICE("abc"));
    cr_assert(token != NULL);
    cr_expect_str_eq(token->name, "back.end");
    cr_expect_eq(token->scopes, ACCESS_INGEST | ACCESS_ADMIN);
    cr_assert_eq(token->n_sites, 2);
    cr_expect(
        slice_equal(token->sites[0], SLICE("a")) && slice_equal(token->sites[1], SLICE("b-2")));
    token = token_set_find(set, (struct slice){"", 0});
    cr_assert(token != NULL);
    cr_expect(strcmp(token->name, "x") == 0 && token->n_sites == 0 && token->scopes == ACCESS_READ);
    cr_expect(
        token_set_find(set, SLICE("abcd")) == NULL && token_set_find(set, SLICE("ABC")) == NULL);
    token_set_free(set);
}

/* Editors of Windows put a byte order mark there. */
Test(token_file, a_byte_order_mark_begins_the_file)
{
    char error[TOKEN_FILE_ERROR] = "";
    struct token_set *set = parse("\xef\xbb\xbf" ABC " read x\n", error);
    cr_assert(set != NULL, "%s", error);
    cr_expect(token_set_find(set, SLICE("abc")) != NULL);
    token_set_free(set);
}

/* They end lines with CR LF, too. */
Test(token_file, a_carriage_return_is_no_part_of_a_name)
{
    char error[TOKEN_FILE_ERROR] = "";
    struct token_set *set = parse("\r\n# who\r\n" ABC " read x\r\n" EMPTY " read y\r\n", error);
    cr_assert(set != NULL, "%s", error);
    const struct access *token = token_set_find(set, SLICE("abc"));
    cr_assert(token != NULL);
    cr_expect_str_eq(token->name, "x");
    token_set_free(set);
}

Test(token_file, each_of_many_is_found)
{
    static char text[1 << 16];
    char error[TOKEN_FILE_ERROR] = "", name[8];
    size_t n = 0;
    for (int i = 0; i < 500; i++) {
        uint8_t hash[ACCESS_HASH_SIZE];
        int length = snprintf(name, sizeof(name), "%d", i);
        token_hash((struct slice){name, (size_t)length}, hash);
        for (size_t k = 0; k < sizeof(hash); k++) {
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", hash[k]);
        }
        n += (size_t)snprintf(text + n, sizeof(text) - n, " read site=s%d n%d\n", i, i);
    }
    struct token_set *set = token_file_parse("file", text, n, error);
    cr_assert(set != NULL, "%s", error);
    for (int i = 0; i < 500; i++) {
        char expected[16];
        int length = snprintf(name, sizeof(name), "%d", i);
        const struct access *token = token_set_find(set, (struct slice){name, (size_t)length});
        (void)snprintf(expected, sizeof(expected), "n%d", i);
        cr_assert(token != NULL && strcmp(token->name, expected) == 0);
        expected[0] = 's';
        cr_expect(slice_equal(token->sites[0], slice_of(expected)));
    }
    token_set_free(set);
}

Test(token_file, what_is_wrong_is_told_with_its_line)
{
    static const struct {
        const char *text, *error;
    } rows[] = {
        {"", "file: there is no token in it"},
        {"\n \t\n#x\n", "file: there is no token in it"},
        {"\n" ABC " read\n", "file:2: not of the form"},
        {ABC " read x y", "file:1: not of the form"},
        {ABC " read site=a", "file:1: not of the form"},
        {ABC " read site=a x y", "file:1: not of the form"},
        {"ab read x", "file:1: the first word"},
        {"z" ABC " read x", "file:1: the first word"},
        {ABC " reed x", "file:1: scopes are"},
        {ABC " read,,admin x", "file:1: scopes are"},
        {ABC " read, x", "file:1: scopes are"},
        {ABC " read site=A x", "file:1: site="},
        {ABC " read site= x", "file:1: site="},
        {ABC " read site=a, x", "file:1: site="},
        {ABC " read site=a,,b x", "file:1: site="},
        {ABC " read \xc3\xa4", "file:1: the name"},
        {ABC " read x\n" ABC " read y", "file: a token stands there twice"},
        {ABC " read x\n" EMPTY " read x", "file: two tokens have the name \"x\""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char error[TOKEN_FILE_ERROR] = "";
        struct token_set *set = parse(rows[i].text, error);
        cr_expect(set == NULL, "%s", rows[i].text);
        cr_expect_eq(
            strncmp(error, rows[i].error, strlen(rows[i].error)), 0, "%s: %s", rows[i].text, error);
        token_set_free(set);
    }
    char error[TOKEN_FILE_ERROR] = "";
    static const char nul[] = ABC " read x\0y";
    cr_expect(token_file_parse("file", nul, sizeof(nul) - 1, error) == NULL);
    cr_expect(strstr(error, "NUL") != NULL);
    cr_expect(token_file_parse("file",
                  "\xff\xfe"
                  "a\0",
                  4, error) == NULL);
    cr_expect_str_eq(error, "file: UTF-16: save it as UTF-8");
}

Test(access, scopes_of_routes)
{
    static const struct {
        struct route route;
        unsigned needed, with_open;
    } rows[] = {
        {{.method = HTTP_GET}, ACCESS_READ, ACCESS_READ},
        {{.method = HTTP_PUT}, ACCESS_ADMIN, ACCESS_ADMIN},
        {{.method = HTTP_DELETE}, ACCESS_ADMIN, ACCESS_ADMIN},
        {{.method = HTTP_POST}, ACCESS_ADMIN, ACCESS_ADMIN},
        {{.method = HTTP_POST, .flags = ROUTE_BODY | ROUTE_INGEST}, ACCESS_INGEST, ACCESS_INGEST},
        {{.method = HTTP_POST, .flags = ROUTE_READ}, ACCESS_READ, ACCESS_READ},
        {{.method = HTTP_GET, .flags = ROUTE_ADMIN}, ACCESS_ADMIN, ACCESS_ADMIN},
        {{.method = HTTP_GET, .flags = ROUTE_INGEST}, ACCESS_INGEST, ACCESS_INGEST},
        {{.method = HTTP_GET, .flags = ROUTE_OPEN}, 0, ACCESS_READ},
        {{.method = HTTP_GET, .flags = ROUTE_PUBLIC}, 0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_eq(access_needed(&rows[i].route, false), rows[i].needed, "row %zu", i);
        cr_expect_eq(access_needed(&rows[i].route, true), rows[i].with_open, "row %zu", i);
    }
}

Test(access, every_post_names_its_scope)
{
    for (size_t i = 0; i < n_api_routes; i++) {
        cr_expect(api_routes[i].method != HTTP_POST ||
                      (api_routes[i].flags &
                          (ROUTE_INGEST | ROUTE_READ | ROUTE_ADMIN | ROUTE_PUBLIC)) != 0,
            "%s", api_routes[i].path);
    }
}
