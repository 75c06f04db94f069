#include "service/client/import_send.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "service/client/import_cut.h"

/* How long a request is repeated to a server that is busy. */
#define PATIENCE_MS 60000

/* How many keys the same events may have, one after the other. */
#define ATTEMPTS 8

/* What is posted under a key of event @first. */
struct offer {
    size_t first, largest; /* at most `largest` events from event `first` on */
    unsigned attempt;
    bool is_mark;
};

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
        continue;
    }
}

/* May it help to send the same request again?  With its key that is always safe. */
static bool may_try_again(const struct import_sender *sender, enum import_upload_result result)
{
    switch (result) {
    case IMPORT_UPLOAD_UNREACHABLE:
        /* A server that has answered before may be restarting; one that never has may not exist. */
        return sender->answered;
    case IMPORT_UPLOAD_BUSY:
    case IMPORT_UPLOAD_IN_DOUBT:
        return true;
    case IMPORT_UPLOAD_ANSWERED:
    case IMPORT_UPLOAD_TOO_LARGE:
    case IMPORT_UPLOAD_KEY_USED:
    case IMPORT_UPLOAD_REFUSED:
        break;
    }
    return false;
}

/* Post @body, @count events, with @key, and again while that may help. */
static enum import_upload_result post_patiently(struct import_sender *sender, const char *key,
    struct slice body, size_t count, struct import_upload_answer *ret)
{
    int64_t waited_ms = 0, next_ms = IMPORT_UPLOAD_WAIT_MIN_MS;
    bool doubted = false;
    for (;;) {
        enum import_upload_result result =
            import_upload_post(sender->upload, key, body, count, ret);
        if (result == IMPORT_UPLOAD_ANSWERED && doubted) {
            ret->replayed = false; /* this import had the events counted, without an answer */
        }
        if (result == IMPORT_UPLOAD_KEY_USED) {
            return result; /* another body has the key: this one was never counted */
        }
        if (!may_try_again(sender, result) || waited_ms >= PATIENCE_MS) {
            return doubted && result != IMPORT_UPLOAD_ANSWERED ? IMPORT_UPLOAD_IN_DOUBT : result;
        }
        sender->answered = true;
        doubted = doubted || result == IMPORT_UPLOAD_IN_DOUBT;
        int64_t wait_ms = ret->retry_after_s > 0 && ret->retry_after_s <= PATIENCE_MS / 1000
                              ? ret->retry_after_s * 1000
                              : next_ms;
        if (wait_ms > PATIENCE_MS - waited_ms) {
            wait_ms = PATIENCE_MS - waited_ms;
        }
        if (!sender->waited) {
            import_report_say(sender->report, "%s; waiting, and trying again", ret->detail);
        }
        sender->waited = true;
        sleep_ms(wait_ms);
        waited_ms += wait_ms;
        next_ms = next_ms * 2 < IMPORT_UPLOAD_WAIT_MAX_MS ? next_ms * 2 : IMPORT_UPLOAD_WAIT_MAX_MS;
    }
}

/* Post @n events, or the mark of @n events: a list without events, and a blank for each. */
static enum import_upload_result post(struct import_sender *sender, const struct offer *what,
    size_t n, struct import_upload_answer *ret)
{
    char key[IMPORT_KEY_TEXT];
    import_key(&sender->chains[what->first], import_batch_line(sender->batch, what->first),
        import_batch_body(sender->batch, what->first, 1), what->attempt, key);
    if (!what->is_mark) {
        struct slice body = import_batch_body(sender->batch, what->first, n);
        return post_patiently(sender, key, body, n, ret);
    }
    char blank[IMPORT_BATCH_EVENTS + 2] = "[]";
    memset(blank + 2, ' ', n);
    return post_patiently(sender, key, (struct slice){blank, n + 2}, 0, ret);
}

/* Post the number of events that is new under the key, or that was counted under the key before.
 * The largest number comes first.  Numbers that the server no longer takes come last, because one
 * of them may have been counted.  *ret_n is the number.  KEY_USED: no number fitted. */
static enum import_upload_result offer(struct import_sender *sender, const struct offer *what,
    size_t *ret_n, struct import_upload_answer *ret)
{
    size_t max = sender->request_max;
    bool used = false;
    for (int too_large = 0; too_large <= 1; too_large++) {
        for (size_t n = what->largest; n > 0; n = import_cut_smaller(n)) {
            if ((n > max) != (too_large == 1)) {
                continue;
            }
            enum import_upload_result result = post(sender, what, n, ret);
            *ret_n = n;
            if (result == IMPORT_UPLOAD_TOO_LARGE && n > 1) {
                if (n <= sender->request_max) {
                    sender->request_max = import_cut_smaller(n);
                }
            } else if (result == IMPORT_UPLOAD_KEY_USED) {
                used = true;
            } else {
                return result;
            }
        }
    }
    return used ? IMPORT_UPLOAD_KEY_USED : IMPORT_UPLOAD_TOO_LARGE;
}

/* Offer events under one key, or under the next one if the key is used for another file. */
static enum import_upload_result offer_any(struct import_sender *sender, struct offer *what,
    size_t *ret_n, struct import_upload_answer *ret)
{
    enum import_upload_result result = IMPORT_UPLOAD_KEY_USED;
    for (unsigned i = 0; i < ATTEMPTS && result == IMPORT_UPLOAD_KEY_USED; i++) {
        what->attempt = 2 * i;
        what->is_mark = false;
        result = offer(sender, what, ret_n, ret);
        if (result != IMPORT_UPLOAD_KEY_USED) {
            return result;
        }
        what->is_mark = true;
        result = offer(sender, what, ret_n, ret);
        if (result == IMPORT_UPLOAD_ANSWERED) {
            /* These events were all rejected.  With a key of their own they may be taken now. */
            what->is_mark = false;
            what->attempt++;
            return post(sender, what, *ret_n, ret);
        }
    }
    return result;
}

void import_sender_begin(struct import_sender *sender)
{
    for (size_t i = 0; i < import_batch_count(sender->batch); i++) {
        import_chain_add(&sender->chains[i], import_batch_line(sender->batch, i),
            import_batch_body(sender->batch, i, 1), &sender->chains[i + 1]);
    }
}

void import_sender_end(struct import_sender *sender)
{
    sender->chains[0] = sender->chains[import_batch_count(sender->batch)];
}

/* Have a mark counted, as import_send.h says.  A mark that fails leaves no events in doubt. */
static enum import_upload_result mark(
    struct import_sender *sender, struct offer *what, size_t n, struct import_upload_answer *ret)
{
    struct import_upload_answer of_mark;
    what->is_mark = true;
    enum import_upload_result result = post(sender, what, n, &of_mark);
    if (result == IMPORT_UPLOAD_ANSWERED) {
        return result;
    }
    *ret = of_mark;
    return result == IMPORT_UPLOAD_IN_DOUBT ? IMPORT_UPLOAD_BUSY : result;
}

enum import_upload_result import_send(struct import_sender *sender, size_t first, size_t count,
    bool closed, size_t *ret_count, struct import_upload_answer *ret)
{
    struct offer what = {.first = first, .largest = import_cut(first, count, closed)};
    enum import_upload_result result = offer_any(sender, &what, ret_count, ret);
    if (result != IMPORT_UPLOAD_ANSWERED) {
        return result;
    }
    sender->answered = true;
    bool is_marked = what.attempt % 2 == 1;
    bool is_last = first + *ret_count == import_batch_count(sender->batch);
    return ret->rejected < *ret_count || is_marked || is_last
               ? result
               : mark(sender, &what, *ret_count, ret);
}
