#include "storage/base/clock.h"
#include "storage/redis/resp.h"
#include "storage/rollup/list_make.h"
#include "storage/rollup/step.h"

enum pass_result pass_ask(struct pass *pass, const struct reply **ret)
{
    return leadership_ask(
        pass->leadership, pass->core, pass->session, pass->partition, &pass->out, ret);
}

enum pass_result pass_run(
    struct pass *pass, enum script script, size_t n_keys, size_t n_args, int64_t *ret)
{
    const struct reply *reply = NULL;
    script_head(&pass->out, &pass->session->scripts, script, n_keys, n_args);
    buffer_append(&pass->out, pass->keys.p, pass->keys.n);
    buffer_append(&pass->out, pass->args.p, pass->args.n);
    pass->out.failed = pass->out.failed || pass->keys.failed || pass->args.failed;
    buffer_clear(&pass->keys, 256 * 1024);
    buffer_clear(&pass->args, 256 * 1024);
    enum pass_result result = pass_ask(pass, &reply);
    if (result == PASS_DONE) {
        *ret = reply_integer(reply, 0);
        result = *ret >= 1 ? PASS_DONE : PASS_VOID;
    }
    return result;
}

void pass_put_key(struct pass *pass, const char *name)
{
    struct key key;
    key_fixed(&key, pass->tag, name, SLICE(""));
    resp_word(&pass->keys, key.p, key.n);
}

void pass_put_bucket_key(
    struct pass *pass, enum key_kind kind, uint32_t site, struct bucket bucket, struct slice page)
{
    struct key key;
    key_bucket(&key, pass->tag, kind, pass->list.sites[site].name, bucket, page);
    resp_word(&pass->keys, key.p, key.n);
}

void pass_put_state(struct pass *pass, const struct rollup_state *state)
{
    char text[ROLLUP_STATE_TEXT];
    resp_word(&pass->args, text, rollup_state_print(state, text));
}

enum pass_result pass_list(struct pass *pass, bool sites_only, bool overdue)
{
    struct rollup_scope scope = {.core = pass->core,
        .session = pass->session,
        .partition = pass->partition,
        .tag = pass->tag,
        .leadership = pass->leadership,
        .pass = pass->id,
        .cur = pass->cur,
        .level = pass->level,
        .end_s = pass->end_s,
        .overdue = overdue,
        .retention = overdue ? &pass->view.retention : NULL,
        .closed_ms = pass->closed_ms};
    return rollup_list_make(&scope, sites_only, &pass->list);
}
