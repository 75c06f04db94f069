#include "handlers/dimension/campaign.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "storage/job/dimension.h"

/* The five values, with bars between. */
static void check(const char *page, const char *expected)
{
    char room[4096];
    char text[4096] = "";
    size_t n = 0;
    struct slice utm[UTM_N] = {{NULL, 0}};
    campaign_read(slice_of(page), room, utm);
    for (size_t i = 0; i < UTM_N; i++) {
        n += (size_t)snprintf(
            text + n, sizeof(text) - n, "%s%.*s", i == 0 ? "" : "|", (int)utm[i].n, utm[i].p);
    }
    cr_expect_str_eq(text, expected, "%s: %s", page, text);
    cr_expect(n == UTM_N - 1 || campaign_has(slice_of(page)), "%s", page);
}

Test(campaign, parameters)
{
    check("/a?utm_source=news&utm_medium=email&utm_campaign=may&utm_term=t&utm_content=c",
        "news|email|may|t|c");
    check("https://a.example/?x=1&utm_campaign=spring+sale%21#utm_source=no", "||spring sale!||");
    check("/?utm_source=%C3%A4&utm_source=second", "\xc3\xa4||||");
    check("/?utm_source=&utm_source=b&&=&utm_medium", "b||||");
    check("/?utm_source=100%&utm_medium=%4&utm_term=%zz", "100%|%4||%zz|");
    check("/?UTM_SOURCE=a&utm_sourc=b&xutm_source=c", "||||");
}

Test(campaign, none)
{
    static const char *const pages[] = {"", "/", "/utm_source=a", "/#?utm_source=a", "/?", "/?#"};
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        check(pages[i], "||||");
    }
    cr_expect_not(campaign_has(SLICE("/utm_source=a")));
    cr_expect_not(campaign_has(SLICE("/?a=b#utm_source=a")));
}

Test(campaign, what_is_no_text_is_passed_over)
{
    check("/?utm_source=%00&utm_medium=%ff&utm_term=%0a&utm_content=ok", "||||ok");
    check("/?utm_source=%ff&utm_source=b", "b||||");
}

Test(campaign, what_was_given_stays)
{
    char room[100];
    struct slice utm[UTM_N] = {[UTM_SOURCE] = SLICE("member")};
    campaign_read(SLICE("/?utm_source=query&utm_medium=m"), room, utm);
    cr_expect(slice_equal(utm[UTM_SOURCE], SLICE("member")));
    cr_expect(slice_equal(utm[UTM_MEDIUM], SLICE("m")));
}

Test(campaign, a_long_value_is_cut_behind_a_whole_character)
{
    char page[1000] = "/?utm_source=a";
    char room[1000];
    size_t n = strlen(page);
    for (size_t i = 0; i < 200; i++) {
        memcpy(page + n, "\xc3\xa4", 2);
        n += 2;
    }
    struct slice utm[UTM_N] = {{NULL, 0}};
    campaign_read((struct slice){page, n}, room, utm);
    cr_expect(utm[UTM_SOURCE].n == DIMENSION_VALUE_MAX - 1); /* one, and 127 of two */
}
