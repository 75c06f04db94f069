#include "service/client/follow/follow_state.h"

#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define VERSION 1

struct follow_head follow_head_of(struct slice bytes)
{
    struct follow_head head = {.n = bytes.n < FOLLOW_HEAD ? bytes.n : FOLLOW_HEAD};
    /* This fails only for sizes out of range, and these are constants. */
    (void)crypto_generichash(
        head.digest, sizeof(head.digest), (const unsigned char *)bytes.p, head.n, NULL, 0);
    return head;
}

bool follow_head_fits(const struct follow_head *head, struct slice bytes)
{
    if (bytes.n < head->n) {
        return false;
    }
    struct follow_head other = follow_head_of((struct slice){bytes.p, head->n});
    return memcmp(other.digest, head->digest, sizeof(other.digest)) == 0;
}

void follow_state_pass(struct follow_state *state)
{
    state->files[state->piece.file].place = state->piece.to;
    state->has_piece = false;
}

void follow_state_remove(struct follow_state *state, size_t index)
{
    state->n--;
    memmove(&state->files[index], &state->files[index + 1],
        (state->n - index) * sizeof(state->files[0]));
    if (state->has_piece && state->piece.file > index) {
        state->piece.file--;
    }
}

static json_t *hex(const uint8_t *bytes, size_t n)
{
    char text[2 * sizeof(struct import_file_id) + 1];
    return json_string(sodium_bin2hex(text, sizeof(text), bytes, n));
}

static json_t *print_file(const struct follow_file *file)
{
    const struct follow_place *place = &file->place;
    return json_pack("{so,ss,sI,sI,so,sI,sI,sI,sI,sI,sb,sb,sb}", "id",
        hex(file->id.bytes, sizeof(file->id.bytes)), "format", file->format, "inode",
        (json_int_t)file->inode, "head_bytes", (json_int_t)file->head.n, "head",
        hex(file->head.digest, sizeof(file->head.digest)), "offset", (json_int_t)place->offset,
        "lines", (json_int_t)place->lines, "header", (json_int_t)place->header, "size",
        (json_int_t)file->size, "mtime_ns", (json_int_t)file->mtime_ns, "in_long_line",
        (int)place->in_long_line, "done", (int)file->is_done, "past", (int)file->is_past);
}

size_t follow_state_print(const struct follow_state *state, char ret[FOLLOW_STATE_BYTES])
{
    json_t *files = json_array();
    for (size_t i = 0; i < state->n; i++) {
        if (json_array_append_new(files, print_file(&state->files[i])) != 0) {
            json_decref(files);
            return 0;
        }
    }
    json_t *all =
        json_pack("{si,ss,so}", "version", VERSION, "sites", state->sites, "files", files);
    if (all != NULL && state->has_piece) {
        const struct follow_piece *is = &state->piece;
        json_t *piece = json_pack("{sI,sI,sI,sb,sI,sI,sb,sI}", "file", (json_int_t)is->file, "to",
            (json_int_t)is->to.offset, "sent_at", (json_int_t)is->sent_at_s, "last",
            (int)is->is_last, "lines", (json_int_t)is->to.lines, "header",
            (json_int_t)is->to.header, "in_long_line", (int)is->to.in_long_line, "attempt",
            (json_int_t)is->attempt);
        if (json_object_set_new(all, "piece", piece) != 0) {
            json_decref(all);
            return 0;
        }
    }
    size_t n = json_dumpb(all, ret, FOLLOW_STATE_BYTES - 1, JSON_COMPACT);
    json_decref(all);
    if (n >= FOLLOW_STATE_BYTES) {
        return 0;
    }
    ret[n] = '\0';
    return n;
}

static bool read_hex(const json_t *value, uint8_t *ret, size_t n)
{
    const char *text = json_string_value(value);
    size_t written = 0;
    return text != NULL && strlen(text) == 2 * n &&
           sodium_hex2bin(ret, n, text, 2 * n, NULL, &written, NULL) == 0 && written == n;
}

/* Read the member @name, a number that is not negative. */
static bool read_number(const json_t *object, const char *name, int64_t *ret)
{
    const json_t *value = json_object_get(object, name);
    *ret = json_integer_value(value);
    return json_is_integer(value) && *ret >= 0;
}

/* Read the offset of the line that names the fields; -1: there is no such line. */
static bool read_header(const json_t *object, int64_t *ret)
{
    const json_t *header = json_object_get(object, "header");
    *ret = json_integer_value(header);
    return json_is_integer(header) && *ret >= -1 && *ret < INT64_MAX;
}

/* Read a place.  @name is the name of the member that has its offset. */
static bool parse_place(const json_t *object, const char *name, struct follow_place *ret)
{
    int64_t lines;
    const json_t *in_long_line = json_object_get(object, "in_long_line");
    if (!read_number(object, name, &ret->offset) || !read_number(object, "lines", &lines) ||
        !read_header(object, &ret->header) || !json_is_boolean(in_long_line)) {
        return false;
    }
    ret->lines = (uint64_t)lines;
    ret->in_long_line = json_is_true(in_long_line);
    return true;
}

static bool parse_file(const json_t *object, struct follow_file *ret)
{
    int64_t head_n;
    const json_t *inode = json_object_get(object, "inode");
    const json_t *mtime_ns = json_object_get(object, "mtime_ns");
    const json_t *done = json_object_get(object, "done");
    if (!read_hex(json_object_get(object, "id"), ret->id.bytes, sizeof(ret->id.bytes)) ||
        !read_hex(json_object_get(object, "head"), ret->head.digest, sizeof(ret->head.digest)) ||
        !json_is_integer(inode) || !read_number(object, "head_bytes", &head_n) ||
        !parse_place(object, "offset", &ret->place) || !read_number(object, "size", &ret->size) ||
        !json_is_integer(mtime_ns) || !json_is_boolean(done)) {
        return false;
    }
    ret->inode = (uint64_t)json_integer_value(inode); /* it was printed as a number with a sign */
    ret->mtime_ns = json_integer_value(mtime_ns);     /* a wrong clock may be before 1970 */
    ret->head.n = (size_t)head_n;
    ret->is_done = json_is_true(done);
    ret->is_past = json_is_true(json_object_get(object, "past")); /* missing in older states */
    const char *format = json_string_value(json_object_get(object, "format"));
    if (format == NULL || strlen(format) >= sizeof(ret->format)) {
        return false;
    }
    (void)snprintf(ret->format, sizeof(ret->format), "%s", format);
    return head_n <= FOLLOW_HEAD;
}

/* Read the piece.  Older versions wrote only where a piece ends, and not which key it has. */
static bool parse_piece(const json_t *object, struct follow_state *ret)
{
    struct follow_piece *piece = &ret->piece;
    int64_t file, attempt = 0;
    const json_t *last = json_object_get(object, "last");
    if (!json_is_boolean(last) || !read_number(object, "file", &file) ||
        !read_number(object, "sent_at", &piece->sent_at_s) || file >= (int64_t)ret->n ||
        (json_object_get(object, "attempt") != NULL && !read_number(object, "attempt", &attempt)) ||
        attempt > INT32_MAX) {
        return false;
    }
    piece->file = (size_t)file;
    piece->is_last = json_is_true(last);
    piece->attempt = (unsigned)attempt;
    ret->has_piece = true;
    const struct follow_place *from = &ret->files[file].place;
    piece->to = (struct follow_place){.lines = from->lines, .header = from->header};
    return (json_object_get(object, "lines") == NULL ? read_number(object, "to", &piece->to.offset)
                                                     : parse_place(object, "to", &piece->to)) &&
           piece->to.offset > from->offset;
}

static bool parse_all(const json_t *all, struct follow_state *ret)
{
    const json_t *version = json_object_get(all, "version"), *sites = json_object_get(all, "sites");
    const json_t *files = json_object_get(all, "files"), *piece = json_object_get(all, "piece");
    if (!json_is_integer(version) || json_integer_value(version) != VERSION ||
        !json_is_array(files) || json_array_size(files) > FOLLOW_FILES ||
        json_string_length(sites) >= sizeof(ret->sites)) {
        return false;
    }
    if (json_is_string(sites)) { /* missing in older states */
        (void)snprintf(ret->sites, sizeof(ret->sites), "%s", json_string_value(sites));
    }
    ret->n = json_array_size(files);
    for (size_t i = 0; i < ret->n; i++) {
        if (!parse_file(json_array_get(files, i), &ret->files[i])) {
            return false;
        }
    }
    return piece == NULL || parse_piece(piece, ret);
}

bool follow_state_parse(struct slice text, struct follow_state *ret)
{
    struct follow_state state = {0};
    json_t *all = json_loadb(text.p, text.n, 0, NULL);
    bool is_state = parse_all(all, &state);
    json_decref(all);
    if (is_state) {
        *ret = state;
    }
    return is_state;
}
