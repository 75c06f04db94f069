#include "storage/rollup/step.h"

#include "storage/redis/resp.h"

enum pass_result pass_ask(struct pass *pass, const struct reply **ret)
{
    return leadership_ask(
        pass->leadership, pass->core, pass->session, pass->partition, &pass->out, ret);
}

enum pass_result pass_script(
    struct pass *pass, enum script script, size_t n_args, const struct reply **ret)
{
    struct buffer *out = &pass->out;
    script_head(out, &pass->session->scripts, script, 2 + pass->n_keys, 1 + n_args);
    key_put(out, pass->tag, "state");
    key_put(out, pass->tag, "pass");
    buffer_append(out, pass->keys.p, pass->keys.n);
    resp_text(out, pass->core->cfg);
    buffer_append(out, pass->args.p, pass->args.n);
    out->failed = out->failed || pass->keys.failed || pass->args.failed;
    buffer_clear(&pass->keys, 256 * 1024);
    buffer_clear(&pass->args, 256 * 1024);
    pass->n_keys = 0;
    return pass_ask(pass, ret);
}

enum pass_result pass_run(struct pass *pass, enum script script, size_t n_args, int64_t *ret)
{
    const struct reply *reply = NULL;
    enum pass_result result = pass_script(pass, script, n_args, &reply);
    if (result == PASS_DONE) {
        *ret = reply_integer(reply, 0);
        result = *ret >= 1 ? PASS_DONE : PASS_VOID;
    }
    return result;
}

void pass_put_key(struct pass *pass, const char *name)
{
    key_put(&pass->keys, pass->tag, name);
    pass->n_keys++;
}

void pass_put_bucket_key(
    struct pass *pass, enum key_kind kind, uint32_t site, struct bucket bucket, struct slice page)
{
    struct key key;
    resp_slice(
        &pass->keys, key_bucket(&key, pass->tag, kind, pass->list.sites[site].name, bucket, page));
    pass->n_keys++;
}

void pass_put_state(struct pass *pass, const struct rollup_state *state)
{
    char text[ROLLUP_STATE_TEXT];
    resp_word(&pass->args, text, rollup_state_print(state, text));
}
