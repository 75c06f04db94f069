#include "storage/merge/merge_first.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/known/known_users.h"
#include "storage/redis/resp.h"
#include "storage/schema/first_note.h"
#include "storage/schema/key.h"

/* A bit that somebody asks about. */
struct asked_bit {
    const struct row *row; /* a row that asks about the bit; it has the site and the user */
    struct slice action;
    int64_t day;
    uint32_t index;
    bool is_set;
};

/* Actions of a row that were first: actions[from, from + n). */
struct first_row {
    const struct row *row;
    uint32_t from, n;
};

struct merge_first {
    struct asked_bit *bits;
    uint32_t *questions; /* numbers of the bits that are asked for in Redis */
    struct first_row *rows;
    struct slice *actions;
    size_t n_bits, n_questions, n_rows, n_actions;
    size_t bits_capacity, questions_capacity, rows_capacity, actions_capacity;
    struct index bit_index;
};

struct merge_first *merge_first_new(void)
{
    return calloc(1, sizeof(struct merge_first));
}

void merge_first_free(struct merge_first *merge)
{
    if (merge != NULL) {
        free(merge->bits);
        free(merge->questions);
        free(merge->rows);
        free(merge->actions);
        index_release(&merge->bit_index);
        free(merge);
    }
}

void merge_first_clear(struct merge_first *merge)
{
    ARRAY_CLEAR(merge, bits);
    ARRAY_CLEAR(merge, questions);
    ARRAY_CLEAR(merge, rows);
    ARRAY_CLEAR(merge, actions);
    index_clear(&merge->bit_index);
}

/* ---- bits ---- */

struct bit_asked {
    const struct merge_first *merge;
    const struct row *row;
    struct slice action;
    int64_t day;
};

static bool same_bit(const void *context, uint32_t item)
{
    const struct bit_asked *asked = context;
    const struct asked_bit *bit = &asked->merge->bits[item];
    /* The user's hash has the site in it. */
    return bit->day == asked->day &&
           memcmp(&bit->row->user_id, &asked->row->user_id, sizeof(bit->row->user_id)) == 0 &&
           slice_equal(bit->action, asked->action);
}

static uint64_t bit_hash(const struct bit_asked *asked)
{
    return page_hash(SLICE(""), asked->action) ^ visitor_id_hash(&asked->row->user_id) ^
           (uint64_t)asked->day * UINT64_C(0x9e3779b97f4a7c15);
}

/* The slot that the bit has, or would get.  There is at least one bit. */
static struct index_slot *bit_slot(struct merge_first *merge, const struct bit_asked *asked)
{
    return index_find(&merge->bit_index, bit_hash(asked), same_bit, asked);
}

static bool add_bit(struct merge_first *merge, const struct bit_asked *asked, uint32_t index)
{
    bool is_new;
    if (!ARRAY_RESERVE(merge, questions)) {
        return false;
    }
    uint32_t item = INDEX_ADD(merge, bit_index, bits, bit_hash(asked), same_bit, asked, &is_new);
    if (!is_new) {
        return item != INDEX_NONE;
    }
    merge->bits[item] = (struct asked_bit){
        .row = asked->row, .action = asked->action, .day = asked->day, .index = index};
    if (index != USER_INDEX_NONE) {
        merge->questions[merge->n_questions++] = item;
    }
    return true;
}

bool merge_first_ask(struct merge_first *merge, const struct row *row, int64_t day, uint32_t index)
{
    for (unsigned i = 0; i < row->n_actions; i++) {
        struct bit_asked asked = {merge, row, row->actions[i], day};
        if (!slice_equal(row->actions[i], ACTION_ACTIVE) && !add_bit(merge, &asked, index)) {
            return false;
        }
    }
    return true;
}

size_t merge_first_write_questions(
    const struct merge_first *merge, const char *tag, struct buffer *out)
{
    for (size_t i = 0; i < merge->n_questions; i++) {
        const struct asked_bit *bit = &merge->bits[merge->questions[i]];
        struct key key;
        resp_begin(
            out, "GETBIT", key_activity(&key, tag, bit->row->site->name, bit->action, bit->day), 1);
        resp_decimal(out, bit->index);
    }
    return merge->n_questions;
}

bool merge_first_take(struct merge_first *merge, size_t i, const struct reply *reply)
{
    if (i >= merge->n_questions || reply->type != REPLY_INTEGER) {
        return false;
    }
    merge->bits[merge->questions[i]].is_set = reply->integer != 0;
    return true;
}

/* ---- rows ---- */

/* Add an action that was first to the last row in the list.  False: out of memory. */
static bool add_action(struct merge_first *merge, struct slice action)
{
    if (!ARRAY_RESERVE(merge, actions)) {
        return false;
    }
    merge->actions[merge->n_actions++] = action;
    merge->rows[merge->n_rows].n++;
    return true;
}

bool merge_first_add(struct merge_first *merge, const struct row *row,
    const struct activity_day *day, int64_t now_ms)
{
    if (merge->n_bits == 0 || (day->expire_ms != 0 && now_ms >= day->expire_ms)) {
        return true;
    }
    if (!ARRAY_RESERVE(merge, rows)) {
        return false;
    }
    merge->rows[merge->n_rows] = (struct first_row){row, (uint32_t)merge->n_actions, 0};
    for (unsigned i = 0; i < row->n_actions; i++) {
        struct bit_asked asked = {merge, row, row->actions[i], day->day};
        uint32_t item = bit_slot(merge, &asked)->item;
        if (item == INDEX_NONE || merge->bits[item].is_set) {
            continue;
        }
        merge->bits[item].is_set = true;
        if (row->ticket != NULL && !add_action(merge, row->actions[i])) {
            return false;
        }
    }
    merge->n_rows += merge->rows[merge->n_rows].n > 0;
    return true;
}

/* ---- commands ---- */

static void write_lines(const struct merge_first *merge, size_t from, size_t to, struct buffer *out)
{
    struct buffer lines;
    buffer_init(&lines);
    for (size_t i = from; i < to; i++) {
        const struct first_row *first = &merge->rows[i];
        first_note_put(&lines, first->row->index, merge->actions + first->from, first->n);
    }
    resp_word(out, lines.p, lines.n);
    out->failed = out->failed || lines.failed;
    buffer_release(&lines);
}

/* The end of the rows of the request that begins at @from: they stand side by side. */
static size_t end_of_request(const struct merge_first *merge, size_t from)
{
    size_t to = from + 1;
    while (to < merge->n_rows && memcmp(merge->rows[to].row->ticket, merge->rows[from].row->ticket,
                                     sizeof(struct key_digest)) == 0) {
        to++;
    }
    return to;
}

size_t merge_first_write(const struct merge_first *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_rows; n += 2) {
        size_t to = end_of_request(merge, i);
        struct key_digest ticket;
        struct key named;
        memcpy(ticket.bytes, merge->rows[i].row->ticket, sizeof(ticket.bytes));
        struct slice key = key_first(&named, tag, &ticket);
        resp_begin(out, "APPEND", key, 1);
        write_lines(merge, i, to, out);
        resp_begin(out, "PEXPIRE", key, 1);
        resp_decimal(out, merge->rows[i].row->has_key ? FIRST_NOTE_KEYED_MS : FIRST_NOTE_PLAIN_MS);
        i = to;
    }
    return n;
}

size_t merge_first_count(const struct merge_first *merge)
{
    return merge->n_actions;
}
