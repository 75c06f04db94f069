/* count.h - answer one question about a window from a connection.
 *
 * Layer: storage.  One owner (a reader thread); scratch memory is kept between questions.
 * ARCHITECTURE.md, "What may be read": plan from a remembered state of each partition, of any age;
 * read `rolled`, the
 * keys and TIME in one MULTI per partition; accept if, by the state and TIME of that reply, every
 * bucket used is legal; else plan again from that state.  One round trip as a rule, two after a
 * rollup.
 *
 * A long list of keys is cut into several MULTIs, so that none holds Redis for long; each proves
 * its own buckets, and every event acknowledged before the question is in all of them.
 */
#ifndef STORAGE_COUNT_COUNT_H
#define STORAGE_COUNT_COUNT_H

#include "storage/core/core.h"
#include "storage/core/session.h"

struct counter;

/* NULL: no memory. */
struct counter *counter_new(struct core *core);
void counter_free(struct counter *counter);

/* Answer @job (STORAGE_COUNT).  *ret_lost is set if the connection must be closed: the question,
 * which changes nothing, may then be asked again on another one. */
enum storage_err counter_run(
    struct counter *counter, struct session *session, struct storage_job *job, bool *ret_lost);

#endif
