/* One lane against a Redis that keeps write.lua's rule (tests/lib/write_model.h), while everything
 * that may go wrong goes wrong: connections are lost, and what was sent on them runs late, in part
 * or never; Redis goes back to an earlier moment; it refuses; scripts break off; rollups move the
 * state; clients give up; time passes.  After every step the lane's order is looked at, and that no
 * part was applied twice; in the end everything must have been answered, and truly.
 */
#include "storage/write/lane.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/dice.h"
#include "tests/lib/write_model.h"

#define PARTS       2500
#define WRITERS     3000
#define STEPS       12000
#define FLUSHES_MAX 4
#define LATE_LINKS  6

/* What happens, per step: weights.  What an execution comes to, besides: per mille. */
struct weather {
    const char *name;
    unsigned rollup, lose, data_loss, give_up, jump;
    unsigned again, refused, broken, failed;
    unsigned seeds;
};

/* What a lane has to show: the weather was worth something only if all of it came up. */
struct tally {
    unsigned applied, late_applied, replans, gaps, final_gaps, dead_copies, resent, lost_answered;
    unsigned refused, refused_in_doubt, stale, broken, failed, given_up, unknown_answered;
};

/* A connection as Redis sees it. */
struct link {
    struct write_command queue[LANE_WINDOW];
    size_t n;
};

/* A reply on its way. */
struct answer {
    size_t part;
    bool ran; /* else refused before the script began */
    enum write_code code;
    enum part_answer refusal;
    unsigned state;
};

struct sim_part {
    struct part part; /* first: see part_number */
    bool must_not_hold, sent_before;
};

struct sim_flush {
    size_t first, n;
    bool answered_elsewhere; /* in the other partitions */
    bool given_up;           /* nobody waits for it any more */
};

struct sim {
    struct dice dice;
    const struct weather *weather;
    struct write_model redis;
    struct lane lane;
    struct sim_part *parts;
    size_t n_parts;
    struct sim_flush flushes[FLUSHES_MAX];
    size_t n_flushes;
    bool connected, behind_is_dead; /* Redis is gone, the client has not seen it yet */
    struct link link, late[LATE_LINKS];
    struct answer answers[LANE_WINDOW];
    size_t n_answers;
    char (*writers)[WRITER_ID_TEXT + 1];
    size_t n_writers;
    unsigned view; /* the state as the client knows it */
    unsigned causes, sends;
    struct tally *tally;
    const char *fault;
};

static char current_run[128]; /* for a crash inside the lane */

static void say_run(int signal_number)
{
    (void)signal_number;
    (void)!write(STDERR_FILENO, current_run, strlen(current_run));
    _exit(3);
}

static void blame(struct sim *sim, const char *fault)
{
    if (sim->fault == NULL) {
        sim->fault = fault;
    }
}

static size_t part_number(const struct sim *sim, const struct part *part)
{
    return (size_t)((const struct sim_part *)(const void *)part - sim->parts);
}

/* ---- what must hold at any time ---- */

static bool in_order(const struct part *a, const struct part *b)
{
    return a->era < b->era || (a->era == b->era && a->seq < b->seq);
}

static void look(struct sim *sim)
{
    const struct lane *lane = &sim->lane;
    const struct part *before = NULL;
    unsigned n_sent = 0;
    if (sim->redis.fault != NULL) {
        blame(sim, sim->redis.fault);
    }
    for (const struct part *p = lane->first; p != NULL; before = p, p = p->next) {
        if (before != NULL && !in_order(before, p)) {
            blame(sim, "the lane is not in order of ids and numbers");
        }
        if (before != NULL &&
            (before->era == p->era) != (strcmp(before->writer_id, p->writer_id) == 0)) {
            blame(sim, "ids and eras do not go together");
        }
        n_sent += p->state == PART_SENT ? 1 : 0;
    }
    if (lane->last != before) {
        blame(sim, "the lane's end is wrong");
    }
    if (n_sent != lane->n_sent || n_sent > LANE_WINDOW) {
        blame(sim, "the number of parts under way is wrong");
    }
    if (lane->era > 1 + sim->causes) {
        blame(sim, "a new id without a cause");
    }
}

static void check_applied(struct sim *sim, const struct sim_part *part, bool applied)
{
    if (applied && part->must_not_hold) {
        blame(sim, "a part that was given up was applied");
    }
}

/* ---- Redis ---- */

static struct write_command take_command(struct link *link)
{
    struct write_command command = link->queue[0];
    link->n--;
    memmove(link->queue, link->queue + 1, link->n * sizeof(link->queue[0]));
    return command;
}

static struct answer run_or_refuse(struct sim *sim, struct write_command command)
{
    const struct weather *w = sim->weather;
    struct answer answer = {.part = command.part};
    bool applied;
    if (dice_chance(&sim->dice, w->again)) {
        answer.refusal = ANSWER_AGAIN;
    } else if (dice_chance(&sim->dice, w->refused)) {
        answer.refusal = dice_chance(&sim->dice, 500) ? ANSWER_REFUSED : ANSWER_OOM;
    } else if (dice_chance(&sim->dice, w->failed)) {
        answer.refusal = ANSWER_FAILED;
    } else {
        answer.ran = true;
        answer.code =
            write_model_run(&sim->redis, command, dice_chance(&sim->dice, w->broken), &applied);
        answer.state = sim->redis.state;
        sim->tally->applied += applied ? 1 : 0;
        check_applied(sim, &sim->parts[command.part], applied);
    }
    return answer;
}

static void execute(struct sim *sim)
{
    if (!sim->behind_is_dead && sim->link.n > 0) {
        sim->answers[sim->n_answers++] = run_or_refuse(sim, take_command(&sim->link));
    }
}

/* A copy that was sent on a connection that is lost: nobody hears the answer. */
static void execute_late(struct sim *sim)
{
    struct link *link = &sim->late[dice_below(&sim->dice, LATE_LINKS)];
    if (link->n > 0) {
        unsigned before = sim->tally->applied;
        (void)run_or_refuse(sim, take_command(link));
        sim->tally->late_applied += sim->tally->applied - before;
    }
}

/* Bytes sent before a data loss die with their connections; replies that left Redis do not. */
static void lose_data(struct sim *sim)
{
    int64_t n = (int64_t)sim->redis.n;
    bool recent = dice_chance(&sim->dice, 800);
    write_model_lose(&sim->redis, (size_t)dice_below(&sim->dice, (recent && n > 6 ? 6 : n) + 1));
    memset(sim->late, 0, sizeof(sim->late));
    sim->link.n = 0;
    sim->behind_is_dead = true;
    sim->causes++;
}

/* ---- the client: as delivery.c does ---- */

static void lose_connection(struct sim *sim)
{
    struct link *late = &sim->late[dice_below(&sim->dice, LATE_LINKS)];
    if (!sim->connected) {
        return;
    }
    if (late->n == 0 && !sim->behind_is_dead && dice_chance(&sim->dice, 800)) {
        *late = sim->link;
        if (late->n > 0 && dice_chance(&sim->dice, 200)) {
            late->n--; /* the rest never left */
        }
    }
    sim->link.n = 0;
    sim->n_answers = 0;
    sim->connected = false;
    sim->behind_is_dead = false;
    lane_lost(&sim->lane);
}

static size_t writer_number(struct sim *sim, const char *id)
{
    for (size_t i = sim->n_writers; i-- > 0;) {
        if (strcmp(sim->writers[i], id) == 0) {
            return i;
        }
    }
    if (sim->n_writers == WRITERS) {
        blame(sim, "new ids without end");
        return 0;
    }
    memcpy(sim->writers[sim->n_writers], id, WRITER_ID_TEXT + 1);
    return sim->n_writers++;
}

static void send_part(struct sim *sim, struct part *part)
{
    struct sim_part *sent = &sim->parts[part_number(sim, part)];
    for (const struct part *p = sim->lane.first; p != part; p = p->next) {
        if (p == NULL || p->state == PART_HELD) {
            blame(sim, "sent out of order");
            break;
        }
    }
    if (part->state != PART_HELD || sim->lane.n_sent >= LANE_WINDOW) {
        blame(sim, "to be sent: not held, or too many under way");
        return;
    }
    if (!sim->behind_is_dead) {
        sim->link.queue[sim->link.n++] = (struct write_command){part_number(sim, part),
            writer_number(sim, part->writer_id), part->seq, sim->view, part->gen_ms};
    }
    sim->tally->resent += sent->sent_before ? 1 : 0;
    sent->sent_before = true;
    sim->sends++;
    lane_sent(&sim->lane, part);
}

static void pump(struct sim *sim)
{
    struct part *part = NULL;
    if (!sim->connected) {
        sim->connected = dice_chance(&sim->dice, 300);
        return;
    }
    while (sim->fault == NULL && dice_chance(&sim->dice, 900) &&
           (part = lane_next(&sim->lane)) != NULL) {
        send_part(sim, part);
    }
}

static enum part_answer read_stale(struct sim *sim, struct part *part)
{
    if (part->in_doubt) {
        sim->tally->stale++;
        sim->causes++;
        return ANSWER_STALE;
    }
    part->gen_ms = sim->redis.now_ms - dice_below(&sim->dice, 5);
    return ANSWER_AGAIN;
}

static enum part_answer read_refusal(
    struct sim *sim, const struct part *part, enum part_answer refusal)
{
    if (refusal == ANSWER_FAILED) {
        sim->tally->failed++;
        sim->causes++;
    } else if (refusal != ANSWER_AGAIN && part->in_doubt) {
        sim->tally->refused_in_doubt++;
    } else if (refusal != ANSWER_AGAIN) {
        sim->tally->refused++;
        sim->causes++;
    }
    return refusal;
}

static enum part_answer read_answer(
    struct sim *sim, const struct answer *answer, struct sim_part *sent)
{
    struct part *part = &sent->part;
    if (!answer->ran) {
        return read_refusal(sim, part, answer->refusal);
    }
    switch (answer->code) {
    case WRITE_OK:
        return ANSWER_OK;
    case WRITE_REPLAN:
        sim->view = answer->state;
        sim->tally->replans++;
        return ANSWER_AGAIN;
    case WRITE_GAP:
        sim->tally->gaps++;
        sim->tally->dead_copies += part->sent_era != part->era ? 1 : 0;
        return ANSWER_GAP;
    case WRITE_STALE:
        return read_stale(sim, part);
    case WRITE_BROKEN:
        sim->tally->broken++;
        return ANSWER_FAILED;
    }
    return ANSWER_AGAIN;
}

static void read_reply(struct sim *sim)
{
    if (sim->n_answers == 0) {
        if (sim->behind_is_dead) {
            lose_connection(sim);
        }
        return;
    }
    struct answer answer = sim->answers[0];
    struct sim_part *sent = &sim->parts[answer.part];
    uint64_t era = sim->lane.era;
    sim->n_answers--;
    memmove(sim->answers, sim->answers + 1, sim->n_answers * sizeof(sim->answers[0]));
    lane_answered(&sim->lane, &sent->part, read_answer(sim, &answer, sent));
    sim->tally->final_gaps += sim->lane.era != era ? 1 : 0;
    if (!answer.ran && answer.refusal == ANSWER_AGAIN && dice_chance(&sim->dice, 300)) {
        lose_connection(sim); /* NOSCRIPT, READONLY */
    }
}

/* ---- flushes ---- */

static void add_flush(struct sim *sim)
{
    size_t n = 1 + (size_t)dice_below(&sim->dice, 3);
    if (sim->n_flushes == FLUSHES_MAX || sim->n_parts + n > PARTS) {
        return;
    }
    sim->flushes[sim->n_flushes++] = (struct sim_flush){.first = sim->n_parts, .n = n};
    int64_t gen_ms = sim->redis.now_ms - dice_below(&sim->dice, 5);
    for (; n > 0; n--) {
        struct part *part = &sim->parts[sim->n_parts++].part;
        part->gen_ms = gen_ms;
        lane_append(&sim->lane, part);
    }
}

static bool is_finished(const struct sim *sim, const struct sim_flush *flush)
{
    bool open = false;
    for (size_t i = 0; i < flush->n; i++) {
        const struct part *part = &sim->parts[flush->first + i].part;
        if (part->state == PART_SENT || (part->state == PART_HELD && part->in_doubt)) {
            return false;
        }
        open = open || part->state == PART_HELD;
    }
    return flush->answered_elsewhere && (!open || flush->given_up);
}

/* Is what the lane says of a part true? */
static void check_verdict(struct sim *sim, struct sim_part *done)
{
    unsigned applied = sim->redis.applied[part_number(sim, &done->part)];
    switch (done->part.state) {
    case PART_OK:
        /* after a data loss that the client has seen, all was sent again */
        if (!sim->behind_is_dead && applied != 1) {
            blame(sim, "a part that was answered OK does not hold");
        }
        sim->tally->lost_answered += applied == 0 ? 1 : 0;
        return;
    case PART_OVER:
        if (done->part.fate == FATE_UNKNOWN) {
            sim->tally->unknown_answered++;
            return;
        }
        break;
    case PART_HELD:
        sim->tally->given_up++;
        sim->causes++;
        break;
    case PART_SENT:
        blame(sim, "a part is done while it is under way");
        break;
    }
    done->must_not_hold = true;
    if (applied != 0) {
        blame(sim, "a part that was refused or given up holds");
    }
}

static void finish_flushes(struct sim *sim)
{
    size_t kept = 0;
    for (size_t f = 0; f < sim->n_flushes; f++) {
        struct sim_flush *flush = &sim->flushes[f];
        if (!is_finished(sim, flush)) {
            sim->flushes[kept++] = *flush;
            continue;
        }
        for (size_t i = 0; i < flush->n; i++) {
            check_verdict(sim, &sim->parts[flush->first + i]);
            lane_remove(&sim->lane, &sim->parts[flush->first + i].part);
        }
    }
    sim->n_flushes = kept;
}

static void hear_from_elsewhere(struct sim *sim)
{
    if (sim->n_flushes > 0) {
        sim->flushes[dice_below(&sim->dice, (int64_t)sim->n_flushes)].answered_elsewhere = true;
    }
}

static void give_up(struct sim *sim)
{
    if (sim->n_flushes > 0) {
        sim->flushes[dice_below(&sim->dice, (int64_t)sim->n_flushes)].given_up = true;
    }
}

static void jump(struct sim *sim)
{
    sim->redis.now_ms += dice_below(&sim->dice, 3 * WRITE_TTL_MS);
    sim->causes++; /* markers may have expired */
}

/* ---- a run ---- */

static void step(struct sim *sim)
{
    const struct weather *w = sim->weather;
    const struct {
        unsigned weight;
        void (*act)(struct sim *sim);
    } acts[] = {{90, add_flush}, {200, pump}, {240, execute}, {60, execute_late}, {240, read_reply},
        {160, hear_from_elsewhere}, {120, finish_flushes}, {w->lose, lose_connection},
        {w->data_loss, lose_data}, {w->give_up, give_up}, {w->jump, jump}};
    const size_t n_acts = sizeof(acts) / sizeof(acts[0]);
    int64_t total = w->rollup;
    for (size_t i = 0; i < n_acts; i++) {
        total += acts[i].weight;
    }
    int64_t at = dice_below(&sim->dice, total);
    sim->redis.now_ms += dice_below(&sim->dice, 3);
    for (size_t i = 0; i < n_acts; i++) {
        if (at < acts[i].weight) {
            acts[i].act(sim);
            return;
        }
        at -= acts[i].weight;
    }
    write_model_move_state(&sim->redis);
}

/* No more faults: what is left must end, in a number of sends that its parts bound. */
static void come_to_rest(struct sim *sim)
{
    static const struct weather fair = {.name = "fair"};
    size_t left = 0;
    for (size_t f = 0; f < sim->n_flushes; f++) {
        left += sim->flushes[f].n;
    }
    sim->weather = &fair;
    sim->sends = 0;
    for (unsigned turns = 0; sim->n_flushes > 0 && sim->fault == NULL; turns++) {
        hear_from_elsewhere(sim);
        pump(sim);
        if (dice_chance(&sim->dice, 500)) {
            execute(sim);
        }
        if (dice_chance(&sim->dice, 200)) {
            execute_late(sim);
        }
        if (dice_chance(&sim->dice, 500)) {
            read_reply(sim);
        }
        finish_flushes(sim);
        look(sim);
        if (sim->sends > 4 * left + 8 || turns > 10000) {
            blame(sim, "it does not come to an end");
        }
    }
    if (sim->lane.first != NULL || sim->lane.n_sent != 0) {
        blame(sim, "parts are left in the lane");
    }
    for (unsigned i = 0; i < 64; i++) { /* the last late copies */
        execute_late(sim);
        look(sim);
    }
}

/* What is wrong with a run, or NULL. */
static const char *run(const struct weather *weather, uint64_t seed, struct tally *tally)
{
    struct sim sim = {.dice = dice_make(seed),
        .weather = weather,
        .parts = calloc(PARTS, sizeof(*sim.parts)),
        .writers = calloc(WRITERS, sizeof(*sim.writers)),
        .tally = tally};
    cr_assert(
        write_model_init(&sim.redis, PARTS, WRITERS) && sim.parts != NULL && sim.writers != NULL);
    snprintf(current_run, sizeof(current_run), "%s, TALLYD_TEST_SEED=%" PRIu64 ": aborted\n",
        weather->name, seed);
    lane_init(&sim.lane);
    for (unsigned i = 0; i < STEPS && sim.fault == NULL; i++) {
        step(&sim);
        look(&sim);
    }
    if (sim.fault == NULL) {
        come_to_rest(&sim);
    }
    free(sim.parts);
    free(sim.writers);
    write_model_release(&sim.redis);
    return sim.fault;
}

static struct tally simulate(const struct weather *weather)
{
    uint64_t seed = dice_seed();
    struct tally tally = {0};
    signal(SIGABRT, say_run);
    for (unsigned i = 0; i < weather->seeds; i++) {
        const char *fault = run(weather, seed + i, &tally);
        cr_assert(
            fault == NULL, "%s, TALLYD_TEST_SEED=%" PRIu64 ": %s", weather->name, seed + i, fault);
    }
    cr_expect_gt(
        tally.applied, 100 * weather->seeds, "%s: %u applied", weather->name, tally.applied);
    return tally;
}

/* ---- the weathers ---- */

/* Only lost connections and rollups: the lane keeps its one id (simulate: no new id without a
 * cause), and everything is answered OK. */
Test(lane, simulation_lost_connections)
{
    struct tally tally = simulate(
        &(struct weather){.name = "lost connections", .rollup = 10, .lose = 25, .seeds = 200});

    cr_expect_gt(tally.late_applied, 100);
    cr_expect_gt(tally.replans, 100);
    cr_expect_gt(tally.gaps, 100);
    cr_expect_gt(tally.resent, 100);
    cr_expect_eq(tally.final_gaps + tally.unknown_answered + tally.refused, 0);
}

Test(lane, simulation_refusals)
{
    struct tally tally = simulate(&(struct weather){.name = "refusals",
        .rollup = 10,
        .lose = 15,
        .give_up = 10,
        .again = 30,
        .refused = 30,
        .seeds = 200});

    cr_expect_gt(tally.refused, 100);
    cr_expect_gt(tally.refused_in_doubt, 100);
    cr_expect_gt(tally.final_gaps, 100);
    cr_expect_gt(tally.dead_copies, 100);
    cr_expect_gt(tally.given_up, 100);
    cr_expect_eq(tally.unknown_answered, 0);
}

Test(lane, simulation_data_loss)
{
    struct tally tally = simulate(&(struct weather){
        .name = "data loss", .rollup = 10, .lose = 15, .data_loss = 8, .seeds = 200});

    cr_expect_gt(tally.late_applied, 100);
    cr_expect_gt(tally.final_gaps, 100);
    cr_expect_gt(tally.lost_answered, 20);
    cr_expect_eq(tally.unknown_answered + tally.refused, 0);
}

Test(lane, simulation_time)
{
    struct tally tally = simulate(
        &(struct weather){.name = "time", .rollup = 10, .lose = 20, .jump = 8, .seeds = 200});

    cr_expect_gt(tally.stale, 100);
    cr_expect_gt(tally.final_gaps, 100);
    cr_expect_eq(tally.refused, 0);
}

Test(lane, simulation_storm)
{
    struct tally tally = simulate(&(struct weather){.name = "storm",
        .rollup = 15,
        .lose = 25,
        .data_loss = 5,
        .give_up = 10,
        .jump = 3,
        .again = 30,
        .refused = 20,
        .broken = 5,
        .seeds = 600});

    cr_expect_gt(tally.late_applied, 100);
    cr_expect_gt(tally.final_gaps, 100);
    cr_expect_gt(tally.dead_copies, 100);
    cr_expect_gt(tally.lost_answered, 20);
    cr_expect_gt(tally.refused, 100);
    cr_expect_gt(tally.stale, 100);
    cr_expect_gt(tally.broken, 100);
    cr_expect_gt(tally.given_up, 100);
}

/* Scripts that fail with nothing done: a part in doubt is not given up for it, as its lost copy may
 * still run, and then those of its successors. */
Test(lane, simulation_failures)
{
    struct tally tally = simulate(&(struct weather){
        .name = "failures", .rollup = 2, .lose = 25, .broken = 5, .failed = 50, .seeds = 600});

    cr_expect_gt(tally.failed, 100);
}
