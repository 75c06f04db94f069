/* share_fixture.h - a share of one partition and a batch, for tests of shares.
 *
 * There is one fixture in a process, because each test is a process of its own.
 */
#ifndef TESTS_LIB_SHARE_FIXTURE_H
#define TESTS_LIB_SHARE_FIXTURE_H

#include "storage/fold/share.h"
#include "tests/lib/fold_fixture.h"

#define SHARE_LOG_A  "00000000000000aa"
#define SHARE_LOG_B  "00000000000000bb"
#define SHARE_ROWS   7
#define SHARE_NOW_MS (FOLD_NOW_S * 1000)

/* How many fields of the state a share's first question names before the cursors. */
#define SHARE_FIELDS (STATE_FIELDS + 3)

struct share_fixture {
    struct core *core; /* has one partition, whose view is known */
    struct shared_memory shared;
    struct fold_memory memory;
    struct batch batch; /* the rows A1 A1 B7 B7 A3 A3 A3 of the logs A and B */
    struct share *share;
};
extern struct share_fixture fixture;

/* Make the fixture; free it. */
void fixture_setup(void);
void fixture_teardown(void);

/* Say whether the process knows the partition's state, from reading it before. */
void fixture_know_view(bool known);

/* Begin the share of all tasks. */
void fixture_begin(void);

/* Begin the share of the tasks that are of the sites' stripe and of rows [from, to). */
void fixture_begin_stripe(uint32_t from, uint32_t to);

/* Fields of the partition's state in Redis; NULL: the state lacks the field. */
struct share_state_fields {
    const char *cfg, *over, *users, *a, *b, *deleted, *deleting;
    const char *fold; /* NULL: "f" */
};

/* Hand @state to the share, as the reply to its first question. */
bool fixture_take_state(const struct share_state_fields *state);

/* Have the share ask its first questions.  Answer with @state, and as if nobody was seen before. */
void fixture_look(const struct share_state_fields *state);

/* Look, and let the share decide.  @a is the fate of log A; log B counts. */
enum share_look fixture_decide(
    const struct share_state_fields *state, enum log_fate a, int64_t now_ms);

/* The value that the share's commands give @field of the state; "" if they give none. */
void fixture_written(const char *field, char ret[100]);

/* Expect that value to be @value; @what names the case. */
void fixture_expect_written(const char *field, const char *value, const char *what);

/* What the share adds to the figures. */
struct storage_stats fixture_shown(void);

#endif
