#include "storage/schema/partition_state.h"

#include <xxhash.h>

#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/schema/settings.h"

bool ver_equal(const struct ver *a, const struct ver *b)
{
    return a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
}

uint64_t ver_hash(const struct ver *ver)
{
    return ver->n > 0 ? XXH3_64bits(ver->text, ver->n) : 0;
}

void partition_state_ask(struct buffer *out, const char *tag, size_t more)
{
    static const char *const names[STATE_FIELDS] = {"cfg", "st", "ver", "kept", "over", "fold"};
    key_command(out, "HMGET", tag, "state", STATE_FIELDS + more);
    for (size_t i = 0; i < STATE_FIELDS; i++) {
        resp_text(out, names[i]);
    }
}

void partition_proof_ask(struct buffer *out, const char *tag)
{
    key_command(out, "HMGET", tag, "state", PROOF_FIELDS);
    resp_text(out, "ver");
    resp_text(out, "over");
    resp_text(out, "fold");
}

static bool is_ver(const struct ver *ver, const struct reply *text)
{
    return text->type == REPLY_TEXT && text->text.n == ver->n &&
           memcmp(text->text.p, ver->text, ver->n) == 0;
}

static void copy_ver(struct ver *to, const struct reply *from)
{
    if (from->type == REPLY_TEXT && from->text.n <= VER_MAX) {
        to->n = (uint8_t)from->text.n;
        memcpy(to->text, from->text.p, from->text.n);
    }
}

#define OVER_DIGITS 11

/* The field `over` has 11 digits of seconds, a blank and an id (fold/share_write.c). */
int64_t partition_over_s(const struct reply *over)
{
    struct reply seconds = *over;
    if (over->type != REPLY_TEXT || over->text.n <= OVER_DIGITS) {
        return 0;
    }
    seconds.text.n = OVER_DIGITS;
    return reply_integer(&seconds, 0);
}

static void copy_over(struct partition_view *view, const struct reply *over)
{
    if (over->type == REPLY_TEXT && over->text.n > OVER_DIGITS) {
        view->over_s = partition_over_s(over);
        copy_ver(&view->over, over);
    }
}

bool partition_state_parse(const struct reply *fields, const char *cfg,
    const struct retention *retention, int64_t now_s, struct partition_view *ret)
{
    struct partition_view view = {.known = true, .retention = *retention};
    if (fields->type != REPLY_ARRAY || fields->n != STATE_FIELDS) {
        return false;
    }
    const struct reply *is = &fields->items[0];
    if (is->type == REPLY_NIL) {
        view.known = false;
        view.state = rollup_state_initial(now_s);
        *ret = view;
        return true;
    }
    if (!slice_equal(is->text, slice_of(cfg)) ||
        !rollup_state_parse(fields->items[1].text, &view.state)) {
        return false;
    }
    copy_ver(&view.ver, &fields->items[2]);
    copy_over(&view, &fields->items[4]);
    copy_ver(&view.fold, &fields->items[5]);
    const struct reply *kept = &fields->items[3];
    if (kept->type == REPLY_TEXT && !kept_parse(kept->text, &view.retention)) {
        return false;
    }
    *ret = view;
    return true;
}

bool partition_proof_same(const struct reply *fields, const struct partition_view *before)
{
    return fields->type == REPLY_ARRAY && fields->n == PROOF_FIELDS && before->ver.n > 0 &&
           is_ver(&before->ver, &fields->items[0]) && is_ver(&before->over, &fields->items[1]) &&
           is_ver(&before->fold, &fields->items[2]);
}

bool partition_proof_take(
    const struct reply *fields, const struct partition_view *before, struct partition_view *ret)
{
    if (fields->type != REPLY_ARRAY || fields->n != PROOF_FIELDS || before->ver.n == 0 ||
        !is_ver(&before->ver, &fields->items[0])) {
        return false;
    }
    *ret = *before;
    if (!is_ver(&before->over, &fields->items[1])) {
        ret->over.n = 0;
        ret->over_s = 0;
        copy_over(ret, &fields->items[1]);
    }
    if (!is_ver(&before->fold, &fields->items[2])) {
        ret->fold.n = 0;
        copy_ver(&ret->fold, &fields->items[2]);
    }
    return true;
}
