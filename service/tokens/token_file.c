#include "service/tokens/token_file.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/text/check.h"
#include "handlers/text/plain.h"
#include "handlers/text/utf8.h"
#include "service/settings_file.h"
#include "storage/base/index.h"

#define WORDS_MAX 4
#define SITES     "site="

struct parser {
    const char *name;
    unsigned line;
    struct token_set *set;
    size_t capacity, n_sites, sites_capacity;
    char *error;
};

static bool fail(const struct parser *p, const char *what)
{
    (void)snprintf(p->error, TOKEN_FILE_ERROR, "%s:%u: %s", p->name, p->line, what);
    return false;
}

bool token_name_valid(struct slice name)
{
    return name.n <= TOKEN_NAME_MAX && text_is_graphic(name) && !slice_begins(name, SLICE(SITES));
}

bool token_scopes_parse(struct slice text, unsigned *ret)
{
    unsigned scopes = 0;
    struct slice rest = text;
    do {
        struct slice word = slice_until(&rest, ',');
        unsigned known = 0;
        for (unsigned scope = ACCESS_INGEST; scope <= ACCESS_ADMIN; scope <<= 1) {
            const char *name = access_scope_name((enum access_scope)scope);
            known |= slice_equal(word, slice_of(name)) ? scope : 0;
        }
        if (known == 0) {
            return false;
        }
        scopes |= known;
    } while (rest.n > 0);
    *ret = scopes;
    return text.p[text.n - 1] != ',';
}

bool token_sites_valid(struct slice list)
{
    struct slice rest = list;
    if (list.n == 0 || list.p[list.n - 1] == ',') {
        return false;
    }
    while (rest.n > 0) {
        if (event_check_site(slice_until(&rest, ',')) != NULL) {
            return false;
        }
    }
    return true;
}

void token_hash(struct slice token, uint8_t ret[static ACCESS_HASH_SIZE])
{
    _Static_assert(ACCESS_HASH_SIZE == crypto_hash_sha256_BYTES, "SHA-256");
    (void)crypto_hash_sha256(ret, (const unsigned char *)token.p, token.n); /* cannot fail */
}

/* ---- one line ---- */

static bool take_hash(const struct parser *p, struct slice word, struct access *token)
{
    size_t n = 0;
    if (word.n != sizeof(token->hash) * 2 ||
        sodium_hex2bin(token->hash, sizeof(token->hash), word.p, word.n, NULL, &n, NULL) != 0 ||
        n != sizeof(token->hash)) {
        return fail(p, "the first word must be a SHA-256 hash, 64 hexadecimal digits");
    }
    return true;
}

/* The array of slices moves while it grows.  So until the end a token has only a number of
 * sites. */
static bool take_sites(struct parser *p, struct slice list, struct access *token)
{
    struct token_set *set = p->set;
    if (!token_sites_valid(list)) {
        return fail(p, "site= must be followed by names of sites, with commas between them");
    }
    while (list.n > 0) {
        if (!array_reserve(&set->sites, &p->sites_capacity, p->n_sites, sizeof(*set->sites))) {
            return fail(p, "out of memory");
        }
        set->sites[p->n_sites++] = slice_until(&list, ',');
        token->n_sites++;
    }
    return true;
}

/* Split @line into words at blanks.  Returns their number, WORDS_MAX + 1 if there are more. */
static size_t split(struct slice line, struct slice words[static WORDS_MAX + 1])
{
    size_t n = 0;
    while (line.n > 0 && n <= WORDS_MAX) {
        size_t length = 0;
        while (length < line.n && line.p[length] != ' ' && line.p[length] != '\t') {
            length++;
        }
        if (length > 0) {
            words[n++] = (struct slice){line.p, length};
        }
        length += length < line.n;
        line.p += length;
        line.n -= length;
    }
    return n;
}

static bool take_line(struct parser *p, struct slice line)
{
    struct token_set *set = p->set;
    struct slice words[WORDS_MAX + 1] = {{NULL, 0}};
    if (line.n > 0 && line.p[line.n - 1] == '\r') {
        line.n--;
    }
    size_t n = split(line, words);
    if (n == 0 || words[0].p[0] == '#') {
        return true;
    }
    if (n < 3 || n > 4 || (n == 4) != slice_begins(words[2], SLICE(SITES))) {
        return fail(p, "not of the form: sha256hex scope[,scope] [site=a,b] name");
    }
    if (!array_reserve(&set->tokens, &p->capacity, set->n, sizeof(*set->tokens))) {
        return fail(p, "out of memory");
    }
    struct access token = {0};
    struct slice name = words[n - 1];
    if (!take_hash(p, words[0], &token)) {
        return false;
    }
    if (!token_scopes_parse(words[1], &token.scopes)) {
        return fail(p, "scopes are ingest, read and admin, with commas between them");
    }
    if (n == 4 &&
        !take_sites(p,
            (struct slice){words[2].p + sizeof(SITES) - 1, words[2].n - sizeof(SITES) + 1},
            &token)) {
        return false;
    }
    if (!token_name_valid(name)) {
        return fail(p, "the name must be 1 to 64 printable ASCII characters");
    }
    ((char *)(uintptr_t)name.p)[name.n] = '\0'; /* the text is the set's own */
    token.name = name.p;
    set->tokens[set->n++] = token;
    return true;
}

/* ---- the set ---- */

static void place_sites(struct token_set *set)
{
    struct slice *next = set->sites;
    for (size_t i = 0; i < set->n; i++) {
        set->tokens[i].sites = next;
        next = set->tokens[i].n_sites > 0 ? next + set->tokens[i].n_sites : next;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct access *)a)->name, ((const struct access *)b)->name);
}

static int by_hash(const void *a, const void *b)
{
    return memcmp(
        ((const struct access *)a)->hash, ((const struct access *)b)->hash, ACCESS_HASH_SIZE);
}

/* Check that names and hashes are unique, and sort by hash.  NULL, or what is wrong: a static text,
 * or one in the @n bytes of @room. */
static const char *check_unique(struct token_set *set, size_t n, char *room)
{
    qsort(set->tokens, set->n, sizeof(*set->tokens), by_name);
    for (size_t i = 1; i < set->n; i++) {
        if (by_name(&set->tokens[i - 1], &set->tokens[i]) == 0) {
            (void)snprintf(room, n, "two tokens have the name \"%s\"", set->tokens[i].name);
            return room;
        }
    }
    qsort(set->tokens, set->n, sizeof(*set->tokens), by_hash);
    for (size_t i = 1; i < set->n; i++) {
        if (by_hash(&set->tokens[i - 1], &set->tokens[i]) == 0) {
            return "a token stands there twice";
        }
    }
    return NULL;
}

static void make_index(struct token_set *set)
{
    size_t at = 0;
    for (unsigned byte = 0; byte <= 256; byte++) {
        while (at < set->n && set->tokens[at].hash[0] < byte) {
            at++;
        }
        set->first[byte] = at;
    }
}

void token_set_free(struct token_set *set)
{
    if (set != NULL) {
        free(set->tokens);
        free(set->sites);
        free(set->text);
        free(set);
    }
}

struct token_set *token_file_parse(const char *name, const char *text, size_t n, char *ret_error)
{
    struct parser p = {.name = name, .error = ret_error, .set = calloc(1, sizeof(*p.set))};
    char room[TOKEN_FILE_ERROR / 2];
    const char *fault = "out of memory";
    bool ok = p.set != NULL && (p.set->text = malloc(n + 1)) != NULL && sodium_init() >= 0;
    if (ok) {
        memcpy(p.set->text, text, n);
        p.set->text[n] = '\0';
        fault = utf8_is_utf16((struct slice){text, n}) ? "UTF-16: save it as UTF-8"
                : memchr(text, '\0', n) != NULL        ? "a NUL byte stands in it"
                                                       : NULL;
        ok = fault == NULL;
    }
    struct slice rest = {ok ? p.set->text : NULL, n};
    rest = ok ? utf8_without_mark(rest) : rest;
    while (ok && rest.n > 0) {
        p.line++;
        if (!take_line(&p, slice_until(&rest, '\n'))) {
            token_set_free(p.set);
            return NULL;
        }
    }
    if (ok) {
        place_sites(p.set);
        fault = p.set->n == 0 ? "there is no token in it" : check_unique(p.set, sizeof(room), room);
    }
    if (fault != NULL) {
        (void)snprintf(ret_error, TOKEN_FILE_ERROR, "%s: %s", name, fault);
        token_set_free(p.set);
        return NULL;
    }
    make_index(p.set);
    atomic_store(&p.set->holders, 1);
    return p.set;
}

struct token_set *token_file_read(const char *path, bool again, char *ret_error)
{
    const char *why = "out of memory";
    char *text = malloc(TOKEN_FILE_MAX + 1);
    FILE *file = text != NULL ? settings_file_open(path, again, &why) : NULL;
    struct token_set *set = NULL;
    if (file == NULL) {
        (void)snprintf(ret_error, TOKEN_FILE_ERROR, "cannot open %.300s%s: %s", path,
            again ? " again" : "", why);
        free(text);
        return NULL;
    }
    size_t n = fread(text, 1, TOKEN_FILE_MAX + 1, file);
    if (ferror(file)) {
        (void)snprintf(
            ret_error, TOKEN_FILE_ERROR, "cannot read %.300s: %s", path, strerror(errno));
    } else if (n > TOKEN_FILE_MAX) {
        (void)snprintf(ret_error, TOKEN_FILE_ERROR, "%.300s: larger than 4 MiB", path);
    } else {
        set = token_file_parse(path, text, n, ret_error);
    }
    free(text);
    (void)fclose(file); /* the file was only read: nothing can be lost */
    return set;
}

const struct access *token_set_find(const struct token_set *set, struct slice shown)
{
    uint8_t hash[ACCESS_HASH_SIZE];
    const struct access *found = NULL;
    token_hash(shown, hash);
    for (size_t i = set->first[hash[0]]; i < set->first[hash[0] + 1]; i++) {
        if (sodium_memcmp(set->tokens[i].hash, hash, sizeof(hash)) == 0) {
            found = &set->tokens[i];
        }
    }
    return found;
}
