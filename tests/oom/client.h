/* client.h - a command of a client in a child of this process, whose allocations may be made to
 * fail.
 *
 * It is the command as it is, with its arguments and its exit status.  libcurl, which the command
 * loads, is given the failing allocator, too; but not while it talks with the server.  There it
 * takes a failure for another fault, or goes on without what it had no room for.
 */
#ifndef TESTS_OOM_CLIENT_H
#define TESTS_OOM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/oom/service.h"
#include "tests/oom/serving.h"

#define CLIENT_TEXT  16384 /* of what a command prints, at most */
#define CLIENT_WORDS 24    /* of a command */

/* As those of service/client/commands.h. */
typedef int client_command(int argc, char **argv);

struct client_end {
    int status;           /* 256 and more: a signal ended it, or it had to be killed */
    bool struck;          /* an allocation failed */
    size_t left;          /* blocks that were not freed.. */
    size_t size;          /* ..and of which size.. */
    unsigned long number; /* ..and number the first one is */
    char out[CLIENT_TEXT], err[CLIENT_TEXT]; /* what it printed */
};

/* Load libcurl; once, while there is one thread.  The program's end if there is none. */
void client_set_up(void);

/* Start a server on the Redis of @service, whose allocations never fail; @log gets its log.  End
 * it, and tell its exit status. */
void client_start_server(struct serving *ret, const struct service *service, const char *log);
int client_stop_server(struct serving *server);

/* Run @command with the words of @line, which have single blanks between them.  The @nth allocation
 * and @more behind it fail, if @nth is not 0.  SIGTERM is sent to it when it prints @until, unless
 * that is NULL. */
void client_run(struct client_end *ret, client_command *command, const char *line,
    const char *until, unsigned long nth, unsigned long more);

/* Did it end as a command ends that has no memory: with status 1, and saying so? */
bool client_starved(const struct client_end *end);

#endif
