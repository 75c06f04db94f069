/* token_file.h - read the file that says which tokens there are, and what each may do.
 *
 * Layer: service, pure except for reading the file.  A token has a line:
 *
 *     sha256hex scope[,scope] [site=a,b] name
 *
 * The file holds hashes, so nobody who reads the file can use a token.  The scopes are ingest, read
 * and admin; none implies another.  Without `site=` a token is good for every site.  A name is
 * printable ASCII without blanks, up to 64 bytes.  Names and hashes are unique.  Blank lines, and
 * lines that begin with '#', are passed over.
 *
 * Thread safety: a set is read-only once made.
 */
#ifndef SERVICE_TOKENS_TOKEN_FILE_H
#define SERVICE_TOKENS_TOKEN_FILE_H

#include <stdatomic.h>
#include <stddef.h>

#include "handlers/access/access.h"
#include "storage/base/compiler.h"

#define TOKEN_FILE_MAX   (4u << 20) /* bytes */
#define TOKEN_MAX        256        /* bytes of a token that a client may show */
#define TOKEN_NAME_MAX   64
#define TOKEN_FILE_ERROR 512 /* bytes that hold any error text */

struct token_set {
    _Atomic unsigned holders; /* see tokens.h */
    struct access *tokens;    /* owned; n tokens in order of their hashes */
    size_t n;
    size_t first[257];   /* by the first byte of a hash: index of the first token from there on */
    char *text;          /* owned; names and sites point into this */
    struct slice *sites; /* owned; the sites of all tokens */
};

/* Read @path.  @again: the process has read @path before, so it must be a regular file.  The caller
 * frees the set.  NULL: *ret_error, TOKEN_FILE_ERROR bytes, says what is wrong, with the number of
 * the line, and shows no hash. */
struct token_set *token_file_read(const char *path, bool again, char *ret_error) MUST_CHECK;

/* The same from @text, @n bytes.  @name stands in errors. */
struct token_set *token_file_parse(
    const char *name, const char *text, size_t n, char *ret_error) MUST_CHECK;

void token_set_free(struct token_set *set); /* NULL is fine */

/* The token whose text is @shown, or NULL.  The time that the search takes tells nothing of tokens.
 * Hashes are compared in constant time, and only the hash of @shown decides which are compared. */
const struct access *token_set_find(const struct token_set *set, struct slice shown);

/* The SHA-256 hash of @token. */
void token_hash(struct slice token, uint8_t ret[static ACCESS_HASH_SIZE]);

/* Parse "ingest,read" into bits of enum access_scope.  False: a word is missing, or is no scope. */
bool token_scopes_parse(struct slice text, unsigned *ret) MUST_CHECK;

/* May @name be a token's name?  A name that begins with "site=" would be read as sites. */
bool token_name_valid(struct slice name);

/* Is every part of "a,b" a site's name? */
bool token_sites_valid(struct slice list);

#endif
