#include "storage/log/record.h"

#include <criterion/criterion.h>

#include "tests/lib/resp_words.h"

TestSuite(record, .timeout = 60);

static struct log_entry entry;
static struct entry_keyed keyed[2];

/* The record of request @i of an entry, as it stands in Redis. */
static void make_record(
    uint64_t n, size_t i, char body, struct buffer *ret, struct slice *ret_record)
{
    struct resp_words words;
    memset(&entry, 0, sizeof(entry));
    memcpy(entry.id, "0123456789abcdef", LOG_ID_TEXT);
    entry.n = n;
    entry.keyed = keyed;
    entry.n_keyed = 2;
    memset(keyed, 0, sizeof(keyed));
    memset(&keyed[i].body, body, sizeof(keyed[i].body));
    keyed[i].answer = SLICE("{\"accepted\":1}");
    buffer_init(ret);
    record_put(ret, &entry, i);
    cr_assert(resp_words_read(ret, &words));
    *ret_record = resp_words_take(&words); /* in the buffer */
    resp_words_release(&words);
}

Test(record, is_known_again_by_log_number_and_place)
{
    struct buffer bytes;
    struct slice record;
    make_record(7, 1, 'b', &bytes, &record);
    cr_expect_eq(record.n, 52 + strlen("{\"accepted\":1}"));
    cr_expect_eq(record_judge(record, &entry, 1), KEY_MINE);
    memset(&keyed[0].body, 'b', sizeof(keyed[0].body));
    cr_expect_eq(record_judge(record, &entry, 0), KEY_REPLAY, "the same key twice in one entry");
    entry.n = 8;
    cr_expect_eq(record_judge(record, &entry, 1), KEY_REPLAY);
    memset(&keyed[1].body, 'c', sizeof(keyed[1].body));
    cr_expect_eq(record_judge(record, &entry, 1), KEY_OTHER_BODY);
    cr_expect_eq(record_judge(SLICE(""), &entry, 1), KEY_MINE, "just written");
    buffer_release(&bytes);
}

Test(record, tells_the_first_answer)
{
    struct buffer bytes;
    struct slice record;
    struct request_key key = {0};
    make_record(UINT64_MAX, 0, 'b', &bytes, &record);
    memset(&key.body, 'b', sizeof(key.body));
    cr_expect_eq(record_look(record, &key.body), KEY_REPLAY);
    cr_assert(record_tell(record, KEY_REPLAY, &key));
    cr_expect_eq(key.outcome, KEY_REPLAY);
    cr_expect_str_eq(key.replay, "{\"accepted\":1}");
    request_key_release(&key);
    cr_expect_eq(record_look(SLICE(""), &key.body), KEY_FREE);
    cr_assert(record_tell(SLICE(""), KEY_FREE, &key));
    cr_expect(key.outcome == KEY_FREE && key.replay == NULL);
    memset(&key.body, 'c', sizeof(key.body));
    cr_expect_eq(record_look(record, &key.body), KEY_OTHER_BODY);
    buffer_release(&bytes);
}
