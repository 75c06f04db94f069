/* skip.c - close buckets in which no site has data, many of them in one step. */
#include "storage/rollup/step.h"

#include <stdio.h>

#include "storage/redis/resp.h"

#define MEMBERS_READ 1000  /* if `open` has more members, buckets are closed one by one */
#define ENDS_MOST    10000 /* so many buckets, a year of hours, are closed in one step at most */

/* When the first bucket of the pass's level that has data ends.  INT64_MAX: none has data.
 * INT64_MIN: a member cannot be parsed. */
static int64_t first_end_s(const struct pass *pass, const struct reply *members)
{
    int64_t first_s = INT64_MAX;
    for (size_t i = 0; i < members->n; i++) {
        struct open_bucket open;
        if (!open_bucket_parse(pass->core, members->items[i].text, &open)) {
            return INT64_MIN;
        }
        if (open.bucket.level == pass->level && open.bucket.end_s < first_s) {
            first_s = open.bucket.end_s;
        }
    }
    return first_s;
}

/* Read `open`: *ret_s is as above, and INT64_MIN also if there are too many members. */
static enum pass_result read_first_end(struct pass *pass, int64_t *ret_s)
{
    const struct reply *reply = NULL;
    key_command(&pass->out, "SSCAN", pass->tag, "open", 3);
    resp_text(&pass->out, "0");
    resp_text(&pass->out, "COUNT");
    resp_decimal(&pass->out, MEMBERS_READ);
    enum pass_result result = pass_ask(pass, &reply);
    if (result != PASS_DONE || reply->type != REPLY_ARRAY || reply->n != 2) {
        return result == PASS_DONE ? PASS_FAILED : result;
    }
    bool whole = slice_equal(reply->items[0].text, SLICE("0"));
    *ret_s = whole ? first_end_s(pass, &reply->items[1]) : INT64_MIN;
    return PASS_DONE;
}

/* The last end of a bucket, from that of the pass on, that is due and lies before @first_s. */
static int64_t last_end_s(const struct pass *pass, int64_t first_s, int64_t now_s)
{
    int64_t end_s = pass->end_s;
    for (unsigned n = 0; n < ENDS_MOST; n++) {
        int64_t next_s = site_zones_next_end(&pass->core->sites, pass->level, end_s);
        if (next_s >= first_s || !pass_is_due(pass, pass->level, next_s, now_s)) {
            break;
        }
        end_s = next_s;
    }
    return end_s;
}

static enum pass_result close_to(struct pass *pass, int64_t end_s)
{
    struct rollup_state closed = pass->view.state;
    const struct ver *fold = &pass->view.fold;
    char ver[PASS_ID + 4];
    int64_t done = 0;
    closed.writers_s[pass->level] = closed.readers_s[pass->level] = end_s;
    pass_new_id(pass);
    (void)snprintf(ver, sizeof(ver), "%s.s", pass->id);
    pass_put_state(pass, &pass->view.state);
    pass_put_state(pass, &closed);
    resp_text(&pass->args, ver);
    resp_word(&pass->args, fold->text, fold->n);
    resp_decimal(&pass->args, pass->leadership->fencing_token);
    resp_decimal(&pass->args, end_s);
    enum pass_result result = pass_run(pass, SCRIPT_SKIP, 6, &done);
    if (result == PASS_DONE) {
        pass_closed(pass, &closed, ver);
    }
    return result;
}

enum pass_result pass_skip(struct pass *pass, int64_t now_s)
{
    int64_t first_s = 0;
    enum pass_result result = read_first_end(pass, &first_s);
    if (result != PASS_DONE || first_s <= pass->end_s) {
        return result == PASS_DONE ? PASS_VOID : result;
    }
    return close_to(pass, last_end_s(pass, first_s, now_s));
}
