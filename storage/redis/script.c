#include "storage/redis/resp.h"
#include "storage/redis/script.h"

#include <stdio.h>
#include <string.h>

#include "storage/redis/ask.h"

/* The assembler includes the files as constants.  So there is no generated source, and an editor
 * shows the scripts as Lua. */
#define X(name, file)                                                                              \
    extern const char text_of_##name[], end_of_##name[];                                           \
    __asm__(".section .rodata\n"                                                                   \
            ".global text_of_" #name "\n"                                                          \
            "text_of_" #name ":\n"                                                                 \
            ".incbin \"storage/lua/" file ".lua\"\n"                                               \
            ".global end_of_" #name "\n"                                                           \
            "end_of_" #name ":\n"                                                                  \
            ".byte 0\n"                                                                            \
            ".previous\n");
SCRIPTS(X)
#undef X

static struct slice script_text(enum script script)
{
    switch (script) {
#define X(name, file)                                                                              \
    case name:                                                                                     \
        return (struct slice){text_of_##name, (size_t)(end_of_##name - text_of_##name)};
        SCRIPTS(X)
#undef X
    case N_SCRIPTS:
        break;
    }
    return (struct slice){NULL, 0};
}

/* What take_digest() fills while the scripts are loaded; all is borrowed. */
struct loading {
    struct script_digests *digests;
    char *error;
    size_t error_n;
};

static bool take_digest(void *data, size_t i, const struct reply *reply)
{
    const struct loading *loading = data;
    if (reply->type == REPLY_ERROR) { /* as LOADING, BUSY or NOPERM */
        bool no_password = slice_begins(reply->text, SLICE("NOAUTH"));
        (void)snprintf(loading->error, loading->error_n, "%s: %.*s",
            no_password ? "Redis asks for a password, and its URL has none"
                        : "the scripts could not be loaded",
            (int)reply->text.n, reply->text.p);
    }
    if (reply->type != REPLY_TEXT || reply->text.n != sizeof(loading->digests->sha[i]) - 1) {
        return false;
    }
    memcpy(loading->digests->sha[i], reply->text.p, sizeof(loading->digests->sha[i]));
    return true;
}

bool scripts_load(struct redis *redis, int64_t deadline_ms, struct script_digests *ret, char *error,
    size_t error_n)
{
    struct loading loading = {ret, error, error_n};
    struct buffer b;
    buffer_init(&b);
    for (int i = 0; i < N_SCRIPTS; i++) {
        struct slice text = script_text((enum script)i);
        resp_head(&b, 3);
        resp_text(&b, "SCRIPT");
        resp_text(&b, "LOAD");
        resp_slice(&b, text);
    }
    error[0] = '\0';
    enum redis_status status =
        redis_ask_all(redis, &b, N_SCRIPTS, deadline_ms, take_digest, &loading);
    buffer_release(&b);
    if (status != REDIS_OK_STATUS && error[0] == '\0') {
        (void)snprintf(
            error, error_n, "the scripts could not be loaded: %s", redis_status_text(status));
    }
    return status == REDIS_OK_STATUS;
}

void script_head(struct buffer *b, const struct script_digests *digests, enum script script,
    size_t n_keys, size_t n_args)
{
    resp_head(b, 3 + n_keys + n_args);
    resp_text(b, "EVALSHA");
    resp_word(b, digests->sha[script], 40);
    resp_decimal(b, (int64_t)n_keys);
}
