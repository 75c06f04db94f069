#include "storage/rollup/wish.h"

#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/random_id.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define ASK_MS  2000  /* the longest wait for an answer */
#define WISH_MS 60000 /* a wish expires after so long */
#define WISH    "wish"
#define DONE    "wish:done"

/* Send the command in @b, which is released, and await its reply.  NULL: none came, or an error. */
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

/* Ask for the key @name. */
static const struct reply *ask_for(struct core *core, struct session *session, const char *name)
{
    struct buffer b;
    buffer_init(&b);
    key_command(&b, "GET", core->partitions.tag[0], name, 0);
    return ask(core, session, &b);
}

bool wish_make(struct core *core, struct session *session, int64_t *ret_done)
{
    char id[WISH_ID_SIZE];
    const char *tag = core->partitions.tag[0];
    struct buffer b;
    random_id(id, sizeof(id));
    buffer_init(&b);
    script_head(&b, &session->scripts, SCRIPT_SMALL_WRITE, 1, 4);
    key_put(&b, tag, WISH);
    resp_text(&b, "SET");
    resp_text(&b, id);
    resp_text(&b, "PX");
    resp_decimal(&b, WISH_MS);
    if (ask(core, session, &b) == NULL) {
        return false;
    }
    /* Read the count only now: what is added from here on is not of a pass that began before. */
    const struct reply *done = ask_for(core, session, DONE);
    *ret_done = done == NULL ? 0 : reply_integer(done, 0);
    return done != NULL;
}

void wish_read(struct core *core, struct session *session, char ret_id[WISH_ID_SIZE])
{
    const struct reply *reply = ask_for(core, session, WISH);
    bool is = reply != NULL && reply->type == REPLY_TEXT && reply->text.n == WISH_ID_SIZE - 1;
    memcpy(ret_id, is ? reply->text.p : "", is ? WISH_ID_SIZE : 1);
}

void wish_fulfil(struct core *core, struct session *session, const char *id)
{
    const char *tag = core->partitions.tag[0];
    struct buffer b;
    buffer_init(&b);
    script_head(&b, &session->scripts, SCRIPT_RELEASE, 2, 1);
    key_put(&b, tag, WISH);
    key_put(&b, tag, DONE);
    resp_text(&b, id);
    (void)ask(core, session, &b);
}

enum wish_fate wish_look(struct core *core, struct session *session, int64_t done)
{
    const char *tag = core->partitions.tag[0];
    struct buffer b;
    buffer_init(&b);
    key_command(&b, "MGET", tag, WISH, 1);
    key_put(&b, tag, DONE);
    const struct reply *reply = ask(core, session, &b);
    if (reply == NULL || reply->type != REPLY_ARRAY || reply->n != 2) {
        return WISH_STANDS;
    }
    if (reply_integer(&reply->items[1], 0) > done) {
        return WISH_FULFILLED;
    }
    return reply->items[0].type == REPLY_TEXT ? WISH_STANDS : WISH_LOST;
}
