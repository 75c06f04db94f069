#include "service/client/query/query_table.h"

#include <criterion/criterion.h>
#include <stdlib.h>

TestSuite(query_table, .timeout = 60);

static void check(const char *json, const char *table_text, const char *csv_text)
{
    char *text = NULL;
    size_t n = 0;
    json_t *answer = json_loads(json, 0, NULL);
    cr_assert(answer != NULL, "%s", json);
    for (int csv = 0; csv < 2; csv++) {
        struct query_table *table = query_table_new(answer);
        FILE *out = open_memstream(&text, &n);
        cr_assert(table != NULL && out != NULL);
        if (csv) {
            cr_expect(query_table_print_csv(table, out));
        } else {
            query_table_print(table, out);
        }
        (void)fclose(out);
        cr_expect_str_eq(text, csv ? csv_text : table_text, "%s", text);
        free(text);
        query_table_free(table);
    }
    json_decref(answer);
}

Test(query_table, one_figure)
{
    check("{\"site\":\"s\",\"pages\":[\"/a\"],\"from\":\"F\",\"tz\":\"UTC\",\"uv\":1234,"
          "\"error\":{\"relative\":0.0081,\"low\":1214,\"high\":1254},\"cover\":{\"keys\":1}}",
        "from    uv   low  high\n----  ----  ----  ----\nF     1234  1214  1254\n",
        "from,uv,low,high\nF,1234,1214,1254\n");
}

Test(query_table, a_series_and_the_whole_below_it)
{
    check("{\"site\":\"s\",\"pages\":null,\"from\":\"A\",\"to\":\"C\",\"uv\":12,\"series\":["
          "{\"from\":\"A\",\"to\":\"B\",\"uv\":7},{\"from\":\"B\",\"to\":\"C\",\"uv\":9}]}",
        "from  to  uv\n----  --  --\nA     B    7\nB     C    9\n----  --  --\nA     C   12\n",
        "from,to,uv\nA,B,7\nB,C,9\n");
}

Test(query_table, a_series_without_a_whole)
{
    check("{\"from\":\"A\",\"to\":\"B\",\"series\":[{\"date\":\"A\",\"users\":3}]}",
        "date  users\n----  -----\nA         3\n", "date,users\nA,3\n");
}

Test(query_table, retention_has_a_row_for_each_offset)
{
    check(
        "{\"site\":\"s\",\"action\":\"a\",\"return\":\"b\",\"new_within\":\"9d\",\"cohort\":\"C\","
        "\"size\":8,\"returned\":[{\"offset\":1,\"users\":4,\"rate\":0.5},"
        "{\"offset\":2,\"users\":0,\"rate\":0.0}]}",
        "cohort  size  offset  users  rate\n------  ----  ------  -----  ----\n"
        "C          8       1      4   0.5\nC          8       2      0     0\n",
        "cohort,size,offset,users,rate\nC,8,1,4,0.5\nC,8,2,0,0\n");
    check("{\"cohorts\":[{\"cohort\":\"C\",\"size\":8,\"returned\":[{\"offset\":1,\"users\":4,"
          "\"rate\":0.5}]},{\"cohort\":\"D\",\"size\":5,\"returned\":[]}]}",
        "cohort  size  offset  users  rate\n------  ----  ------  -----  ----\n"
        "C          8       1      4   0.5\nD          5                     \n",
        "cohort,size,offset,users,rate\nC,8,1,4,0.5\nD,5,,,\n");
    check("{\"cohort\":\"C\",\"size\":0,\"returned\":[]}",
        "cohort  size\n------  ----\nC          0\n", "cohort,size\nC,0\n");
}

Test(query_table, steps_and_days_are_rows)
{
    check("{\"from\":\"A\",\"steps\":[{\"action\":\"view\",\"users\":8,\"rate\":1.0}],\"ordered\":"
          "false}",
        "action  users  rate\n------  -----  ----\nview        8     1\n",
        "action,users,rate\nview,8,1\n");
    check("{\"action\":\"a\",\"days\":[{\"n\":1,\"users\":8},{\"n\":2,\"users\":0}]}",
        "n  users\n-  -----\n1      8\n2      0\n", "n,users\n1,8\n2,0\n");
}

Test(query_table, no_formula_for_a_spreadsheet)
{
    check("{\"pages\":[{\"page\":\"=1+1\",\"pv\":-1}]}", "page  pv\n----  --\n=1+1  -1\n",
        "page,pv\n\"'=1+1\",-1\n");
}

Test(query_table, text_that_is_not_for_a_terminal)
{
    check("{\"pages\":[{\"page\":\"/\\u00e4\\u0085\\u001b[2J\",\"pv\":1},"
          "{\"page\":\"a,\\\"b\\\"\",\"pv\":22}]}",
        "page     pv\n-------  --\n/\xc3\xa4??[2J   1\na,\"b\"    22\n",
        "page,pv\n/\xc3\xa4\xc2\x85\x1b[2J,1\n\"a,\"\"b\"\"\",22\n");
}

Test(query_table, no_name_turns_its_rows_direction)
{
    check("{\"pages\":[{\"page\":\"/\\u202e\\u061c\\u2069\\u200f\\u2013\",\"pv\":12}]}",
        "page    pv\n------  --\n/????\xe2\x80\x93  12\n",
        "page,pv\n/\xe2\x80\xae\xd8\x9c\xe2\x81\xa9\xe2\x80\x8f\xe2\x80\x93,12\n");
}

Test(query_table, no_rows)
{
    check("{\"pages\":[],\"total_pages\":0}", "page  pv  uv\n----  --  --\n", "page,pv,uv\n");
    check("{\"pages\":[]}",
        "site  page  reads_per_s  writes_per_s  error\n"
        "----  ----  -----------  ------------  -----\n",
        "site,page,reads_per_s,writes_per_s,error\n");
    check("{\"sites\":[]}", "site\n----\n", "site\n");
    check("{\"sites\":[\"a\",\"bc\"]}", "site\n----\na\nbc\n", "site\na\nbc\n");
}

Test(query_table, no_rows_of_each_form_of_a_question)
{
    check("{\"by\":\"visits\",\"pages\":[],\"total_pages\":0}", "page  visits\n----  ------\n",
        "page,visits\n");
    check("{\"by\":\"uv\",\"pages\":[],\"total_pages\":0}", "page  pv  uv\n----  --  --\n",
        "page,pv,uv\n");
    check("{\"from\":\"F\",\"to\":\"T\",\"sites\":[]}",
        "site  pv  uv  visits  now\n----  --  --  ------  ---\n", "site,pv,uv,visits,now\n");
    check("{\"metric\":\"pv\",\"rows\":[],\"step\":\"1h\"}",
        "value  from  to  pv\n-----  ----  --  --\n", "value,from,to,pv\n");
    check("{\"metric\":\"uv\",\"rows\":[],\"step\":\"1h\"}",
        "value  from  to  uv\n-----  ----  --  --\n", "value,from,to,uv\n");
}

Test(query_table, what_only_a_later_row_has_is_a_column)
{
    check("{\"pages\":[{\"page\":\"/a\",\"pv\":9},{\"page\":\"/b\",\"pv\":5,\"at_most\":7},"
          "{\"page\":\"/c\",\"pv\":1}]}",
        "page  pv  at_most\n----  --  -------\n/a     9         \n/b     5        7\n"
        "/c     1         \n",
        "page,pv,at_most\n/a,9,\n/b,5,7\n/c,1,\n");
}

Test(query_table, a_long_name_sticks_out)
{
#define TEN       "0123456789"
#define SIXTY_ONE TEN TEN TEN TEN TEN TEN "0"
    check("{\"pages\":[{\"page\":\"/a\",\"pv\":12},{\"page\":\"" SIXTY_ONE "\",\"pv\":3}]}",
        "page  pv\n----  --\n/a    12\n" SIXTY_ONE "   3\n", "page,pv\n/a,12\n" SIXTY_ONE ",3\n");
}

Test(query_table, no_object)
{
    json_t *answer = json_loads("[1]", 0, NULL);
    cr_expect(query_table_new(answer) == NULL);
    json_decref(answer);
}

Test(query_table, pages_of_several_sites)
{
    check("{\"pages\":[{\"site\":\"a\",\"page\":\"/\",\"error\":0},"
          "{\"site\":\"b\",\"page\":\"/\",\"error\":1}]}",
        "site  page  error\n----  ----  -----\na     /         0\nb     /         1\n",
        "site,page,error\na,/,0\nb,/,1\n");
}

Test(query_table, a_list_of_names)
{
    check("{\"sites\":[\"a\",\"longer\"]}", "site\n------\na\nlonger\n", "site\na\nlonger\n");
}

Test(query_table, numbers_and_what_is_no_cell)
{
    check("{\"pages\":[{\"page\":\"/\",\"share\":0.25,\"hot\":true,\"gone\":null,\"more\":[1]},"
          "{\"page\":\"/longer\"},{\"page\":\"/x\",\"share\":1}]}",
        "page     share  gone\n-------  -----  ----\n/         0.25      \n/longer             \n"
        "/x           1      \n",
        "page,share,gone\n/,0.25,\n/longer,,\n/x,1,\n");
}

Test(query_table, what_is_no_answer)
{
    static const char *const texts[] = {"[]", "5", "\"text\"", "null"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_t *answer = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        cr_expect_null(query_table_new(answer), "%s", texts[i]);
        json_decref(answer);
    }
    cr_expect_null(query_table_new(NULL));
}

Test(query_table, a_row_may_have_other_kinds_of_values_than_the_first)
{
    check("{\"pages\":[{\"page\":\"/a\",\"n\":1,\"x\":null},{\"page\":\"/b\",\"n\":true,\"x\":1.5},"
          "{\"page\":\"/c\",\"n\":false,\"x\":[1]}]}",
        "page      n    x\n----  -----  ---\n/a        1     \n/b     true  1.5\n/c    false     "
        "\n",
        "page,n,x\n/a,1,\n/b,true,1.5\n/c,false,\n");
}

Test(query_table, controls_are_not_for_the_terminal)
{
    check("{\"pages\":[{\"page\":\"/\\u001b[2J\\u007f\\u009b\\u00a0\\u00e9\"}]}",
        "page\n---------\n/?[2J??\302\240\303\251\n",
        "page\n/\033[2J\177\302\233\302\240\303\251\n");
}

Test(query_table, only_an_object_is_an_answer)
{
    json_t *list = json_array();
    cr_expect_null(query_table_new(list));
    cr_expect_null(query_table_new(NULL));
    query_table_free(NULL);
    json_decref(list);
}
