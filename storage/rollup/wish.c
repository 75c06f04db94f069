#include "storage/rollup/wish.h"

#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/random_id.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define ASK_MS  2000  /* longest wait for an answer */
#define WISH_MS 60000 /* a wish that nobody took away */
#define WISH    SLICE("")
#define DONE    SLICE(":done")

/* Send the command in @b, which is released, and await its reply; NULL: none, or an error. */
static const struct reply *ask(struct core *core, struct session *session, struct buffer *b)
{
    const struct reply *reply = NULL;
    enum redis_status status = redis_ask(session->redis, b, monotonic_ms() + ASK_MS, &reply);
    buffer_release(b);
    if (status != REDIS_OK_STATUS) {
        session_lost(session);
        return NULL;
    }
    server_refused(core, &session->server, 0, reply);
    return reply->type == REPLY_ERROR ? NULL : reply;
}

static void put_key(struct buffer *b, const struct core *core, struct slice what)
{
    struct key key;
    resp_slice(b, key_fixed(&key, core->partitions.tag[0], "wish", what));
}

/* Begin a command of @n words in all: its name, and one of the keys. */
static void begin(
    struct buffer *b, const struct core *core, size_t n, const char *name, struct slice what)
{
    buffer_init(b);
    resp_head(b, n);
    resp_text(b, name);
    put_key(b, core, what);
}

bool wish_make(struct core *core, struct session *session, int64_t *ret_done)
{
    char id[WISH_ID_SIZE];
    struct buffer b;
    random_id(id, sizeof(id));
    buffer_init(&b);
    script_head(&b, &session->scripts, SCRIPT_SMALL_WRITE, 1, 4);
    put_key(&b, core, WISH);
    resp_text(&b, "SET");
    resp_text(&b, id);
    resp_text(&b, "PX");
    resp_decimal(&b, WISH_MS);
    if (ask(core, session, &b) == NULL) {
        return false;
    }
    /* Only now: what is counted from here on is not of a pass that began before. */
    begin(&b, core, 2, "GET", DONE);
    const struct reply *done = ask(core, session, &b);
    *ret_done = done == NULL ? 0 : reply_integer(done, 0);
    return done != NULL;
}

void wish_read(struct core *core, struct session *session, char ret_id[WISH_ID_SIZE])
{
    struct buffer b;
    begin(&b, core, 2, "GET", WISH);
    const struct reply *reply = ask(core, session, &b);
    bool is = reply != NULL && reply->type == REPLY_TEXT && reply->text.n == WISH_ID_SIZE - 1;
    memcpy(ret_id, is ? reply->text.p : "", is ? WISH_ID_SIZE : 1);
}

void wish_fulfil(struct core *core, struct session *session, const char *id)
{
    struct buffer b;
    buffer_init(&b);
    script_head(&b, &session->scripts, SCRIPT_RELEASE, 2, 1);
    put_key(&b, core, WISH);
    put_key(&b, core, DONE);
    resp_text(&b, id);
    (void)ask(core, session, &b);
}

enum wish_fate wish_look(struct core *core, struct session *session, int64_t done)
{
    struct buffer b;
    begin(&b, core, 3, "MGET", WISH);
    put_key(&b, core, DONE);
    const struct reply *reply = ask(core, session, &b);
    if (reply == NULL || reply->type != REPLY_ARRAY || reply->n != 2) {
        return WISH_STANDS;
    }
    if (reply_integer(&reply->items[1], 0) > done) {
        return WISH_FULFILLED;
    }
    return reply->items[0].type == REPLY_TEXT ? WISH_STANDS : WISH_LOST;
}
