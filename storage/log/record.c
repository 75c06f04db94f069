#include "storage/log/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/redis/resp.h"

#define ATTEMPT_N (LOG_ID_TEXT + 16 + 4)
#define HEAD_N    (ATTEMPT_N + 16) /* before the answer */

static void print_attempt(const struct log_entry *entry, size_t i, char ret[ATTEMPT_N + 1])
{
    (void)snprintf(ret, ATTEMPT_N + 1, "%s%016llx%04x", entry->id, (unsigned long long)entry->n,
        (unsigned)i & 0xffff);
}

void record_put(struct buffer *out, const struct log_entry *entry, size_t i)
{
    const struct entry_keyed *keyed = &entry->keyed[i];
    struct buffer record;
    char attempt[ATTEMPT_N + 1];
    buffer_init(&record);
    print_attempt(entry, i, attempt);
    buffer_append(&record, attempt, ATTEMPT_N);
    buffer_append(&record, keyed->body.bytes, sizeof(keyed->body.bytes));
    buffer_append(&record, keyed->answer.p, keyed->answer.n);
    resp_word(out, record.p, record.n);
    out->failed = out->failed || record.failed;
    buffer_release(&record);
}

enum key_outcome record_look(struct slice record, const struct key_digest *body)
{
    if (record.n < HEAD_N) {
        return KEY_FREE;
    }
    return memcmp(record.p + ATTEMPT_N, body->bytes, sizeof(body->bytes)) == 0 ? KEY_REPLAY
                                                                               : KEY_OTHER_BODY;
}

enum key_outcome record_judge(struct slice record, const struct log_entry *entry, size_t i)
{
    char attempt[ATTEMPT_N + 1];
    print_attempt(entry, i, attempt);
    if (record.n < HEAD_N || memcmp(record.p, attempt, ATTEMPT_N) == 0) {
        return KEY_MINE;
    }
    return record_look(record, &entry->keyed[i].body);
}

bool record_tell(struct slice record, enum key_outcome outcome, struct request_key *ret)
{
    request_key_release(ret); /* an earlier answer may have told something else */
    ret->outcome = outcome;
    if (outcome != KEY_REPLAY) {
        return true;
    }
    ret->replay_n = record.n - HEAD_N;
    ret->replay = malloc(ret->replay_n + 1);
    if (ret->replay == NULL) {
        return false;
    }
    memcpy(ret->replay, record.p + HEAD_N, ret->replay_n);
    ret->replay[ret->replay_n] = '\0';
    return true;
}
