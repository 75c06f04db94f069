#include "handlers/dimension/page_rules.h"

#include <criterion/criterion.h>

static void check(const char *pattern, const char *page, bool fits)
{
    cr_expect(
        page_pattern_fits(slice_of(pattern), slice_of(page)) == fits, "%s: %s", pattern, page);
}

Test(page_rules, patterns)
{
    check("/user/*/**", "/user/7", true);
    check("/user/*/**", "/user/7/", true);
    check("/user/*/**", "/user/7/posts/3?x=1", true);
    check("/user/*/**", "/user/", false);
    check("/user/*/**", "/user", false);
    check("/user/*", "/user/7", true);
    check("/user/*", "/user/7?tab=2", true);
    check("/user/*", "/user/7/", false);
    check("/user/*/edit", "/user/7/edit", true);
    check("/user/*/edit", "/user//edit", false);
    check("/user/*/edit", "/user/7/edit/", false);
    check("/a", "/a", true);
    check("/a", "/ab", false);
    check("/a/", "/a/", true);
    check("/a/", "/a", false);
    check("**", "anything", true);
    check("/**", "/", true);
    check("/**/x", "/a/x", false); /* only a last one is special */
    check("/**/x", "/**/x", true);
    check("*", "a", true);
    check("/a*", "/ab", false);
}

Test(page_rules, the_first_one_that_fits_holds)
{
    struct page_rule rules[2];
    cr_assert_null(page_rule_parse(SLICE("/user/me  ->  /me"), &rules[0]));
    cr_assert_null(page_rule_parse(SLICE("/user/* -> /user/:id"), &rules[1]));
    struct app app = {.page_rules = rules, .n_page_rules = 2};
    cr_expect(slice_equal(page_rules_apply(&app, SLICE("/user/me")), SLICE("/me")));
    cr_expect(slice_equal(page_rules_apply(&app, SLICE("/user/you")), SLICE("/user/:id")));
    cr_expect(slice_equal(page_rules_apply(&app, SLICE("/other")), SLICE("/other")));
}

Test(page_rules, what_is_no_rule)
{
    struct page_rule rule;
    cr_expect_not_null(page_rule_parse(SLICE("/a"), &rule));
    cr_expect_not_null(page_rule_parse(SLICE("/a->/b"), &rule));
    cr_expect_not_null(page_rule_parse(SLICE(" -> /b"), &rule));
    cr_expect_not_null(page_rule_parse(SLICE("/a -> "), &rule));
    cr_expect_not_null(page_rule_parse(SLICE("/a -> /\x01"), &rule));
    cr_expect_not_null(page_rule_parse(SLICE(""), &rule));
    cr_expect_not_null(page_rule_parse(SLICE("/a/**/b -> /c"), &rule));
    cr_expect_null(page_rule_parse(SLICE("/a**/b/** -> /c"), &rule));
}

Test(page_rules, numbers)
{
    cr_expect(page_rule_number(SLICE("1")) == 1 && page_rule_number(SLICE("100")) == 100);
    static const char *const rows[] = {"", "0", "01", "101", "1000", "a", "1a", "-1"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect(page_rule_number(slice_of(rows[i])) == 0, "%s", rows[i]);
    }
}

Test(page_rules, sections)
{
    struct slice found[DIMENSION_SECTIONS_MAX];
    const struct page_section sections[] = {{SLICE("blog"), SLICE("/blog/")},
        {SLICE("all"), SLICE("/")}, {SLICE("shop"), SLICE("/shop")}};
    struct app app = {.sections = sections, .n_sections = 3};
    cr_assert(page_sections_of(&app, SLICE("/blog/a"), found) == 2);
    cr_expect(slice_equal(found[0], SLICE("blog")) && slice_equal(found[1], SLICE("all")));
    cr_expect(page_sections_of(&app, SLICE("/blog"), found) == 1);
    cr_expect(page_sections_of(&app, SLICE("x"), found) == 0);
}
