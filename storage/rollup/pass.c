#include "storage/rollup/pass.h"

#include <stdio.h>
#include <string.h>

#include "storage/base/random_id.h"
#include "storage/redis/resp.h"
#include "storage/rollup/step.h"

/* ---- what is due ---- */

static const char letters[LEVELS + 1] = "mhdM";

static int64_t next_end_s(
    const struct site_zones *zones, const struct rollup_state *state, enum level level)
{
    return site_zones_next_end(zones, level, state->readers_s[level]);
}

int64_t rollup_due_s(const struct site_zones *zones, const struct rollup_state *state)
{
    for (int level = LEVEL_MONTH; level > LEVEL_HOUR; level--) {
        if (next_end_s(zones, state, (enum level)level) <= state->readers_s[level - 1]) {
            return 0; /* all parts of that bucket are complete */
        }
    }
    return next_end_s(zones, state, LEVEL_HOUR) + PASS_GRACE_S;
}

bool pass_is_due(const struct pass *pass, enum level level, int64_t end_s, int64_t now_s)
{
    return level == LEVEL_HOUR ? end_s + pass->leadership->grace_s <= now_s
                               : end_s <= pass->view.state.readers_s[level - 1];
}

static bool find_due(struct pass *pass, int64_t now_s)
{
    const struct rollup_state *state = &pass->view.state;
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        int64_t end_s = next_end_s(&pass->core->sites, state, (enum level)level);
        if (pass_is_due(pass, (enum level)level, end_s, now_s)) {
            pass->level = (enum level)level;
            pass->end_s = end_s;
            return true;
        }
    }
    return false;
}

/* ---- steps ---- */

void pass_new_id(struct pass *pass)
{
    pass->id[0] = letters[pass->level];
    random_id(pass->id + 1, sizeof(pass->id) - 1);
}

static enum pass_result pass_mark(struct pass *pass)
{
    struct rollup_state closed = pass->view.state;
    int64_t done = 0;
    closed.writers_s[pass->level] = pass->end_s;
    pass_new_id(pass);
    pass_put_state(pass, &pass->view.state);
    pass_put_state(pass, &closed);
    resp_text(&pass->args, pass->id);
    resp_decimal(&pass->args, pass->leadership->fencing_token);
    resp_decimal(&pass->args, pass->end_s);
    enum pass_result result = pass_run(pass, SCRIPT_MARK, 5, &done);
    pass->view.state = closed;
    memcpy(pass->cur, "m0", 3);
    return result;
}

/* Take over the pass @theirs that another process left open.  Before its advance its buckets are
 * closed for writers alone; behind the advance they are the last ones closed for readers.  Either
 * way they end where the level is closed for writers. */
static enum pass_result take_over(struct pass *pass, const char theirs[static PASS_ID])
{
    const struct rollup_state *state = &pass->view.state;
    const char *letter = strchr(letters + LEVEL_HOUR, theirs[0]);
    int64_t done = 0;
    if (letter == NULL) {
        return PASS_FAILED;
    }
    pass->level = (enum level)(letter - letters);
    pass->end_s = state->writers_s[pass->level];
    bool closing = pass->end_s > state->readers_s[pass->level];
    memcpy(pass->cur, closing ? "m0" : "x0", 3);
    pass_new_id(pass);
    pass_put_state(pass, state);
    resp_text(&pass->args, theirs);
    resp_text(&pass->args, pass->id);
    resp_decimal(&pass->args, pass->leadership->fencing_token);
    resp_text(&pass->args, pass->cur);
    return pass_run(pass, SCRIPT_TAKEOVER, 5, &done);
}

/* ---- advance ---- */

void pass_closed(struct pass *pass, const struct rollup_state *state, const char *ver)
{
    pass->view.state = *state;
    pass->view.ver.n = (uint8_t)strlen(ver); /* state and `ver` of a view are of one moment */
    memcpy(pass->view.ver.text, ver, pass->view.ver.n);
    core_set_view(pass->core, pass->partition, &pass->view);
}

static enum pass_result pass_advance(struct pass *pass)
{
    struct rollup_state done_state = pass->view.state;
    char ver[PASS_ID + 4];
    int64_t done = 0;
    done_state.readers_s[pass->level] = pass->end_s;
    (void)snprintf(ver, sizeof(ver), "%s.a", pass->id);
    resp_text(&pass->args, pass->id);
    resp_text(&pass->args, pass->cur);
    resp_decimal(&pass->args, pass->leadership->fencing_token);
    pass_put_state(pass, &pass->view.state);
    pass_put_state(pass, &done_state);
    resp_text(&pass->args, ver);
    pass->closed_ms = redis_clock_ms(&pass->core->clock);
    enum pass_result result = pass_run(pass, SCRIPT_ADVANCE, 6, &done);
    if (result == PASS_DONE) {
        pass_closed(pass, &done_state, ver);
        memcpy(pass->cur, "x0", 3);
    }
    return result;
}

/* ---- a pass ---- */

/* Read the partition's state into pass->view. */
static enum pass_result read_state(struct pass *pass, int64_t *ret_now_s)
{
    const struct reply *reply = NULL;
    resp_command(&pass->out, "TIME", NULL);
    enum pass_result result = pass_ask(pass, &reply);
    if (result != PASS_DONE) {
        return result;
    }
    core_time_of(pass->core, pass->partition, reply_time_us(reply));
    *ret_now_s = reply_time_us(reply) / 1000000;
    partition_state_ask(&pass->out, pass->tag, 0);
    result = pass_ask(pass, &reply);
    if (result != PASS_DONE) {
        return result;
    }
    if (!core_parse_state(pass->core, reply, &pass->view)) {
        return PASS_FAILED;
    }
    core_set_view(pass->core, pass->partition, &pass->view);
    return PASS_DONE;
}

/* Read which pass is open: its id is copied to @open (PASS_ID bytes), "" if there is none.  State
 * and id need not be of the same moment, because the script that comes next compares both. */
static enum pass_result read_open(struct pass *pass, char *open)
{
    const struct reply *reply = NULL;
    key_command(&pass->out, "HMGET", pass->tag, "pass", 2);
    resp_text(&pass->out, "pass");
    resp_text(&pass->out, "ftok");
    enum pass_result result = pass_ask(pass, &reply);
    if (result != PASS_DONE || reply->n != 2) {
        return result == PASS_DONE ? PASS_FAILED : result;
    }
    const struct reply *theirs = &reply->items[0];
    size_t n = theirs->type == REPLY_TEXT && theirs->text.n == PASS_ID - 1 ? theirs->text.n : 0;
    memcpy(open, n == 0 ? "" : theirs->text.p, n);
    open[n] = '\0';
    int64_t seen = reply_integer(&reply->items[1], 0);
    if (seen > pass->leadership->fencing_token) {
        pass->leadership->fenced(pass->leadership->data, seen);
        return PASS_FENCED;
    }
    return PASS_DONE;
}

static enum pass_result pass_work(struct pass *pass)
{
    char open[PASS_ID];
    int64_t now_s = 0;
    enum pass_result result = read_state(pass, &now_s);
    result = result == PASS_DONE ? read_open(pass, open) : result;
    if (result != PASS_DONE || !pass->view.known) {
        return result == PASS_DONE ? PASS_NOTHING : result;
    }
    if (open[0] != '\0') {
        pass->again = true;
        result = take_over(pass, open);
    } else if (find_due(pass, now_s)) {
        result = pass_skip(pass, now_s);
        if (result != PASS_VOID) {
            return result;
        }
        result = pass_mark(pass);
    } else {
        return PASS_NOTHING;
    }
    if (result == PASS_DONE && !pass_is_closed(pass)) {
        result = pass_list(pass, false);
        result = result == PASS_DONE ? pass_merge(pass) : result;
        result = result == PASS_DONE ? pass_advance(pass) : result;
    }
    return result == PASS_DONE ? pass_expire(pass) : result;
}

enum pass_result rollup_pass(struct core *core, struct session *session, unsigned partition,
    const struct leadership *leadership)
{
    struct pass pass = {.core = core,
        .session = session,
        .partition = partition,
        .tag = core->partitions.tag[partition],
        .leadership = leadership};
    enum pass_result result = pass_work(&pass);
    if (result == PASS_DONE) {
        atomic_fetch_add(&core->stats.rollup_passes, 1);
    } else if (result != PASS_NOTHING) {
        atomic_fetch_add(&core->stats.rollup_failures, 1);
    }
    rollup_list_release(&pass.list);
    buffer_release(&pass.keys);
    buffer_release(&pass.args);
    buffer_release(&pass.out);
    return result;
}
