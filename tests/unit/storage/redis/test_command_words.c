#include "storage/redis/command_words.h"

#include <criterion/criterion.h>

#include "storage/redis/resp.h"
#include "tests/lib/resp_words.h"

TestSuite(command_words, .timeout = 60);

/* Of commands that lie between others each word comes back, behind the number of its command's. */
Test(command_words, each_behind_its_number)
{
    struct buffer commands;
    struct buffer out;
    struct resp_words words;
    char long_word[1234];
    memset(long_word, '$', sizeof(long_word));
    buffer_init(&commands);
    buffer_init(&out);
    resp_command(&commands, "TIME", NULL);
    size_t from = commands.n;
    resp_command(&commands, "SET", "k", "", NULL);
    resp_head(&commands, 2);
    resp_word(&commands, "*1\r\n$", 5);
    resp_word(&commands, long_word, sizeof(long_word));
    size_t end = commands.n;
    resp_command(&commands, "EXEC", NULL);

    cr_expect_eq(command_words((struct slice){commands.p + from, end - from}, &out), 7);
    cr_assert(resp_words_read(&out, &words));
    cr_expect_eq(resp_words_number(&words), 3);
    cr_expect(slice_equal(resp_words_take(&words), SLICE("SET")));
    cr_expect(slice_equal(resp_words_take(&words), SLICE("k")));
    cr_expect(slice_equal(resp_words_take(&words), SLICE("")));
    cr_expect_eq(resp_words_number(&words), 2);
    cr_expect(slice_equal(resp_words_take(&words), SLICE("*1\r\n$")));
    cr_expect(slice_equal(resp_words_take(&words), (struct slice){long_word, sizeof(long_word)}));
    cr_expect(resp_words_over(&words));

    buffer_clear(&out, SIZE_MAX);
    cr_expect_eq(command_words((struct slice){commands.p, 0}, &out), 0);
    cr_expect_eq(out.n, 0);
    buffer_release(&commands);
    buffer_release(&out);
}
