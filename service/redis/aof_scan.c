#include "service/redis/aof_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define ROOM       (256 * 1024)
#define DIGITS_MAX 10
#define WORD_MAX   5 /* bytes of the longest command that is looked at: MULTI */
#define END        (-1)

struct reader {
    int fd;
    unsigned char *bytes; /* room for ROOM bytes */
    size_t n, at;         /* bytes[at..n) is still to be taken */
    int64_t offset;       /* where bytes[0] lies in the file */
    bool failed;          /* see errno */
};

enum step { STEP_ON, STEP_END, STEP_BAD };

/* ---- bytes ---- */

/* Read the next bytes of the file.  False: there are no more, or r->failed. */
static bool fill(struct reader *r)
{
    ssize_t n;
    r->offset += (int64_t)r->n;
    r->n = r->at = 0;
    do {
        n = read(r->fd, r->bytes, ROOM);
    } while (n < 0 && errno == EINTR);
    r->failed = r->failed || n < 0;
    r->n = n > 0 ? (size_t)n : 0;
    return r->n > 0;
}

static int next_byte(struct reader *r)
{
    return r->at < r->n || fill(r) ? r->bytes[r->at++] : END;
}

static enum step expect(struct reader *r, int wanted)
{
    int c = next_byte(r);
    return c == wanted ? STEP_ON : c == END ? STEP_END : STEP_BAD;
}

/* Take @n bytes; the first WORD_MAX of them are copied to @word. */
static enum step take_bytes(struct reader *r, int64_t n, char word[static WORD_MAX])
{
    for (int64_t i = 0; i < n && i < WORD_MAX; i++) {
        int c = next_byte(r);
        if (c == END) {
            return STEP_END;
        }
        word[i] = (char)c;
    }
    for (int64_t left = n - WORD_MAX; left > 0;) {
        size_t here = r->n - r->at;
        size_t taken = (int64_t)here < left ? here : (size_t)left;
        r->at += taken;
        left -= (int64_t)taken;
        if (left > 0 && !fill(r)) {
            return STEP_END;
        }
    }
    return STEP_ON;
}

/* ---- commands ---- */

static enum step take_line_end(struct reader *r)
{
    enum step step = expect(r, '\r');
    return step == STEP_ON ? expect(r, '\n') : step;
}

/* Take the number behind @prefix, and the end of its line. */
static enum step take_number(struct reader *r, int prefix, int64_t *ret)
{
    enum step step = expect(r, prefix);
    *ret = 0;
    for (int i = 0; step == STEP_ON; i++) {
        int c = next_byte(r);
        if (c < '0' || c > '9' || i == DIGITS_MAX) {
            return c == END ? STEP_END : c == '\r' && i > 0 ? expect(r, '\n') : STEP_BAD;
        }
        *ret = *ret * 10 + (c - '0');
    }
    return step;
}

static bool is_word(const char *word, int64_t n, const char *text)
{
    return n == (int64_t)strlen(text) && strncasecmp(word, text, (size_t)n) == 0;
}

/* Take a command, whose `*` is the next byte.  *is_open: a transaction has begun. */
static enum step take_command(struct reader *r, bool *is_open)
{
    int64_t words, n;
    char word[WORD_MAX] = "", first[WORD_MAX] = "";
    int64_t first_n = 0;
    enum step step = take_number(r, '*', &words);
    for (int64_t i = 0; step == STEP_ON && i < words; i++) {
        step = take_number(r, '$', &n);
        step = step == STEP_ON ? take_bytes(r, n, word) : step;
        step = step == STEP_ON ? take_line_end(r) : step;
        if (i == 0) {
            memcpy(first, word, sizeof(first));
            first_n = n;
        }
    }
    bool begins = is_word(first, first_n, "MULTI"), ends = is_word(first, first_n, "EXEC");
    if (step == STEP_ON && (words == 0 || (begins && *is_open) || (ends && !*is_open))) {
        return STEP_BAD; /* redis-check-aof would cut here */
    }
    *is_open = step == STEP_ON ? (*is_open || begins) && !ends : *is_open;
    return step;
}

/* Take a line that begins with `#`: an annotation that Redis writes between commands. */
static enum step take_remark(struct reader *r)
{
    int c;
    do {
        c = next_byte(r);
    } while (c != '\n' && c != END);
    return c == END ? STEP_END : STEP_ON;
}

/* Are there only zeros from the byte on that was taken last? */
static bool only_zeros(struct reader *r)
{
    int c = r->bytes[--r->at];
    while (c == 0) {
        r->at++;
        c = r->at < r->n || fill(r) ? r->bytes[r->at] : END;
    }
    return c == END;
}

enum aof_state aof_scan(const char *path, int64_t *ret_at)
{
    struct reader r = {.fd = open(path, O_RDONLY | O_CLOEXEC), .bytes = malloc(ROOM)};
    enum step step = STEP_ON;
    bool is_open = false;
    r.failed = r.fd < 0 || r.bytes == NULL;
    while (!r.failed && step == STEP_ON && (r.at < r.n || fill(&r))) {
        step = r.bytes[r.at] == '#' ? take_remark(&r) : take_command(&r, &is_open);
    }
    *ret_at = r.offset + (int64_t)r.at - 1;
    bool sound = !r.failed && (step != STEP_BAD || only_zeros(&r));
    int saved = errno;
    if (r.fd >= 0) {
        (void)close(r.fd);
    }
    free(r.bytes);
    errno = saved;
    return r.failed                      ? AOF_UNREADABLE
           : !sound                      ? AOF_DAMAGED
           : step == STEP_ON && !is_open ? AOF_WHOLE
                                         : AOF_UNFINISHED;
}
