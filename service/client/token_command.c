#include "service/client/commands.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "service/tokens/token_file.h"

#define PREFIX       "tally_" /* by this, people and scanners for leaked secrets know a token */
#define RANDOM_BYTES 32
#define TEXT_SIZE    (sizeof(PREFIX) + 44) /* base64url of 32 bytes: 43 characters */

static const char usage[] = "usage: tallyd token new SCOPES [site=a,b] NAME\n"
                            "Make a token: the first line of the output is the token, the second "
                            "its line for the file that\n"
                            "`tallyd serve --tokens FILE` reads (SIGHUP has it read again).  The "
                            "file holds a hash: the token\n"
                            "itself is shown this once.\n"
                            "SCOPES: ingest, read, admin, with commas between them.  site=: the "
                            "only sites it is good for.\n";

static int complain(const char *what)
{
    (void)fprintf(stderr, "tallyd: token: %s\n%s", what, usage);
    return 2;
}

static int make(const char *scopes, const char *sites, const char *name)
{
    unsigned char random[RANDOM_BYTES];
    char text[TEXT_SIZE] = PREFIX;
    uint8_t hash[ACCESS_HASH_SIZE];
    char hex[2 * ACCESS_HASH_SIZE + 1];
    if (sodium_init() < 0) {
        (void)fputs("tallyd: the system gives no random bytes\n", stderr);
        return 1;
    }
    randombytes_buf(random, sizeof(random));
    (void)sodium_bin2base64(text + sizeof(PREFIX) - 1, sizeof(text) - sizeof(PREFIX) + 1, random,
        sizeof(random), sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    token_hash(slice_of(text), hash);
    (void)sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
    printf("%s\n%s %s%s%s %s\n", text, hex, scopes, sites != NULL ? " " : "",
        sites != NULL ? sites : "", name);
    sodium_memzero(text, sizeof(text));
    return 0;
}

int token_main(int argc, char **argv)
{
    unsigned scopes;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        (void)fputs(usage, stdout);
        return 0;
    }
    if (argc < 2 || strcmp(argv[1], "new") != 0) {
        return complain("the one thing it can do is new");
    }
    if (argc != 4 && argc != 5) {
        return complain("SCOPES and NAME are needed");
    }
    const char *sites = argc == 5 ? argv[3] : NULL;
    if (!token_scopes_parse(slice_of(argv[2]), &scopes)) {
        return complain("SCOPES must be of ingest, read and admin, with commas between them");
    }
    if (strncmp(argv[argc - 1], "site=", 5) == 0) {
        return complain(argc == 4 ? "a NAME is needed behind site=" : "site= stands before NAME");
    }
    if (sites != NULL &&
        (strncmp(sites, "site=", 5) != 0 || !token_sites_valid(slice_of(sites + 5)))) {
        return complain("site= must be followed by names of sites, with commas between them");
    }
    if (!token_name_valid(slice_of(argv[argc - 1]))) {
        return complain("NAME must be 1 to 64 printable ASCII characters without blanks");
    }
    return make(argv[2], sites, argv[argc - 1]);
}
