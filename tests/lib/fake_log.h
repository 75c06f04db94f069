/* fake_log.h - a Redis in memory, as far as logs need it: heads, logs, records of keys, counts.
 *
 * It does what storage/lua/append.lua and heartbeat.lua say, HSETNX, and WAIT.  A chunk is one
 * byte, the number of its request.  Redis's clock is the test's own (stand_in.h) and FAKE_EPOCH_MS.
 *
 * Every state that Redis was in is remembered with its time, so that Redis can go back to it.  A
 * replica has received the states up to one of them, and may take over.
 */
#ifndef TESTS_LIB_FAKE_LOG_H
#define TESTS_LIB_FAKE_LOG_H

#include "storage/schema/log_state.h"
#include "storage/session/session.h"
#include "tests/lib/commands.h"

#define FAKE_EPOCH_MS INT64_C(1795187834000)
#define FAKE_LOGS     8
#define FAKE_ENTRIES  96 /* of a log */
#define FAKE_PLACES   16 /* requests of an entry */
#define FAKE_RECORDS  16
#define FAKE_REQUESTS 200
#define FAKE_PAST     400 /* states that are remembered */

struct fake_entry {
    uint64_t n;
    uint8_t n_requests, requests[FAKE_PLACES];
};

struct fake_stream {
    char id[LOG_ID_TEXT + 1];
    char era[LOG_ID_TEXT + 1];
    uint64_t n, cursor;
    int64_t time_ms;
    struct fake_entry entries[FAKE_ENTRIES];
    size_t n_entries;
};

struct fake_record {
    char key[64], value[80];
    size_t n;
};

struct fake_state {
    struct fake_stream logs[FAKE_LOGS];
    size_t n_logs;
    struct fake_record records[FAKE_RECORDS];
    size_t n_records;
    uint8_t counted[FAKE_REQUESTS]; /* how often */
};

struct fake_log {
    struct fake_state now;
    bool is_full, is_loading;     /* OOM; LOADING */
    bool is_alone;                /* the replica receives nothing */
    bool wrote;                   /* the connection of the command has written something */
    bool has_jumped;              /* an entry was appended though some before it are missing */
    bool appended[FAKE_REQUESTS]; /* ever, also if Redis went back since */
    uint64_t last_appended;       /* number of the last entry of the last append */

    struct fake_state *past; /* FAKE_PAST of them, owned */
    int64_t past_ms[FAKE_PAST];
    size_t received;      /* the state that the replica has */
    size_t n_past, floor; /* floor: what Redis has read from its file, it does not lose again */
};

/* A reply that outlives its command. */
#define FAKE_ITEMS 20
struct fake_reply {
    struct reply reply, items[FAKE_ITEMS];
    char texts[FAKE_ITEMS][80];
};

void fake_log_init(struct fake_log *fake);
void fake_log_release(struct fake_log *fake);

/* The names by which the fake knows the scripts. */
void fake_log_scripts(struct script_digests *ret);

/* Carry out a command.  Aborts where the command is none that the real Redis would take. */
void fake_log_run(struct fake_log *fake, const struct command *command, struct fake_reply *ret);

/* The log @id; NULL: it has no head. */
struct fake_stream *fake_log_find(struct fake_log *fake, struct slice id);

/* Another process appends a request with a key.  False: the key was used. */
bool fake_log_append_foreign(
    struct fake_log *fake, const char *key, struct slice record, uint8_t request);

/* The replica takes over: what it has not received is gone. */
void fake_log_fail_over(struct fake_log *fake);

/* Has the replica received the request? */
bool fake_log_received(const struct fake_log *fake, uint8_t request);

/* Count what is in the logs. */
void fake_log_fold(struct fake_log *fake);

/* Close a log in which everything is counted: head and stream are deleted. */
void fake_log_close(struct fake_log *fake, struct fake_stream *log);

/* Go back to what was at @ms (of the test's clock).  Not @beyond: at most to the floor. */
void fake_log_go_back(struct fake_log *fake, int64_t ms, bool beyond);

/* How often a request is in Redis: in logs, not counted yet, or counted. */
unsigned fake_log_has(const struct fake_log *fake, uint8_t request);

#endif
