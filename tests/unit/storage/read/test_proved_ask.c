/* Which pieces are plain: those that read what stays, behind a piece that brings the clock. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "storage/read/proved_read.h"
#include "storage/time/units.h"
#include "tests/lib/commands.h"

TestSuite(proved_ask, .timeout = 60);

#define NOON_S (20000 * 24 * HOUR_S + 12 * HOUR_S)

static struct core core;
static struct proved_partition known[2];
static struct bucket buckets[] = {
    {LEVEL_MINUTE, NOON_S, NOON_S + 60}, {LEVEL_HOUR, NOON_S - HOUR_S, NOON_S}};
static const struct cover cover = {.buckets = buckets, .n = 2};
static struct session session;
static struct proved_read r;

static void setup(void)
{
    partitions_make(2, &core.partitions);
    r = (struct proved_read){.core = &core,
        .session = &session,
        .zone = zone_utc(),
        .known = known,
        .now_s = NOON_S,
        .latest_s = NOON_S};
    buffer_init(&r.out);
    buffer_init(&r.keys);
    buffer_init(&r.args);
    known[1].view = (struct partition_view){
        .known = true, .ver_held = true, .ver = {2, "v1"}, .state = rollup_state_initial(NOON_S)};
}

static void teardown(void)
{
    free(r.pieces);
    buffer_release(&r.out);
    buffer_release(&r.keys);
    buffer_release(&r.args);
}

/* Ask for bucket @first. */
static enum piece_kind ask(size_t first)
{
    cr_assert(proved_plain(&r, 1, &cover, NULL, first, 1));
    proved_piece_end(&r, 1);
    return r.pieces[r.n_pieces - 1].kind;
}

Test(proved_ask, a_plain_piece_is_behind_one_with_the_clock, .init = setup, .fini = teardown)
{
    cr_expect_eq(ask(0), PIECE_MULTI, "the first one brings the clock");
    cr_expect_eq(ask(0), PIECE_PLAIN);
    cr_expect_eq(ask(1), PIECE_PLAIN, "a closed hour of an open day");
    known[1].view.state.readers_s[LEVEL_HOUR] = NOON_S - HOUR_S;
    cr_expect_eq(ask(1), PIECE_MULTI, "an hour that is not complete");
}

/* A plain piece that did not hold says nothing of the partition's state, so the next attempt asks
 * for the states. */
Test(proved_ask, a_careful_reading_has_no_plain_pieces, .init = setup, .fini = teardown)
{
    r.careful = true;
    cr_expect_eq(ask(0), PIECE_MULTI);
    cr_expect_eq(ask(0), PIECE_MULTI);
}

Test(proved_ask, a_full_redis_is_asked_by_script, .init = setup, .fini = teardown)
{
    r.full = true;
    cr_expect_eq(ask(0), PIECE_SCRIPT);
    cr_expect_eq(ask(0), PIECE_SCRIPT);
}

/* Behind the data of a plain piece comes its proof. */
Test(proved_ask, pieces_bring_their_proof, .init = setup, .fini = teardown)
{
    struct commands commands;
    (void)ask(0);
    (void)ask(0);
    cr_assert(commands_read(&r.out, &commands) && commands.n == 5);
    static const char *const names[] = {"MULTI", "HMGET", "TIME", "EXEC", "HMGET"};
    for (size_t i = 0; i < 5; i++) {
        cr_expect(command_is(&commands.commands[i], 0, names[i]), "command %zu", i);
    }
    cr_expect(command_is(&commands.commands[4], 2, "ver"));
    commands_release(&commands);
}
