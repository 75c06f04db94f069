#include "service/options/list_option.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(list_option, networks)
{
    size_t n = 0;
    cr_expect_null(list_option_check_networks(""));
    cr_expect_null(list_option_check_networks("127.0.0.1"));
    cr_expect_null(list_option_check_networks(" 10.0.0.0/8 , ::1,fd00::/8 "));
    cr_expect_not_null(list_option_check_networks("10.0.0.0/8,"
                                                  ",::1"));
    cr_expect_not_null(list_option_check_networks(" "));
    cr_expect_not_null(list_option_check_networks("localhost"));
    struct network *networks = list_option_networks(" 10.0.0.0/8 , ::1", &n);
    cr_assert(networks != NULL && n == 2);
    cr_expect(networks[0].bits == 8 && networks[1].bits == 128);
    free(networks);
    networks = list_option_networks("", &n);
    cr_expect(networks != NULL && n == 0);
    free(networks);
}

Test(list_option, entries)
{
    struct slice rest = list_option_begin(" a ,b,"), entry;
    cr_assert(list_option_take(&rest, &entry) && slice_equal(entry, SLICE("a")));
    cr_assert(list_option_take(&rest, &entry) && slice_equal(entry, SLICE("b")));
    cr_assert(list_option_take(&rest, &entry) && entry.n == 0, "behind the last comma");
    cr_expect_not(list_option_take(&rest, &entry));
    rest = list_option_begin("");
    cr_expect_not(list_option_take(&rest, &entry), "an empty list has no entry");
}

Test(list_option, origins)
{
    size_t n = 0;
    cr_expect_null(list_option_check_origins(""));
    cr_expect_null(list_option_check_origins("https://a.example, http://b.example:81"));
    cr_expect_null(list_option_check_origins("*"));
    cr_expect_not_null(list_option_check_origins("https://a.example,,*"));
    cr_expect_not_null(list_option_check_origins("https://a.example/"));
    struct slice *origins = list_option_texts("https://a.example, *", &n);
    cr_assert(origins != NULL && n == 2);
    cr_expect(slice_equal(origins[0], SLICE("https://a.example")));
    cr_expect(slice_equal(origins[1], SLICE("*")));
    free(origins);
}
