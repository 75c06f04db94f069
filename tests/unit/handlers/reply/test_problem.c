#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/reply/problem.h"

static json_t *document(const struct http_response *response)
{
    json_t *root = json_loadb(response->body, response->body_n, 0, NULL);
    cr_assert_not_null(root, "no JSON: %.*s", (int)response->body_n, response->body);
    cr_expect_str_eq(response->content_type, "application/problem+json");
    return root;
}

static const char *text(json_t *root, const char *name)
{
    const char *value = json_string_value(json_object_get(root, name));
    cr_assert_not_null(value, "%s is missing", name);
    return value;
}

static const char *header(const struct http_response *response, const char *name)
{
    for (unsigned i = 0; i < response->n_headers; i++) {
        if (strcmp(response->headers[i].name, name) == 0) {
            return response->headers[i].value;
        }
    }
    return NULL;
}

/* Success scenarios */

Test(problem, has_the_members_of_rfc_9457)
{
    struct http_response response = {0};
    problem_reply(&response, PROBLEM_MALFORMED, "line %d of \"%s\"", 3, "a\nb");
    cr_expect_eq(response.status, 400);
    cr_expect_eq(response.n_headers, 0);
    json_t *root = document(&response);
    cr_expect_eq(json_object_size(root), 5);
    cr_expect_str_eq(text(root, "type"), "about:blank");
    cr_expect_str_eq(text(root, "title"), "Bad Request");
    cr_expect_eq(json_integer_value(json_object_get(root, "status")), 400);
    cr_expect_str_eq(text(root, "detail"), "line 3 of \"a\nb\"");
    cr_expect_str_eq(text(root, "message"), "line 3 of \"a\nb\"");
    json_decref(root);
    free(response.body);
}

Test(problem, every_row_of_the_table)
{
    static const struct {
        enum problem problem;
        unsigned status;
        const char *title;
        int retry_after_s;
    } rows[] = {
#define X(name, status, title, retry_after_s) {name, status, title, retry_after_s},
        PROBLEMS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_response response = {0};
        problem_reply(&response, rows[i].problem, "why");
        json_t *root = document(&response);
        cr_expect_eq(response.status, rows[i].status);
        cr_expect_eq(json_integer_value(json_object_get(root, "status")), rows[i].status);
        cr_expect_str_eq(text(root, "title"), rows[i].title);
        const char *retry = header(&response, "Retry-After");
        cr_expect_eq(retry != NULL, rows[i].retry_after_s >= 0);
        cr_expect(retry == NULL || atol(retry) == rows[i].retry_after_s);
        cr_expect(rows[i].status != 503 || retry != NULL, "503 without Retry-After");
        json_decref(root);
        free(response.body);
    }
}

Test(problem, says_the_parameter_unless_the_detail_begins_with_it)
{
    static const struct {
        const char *detail, *message;
    } cases[] = {
        {"form", "form"},
        {"form: no", "form: no"},
        {"form must be", "form must be"},
        {"format", "form: format"},
        {"formA", "form: formA"},
        {"formZ", "form: formZ"},
        {"form0", "form: form0"},
        {"form9", "form: form9"},
        {"form_", "form: form_"},
        {"form-a", "form: form-a"},
        {"form[", "form["},
        {"form{", "form{"},
        {"for", "form: for"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_response response = {0};
        problem_reply_parameter(&response, PROBLEM_MALFORMED, "form", "%s", cases[i].detail);
        json_t *root = document(&response);
        cr_expect_str_eq(text(root, "message"), cases[i].message);
        json_decref(root);
        free(response.body);
    }
}

Test(problem, a_long_detail_ends_between_two_characters)
{
    for (size_t ahead = PROBLEM_DETAIL_MAX - 5; ahead <= PROBLEM_DETAIL_MAX; ahead++) {
        struct http_response response = {0};
        char detail[2 * PROBLEM_DETAIL_MAX];
        memset(detail, 'x', ahead);
        strcpy(detail + ahead, "\xf0\x9f\x98\x80 and more than has room");
        problem_reply(&response, PROBLEM_MALFORMED, "%s", detail);
        json_t *root = document(&response);
        const char *kept = text(root, "detail");
        cr_expect(strlen(kept) >= PROBLEM_DETAIL_MAX - 5 && strlen(kept) <= PROBLEM_DETAIL_MAX);
        cr_expect(strncmp(kept, detail, strlen(kept)) == 0, "%s", kept);
        cr_expect_null(strchr(kept, '?'));
        json_decref(root);
        free(response.body);
    }
}

Test(problem, names_the_parameter)
{
    struct http_response response = {0};
    problem_reply_parameter(&response, PROBLEM_MALFORMED, "form", "unknown parameter %s", "form");
    json_t *root = document(&response);
    json_t *errors = json_object_get(root, "errors");
    cr_assert_eq(json_array_size(errors), 1);
    json_t *error = json_array_get(errors, 0);
    cr_expect_eq(json_object_size(error), 2);
    cr_expect_str_eq(text(error, "parameter"), "form");
    cr_expect_str_eq(text(error, "detail"), "unknown parameter form");
    cr_expect_str_eq(text(root, "message"), "form: unknown parameter form");
    json_decref(root);
    free(response.body);
}

Test(problem, its_text_names_the_parameter_once)
{
    static const struct {
        const char *parameter, *detail, *message;
    } cases[] = {
        {"form", "unknown parameter", "form: unknown parameter"},
        {"from", "must not be empty", "from: must not be empty"},
        {"to", "must be later than from", "to: must be later than from"},
        {"to", "to must be later", "to must be later"},
        {"to", "from 1 to 10", "to: from 1 to 10"},
        {"to", "to", "to"},
        {"to", "to-day", "to: to-day"},
        {"page", "pages are too many", "page: pages are too many"},
        {"", "a parameter without a name", "a parameter without a name"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_response response = {0};
        problem_reply_parameter(
            &response, PROBLEM_MALFORMED, cases[i].parameter, "%s", cases[i].detail);
        json_t *root = document(&response);
        json_t *error = json_array_get(json_object_get(root, "errors"), 0);
        cr_expect_str_eq(text(root, "message"), cases[i].message);
        cr_expect_str_eq(text(root, "detail"), cases[i].message);
        cr_expect_str_eq(text(error, "parameter"), cases[i].parameter);
        cr_expect_str_eq(text(error, "detail"), cases[i].detail);
        json_decref(root);
        free(response.body);
    }
}

Test(problem, takes_errors_over)
{
    struct http_response response = {0};
    json_t *errors = json_pack("[{s:i, s:s}]", "index", 2, "detail", "no page");
    json_incref(errors);
    problem_reply_errors(&response, PROBLEM_UNACCEPTABLE, errors, "%d events", 1);
    cr_expect_eq(errors->refcount, 1, "one reference was given away");
    json_t *root = document(&response);
    cr_expect(json_equal(json_object_get(root, "errors"), errors));
    json_decref(root);
    json_decref(errors);
    free(response.body);
}

Test(problem, replaces_an_answer_but_keeps_its_headers)
{
    struct http_response response = {.status = 200, .body = strdup("old"), .body_n = 3};
    cr_expect(problem_add_header(&response, "Allow", "GET"));
    problem_reply_errors(&response, PROBLEM_UNAVAILABLE, NULL, "later");
    cr_expect_eq(response.status, 503);
    cr_expect_str_eq(header(&response, "Allow"), "GET");
    cr_expect_str_eq(header(&response, "Retry-After"), "1");
    json_t *root = document(&response);
    cr_expect_null(json_object_get(root, "errors"));
    json_decref(root);
    free(response.body);
}

Test(problem, of_every_storage_error)
{
    static const struct {
        enum storage_err err;
        const char *text;
    } rows[] = {
#define X(name, text) {name, text},
        STORAGE_ERRORS(X)
#undef X
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        enum storage_err err = rows[i].err;
        bool question = err == STORAGE_NOT_KEPT || err == STORAGE_TOO_BROAD ||
                        err == STORAGE_TOO_FINE || err == STORAGE_TOO_MANY;
        unsigned expected = err == STORAGE_OK        ? 500
                            : err == STORAGE_UNKNOWN ? 504
                            : err == STORAGE_LIMITED ? 429
                            : err == STORAGE_NO_SET  ? 404
                            : question               ? 422
                                                     : 503;
        struct http_response response = {0};
        problem_from_storage(&response, err, i % 2 == 0 ? NULL : "");
        cr_expect_eq(response.status, expected, "%s: %u", rows[i].text, response.status);
        cr_expect_eq(header(&response, "Retry-After") != NULL, expected == 503);
        json_t *root = document(&response);
        cr_expect_str_eq(text(root, "detail"), rows[i].text);
        json_decref(root);
        free(response.body);
    }
}

Test(problem, storage_detail_is_not_a_format)
{
    struct http_response response = {0};
    problem_from_storage(&response, STORAGE_REFUSED, "MISCONF 100%s");
    json_t *root = document(&response);
    cr_expect_str_eq(text(root, "detail"), "MISCONF 100%s");
    json_decref(root);
    free(response.body);
}

/* Failure scenarios */

Test(problem, bytes_that_are_no_utf_8_become_question_marks)
{
    struct http_response response = {0};
    problem_reply_parameter(&response, PROBLEM_MALFORMED, "p\xff", "a\xc3(b");
    json_t *root = document(&response);
    cr_expect_str_eq(text(root, "detail"), "p?: a?(b");
    cr_expect_str_eq(text(json_array_get(json_object_get(root, "errors"), 0), "parameter"), "p?");
    json_decref(root);
    free(response.body);
}

Test(problem, long_details_are_cut_between_characters)
{
    for (size_t shift = 0; shift < 4; shift++) {
        char detail[2 * PROBLEM_DETAIL_MAX];
        memset(detail, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof(detail); i += 3) {
            memcpy(detail + i, "\xe2\x82\xac", 4);
        }
        struct http_response response = {0};
        problem_reply(&response, PROBLEM_MALFORMED, "%s", detail);
        json_t *root = document(&response);
        size_t n = strlen(text(root, "detail"));
        cr_expect(n <= PROBLEM_DETAIL_MAX && n >= PROBLEM_DETAIL_MAX - 4, "%zu bytes", n);
        cr_expect_eq(memcmp(text(root, "detail"), detail, n), 0, "not a prefix");
        json_decref(root);
        free(response.body);
    }
}

Test(problem, headers_are_bounded)
{
    struct http_response response = {0};
    char longest[sizeof(response.headers[0].value)];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    for (unsigned i = 0; i < HTTP_HEADERS_MAX; i++) {
        cr_expect(problem_add_header(&response, "A", longest));
    }
    cr_expect_not(problem_add_header(&response, "A", "a"));
    problem_reply(&response, PROBLEM_UNAVAILABLE, "no room for Retry-After");
    cr_expect_eq(response.n_headers, HTTP_HEADERS_MAX);
    free(response.body);

    struct http_response fresh = {0};
    char too_long[sizeof(longest) + 1];
    memset(too_long, 'x', sizeof(longest));
    too_long[sizeof(longest)] = '\0';
    cr_expect_not(problem_add_header(&fresh, "A", too_long));
    cr_expect_eq(fresh.n_headers, 0);
}

Test(problem, over_a_limit)
{
    static const struct limit_state states[] = {
        {.remaining = 3, .retry_us = 1500000, .reset_us = 9000001},
        {.remaining = 5, .retry_us = -1}, {.penalised = true, .retry_us = 900000000}};
    static const int retry_s[] = {2, -1, 900};
    static const char *const limited_by[] = {NULL, "funnel 5/60s", "penalty 15m after 3/1h"};
    for (size_t i = 0; i < 3; i++) {
        struct http_response response = {.body = strdup("old"), .body_n = 3};
        problem_reply_limited(&response, 5, &states[i], limited_by[i]);
        cr_expect_eq(response.status, 429);
        json_t *root = document(&response);
        cr_expect_str_eq(text(root, "detail"), text(root, "message"));
        cr_expect_eq(json_integer_value(json_object_get(root, "retry_after_s")), retry_s[i]);
        cr_expect_eq(json_integer_value(json_object_get(root, "remaining")), states[i].remaining);
        cr_expect(json_is_false(json_object_get(root, "allowed")));
        if (limited_by[i] != NULL) {
            cr_expect_str_eq(text(root, "limited_by"), limited_by[i]);
        } else {
            cr_expect_null(json_object_get(root, "limited_by"));
        }
        cr_expect_eq(strncmp(text(root, "detail"), "refused too often", 17) == 0, i == 2);
        json_decref(root);
        free(response.body);
    }
}
