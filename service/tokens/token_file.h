/* token_file.h - the file that says which tokens there are.
 *
 * Layer: service, pure but for reading the file.  One line a token:
 *
 *     sha256hex scope[,scope] [site=a,b] name
 *
 * The file holds hashes, so who can read it cannot use it.  Scopes: ingest, read, admin; none
 * implies another.  Without `site=` a token is good for every site.  Names are printable ASCII
 * without blanks, up to 64 bytes; names and hashes are unique.  Blank lines, and lines that begin
 * with '#', are passed over.
 *
 * Thread safety: a set is read-only once made.
 */
#ifndef SERVICE_TOKENS_TOKEN_FILE_H
#define SERVICE_TOKENS_TOKEN_FILE_H

#include <stdatomic.h>
#include <stddef.h>

#include "handlers/access/access.h"
#include "storage/storage.h"

#define TOKEN_FILE_MAX   (4u << 20) /* bytes */
#define TOKEN_MAX        256        /* bytes of a token that a client may show */
#define TOKEN_NAME_MAX   64
#define TOKEN_FILE_ERROR 512 /* bytes that hold any error text */

struct token_set {
    _Atomic unsigned holders; /* see tokens.h */
    struct access *tokens;    /* n of them, in order of their hashes; owned */
    size_t n;
    size_t first[257];   /* where the hashes begin that begin with this byte */
    char *text;          /* what names and sites point into; owned */
    struct slice *sites; /* owned */
};

/* Read @path.  NULL: @ret_error (TOKEN_FILE_ERROR bytes) says what is wrong, with the line's number
 * and none of its content. */
struct token_set *token_file_read(const char *path, char *ret_error) MUST_CHECK;

/* The same from @n bytes of text; @name stands in errors. */
struct token_set *token_file_parse(
    const char *name, const char *text, size_t n, char *ret_error) MUST_CHECK;

void token_set_free(struct token_set *set); /* NULL is harmless */

/* The token whose text is @shown, or NULL.  The time it takes tells nothing of a token: hashes are
 * compared in constant time, and which hashes are compared depends on the hash of what was shown
 * alone. */
const struct access *token_set_find(const struct token_set *set, struct slice shown);

/* SHA-256. */
void token_hash(struct slice token, uint8_t ret[static ACCESS_HASH_SIZE]);

/* "ingest,read" to bits.  False if a word is no scope, or there is none. */
bool token_scopes_parse(struct slice text, unsigned *ret);

/* Is @name fit to be one?  (One that begins with "site=" would be read as sites.) */
bool token_name_valid(struct slice name);

/* Are all sites of "a,b" fit to be some? */
bool token_sites_valid(struct slice list);

#endif
