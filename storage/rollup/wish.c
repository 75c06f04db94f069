#include "storage/rollup/wish.h"

#include <sodium.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define ASK_MS  2000  /* longest wait for an answer */
#define WISH_MS 60000 /* a wish that nobody took away */

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

/* Begin a command of @n words in all: its name, and the wish's key. */
static void begin(struct buffer *b, const struct core *core, size_t n, const char *name)
{
    struct key key;
    key_fixed(&key, core->partitions.tag[0], "wish", SLICE(""));
    buffer_init(b);
    resp_head(b, n);
    resp_text(b, name);
    resp_word(b, key.p, key.n);
}

/* The same of a script with @n_args arguments. */
static void begin_script(struct buffer *b, const struct core *core, const struct session *session,
    enum script script, size_t n_args)
{
    struct key key;
    key_fixed(&key, core->partitions.tag[0], "wish", SLICE(""));
    buffer_init(b);
    script_head(b, &session->scripts, script, 1, n_args);
    resp_word(b, key.p, key.n);
}

bool wish_make(struct core *core, struct session *session)
{
    unsigned char bytes[(WISH_ID_SIZE - 1) / 2];
    char id[WISH_ID_SIZE];
    struct buffer b;
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(id, sizeof(id), bytes, sizeof(bytes));
    begin_script(&b, core, session, SCRIPT_SMALL_WRITE, 4);
    resp_text(&b, "SET");
    resp_text(&b, id);
    resp_text(&b, "PX");
    resp_decimal(&b, WISH_MS);
    return ask(core, session, &b) != NULL;
}

void wish_read(struct core *core, struct session *session, char ret_id[WISH_ID_SIZE])
{
    struct buffer b;
    begin(&b, core, 2, "GET");
    const struct reply *reply = ask(core, session, &b);
    bool is = reply != NULL && reply->type == REPLY_TEXT && reply->text.n == WISH_ID_SIZE - 1;
    memcpy(ret_id, is ? reply->text.p : "", is ? WISH_ID_SIZE : 1);
}

void wish_fulfil(struct core *core, struct session *session, const char *id)
{
    struct buffer b;
    begin_script(&b, core, session, SCRIPT_RELEASE, 1);
    resp_text(&b, id);
    (void)ask(core, session, &b);
}

bool wish_is_fulfilled(struct core *core, struct session *session)
{
    struct buffer b;
    begin(&b, core, 2, "EXISTS");
    const struct reply *reply = ask(core, session, &b);
    return reply != NULL && reply->type == REPLY_INTEGER && reply->integer == 0;
}
