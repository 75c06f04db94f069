/* commands.h - the commands of a client: tallyd import, query, cluster and token.
 *
 * Layer: service/client.  Each function runs one command: argv[0] is its name, and the result is
 * the exit status.  For all of them 2 means that the command line is wrong.  The caller checks
 * whether standard output took all that was printed.
 */
#ifndef SERVICE_CLIENT_COMMANDS_H
#define SERVICE_CLIENT_COMMANDS_H

/* `tallyd import`: send the page views of a file to a running tallyd, over HTTP as any client.
 * curl_global_init() is needed only if other threads run.
 *
 * Each request has an Idempotency-Key (import_key.h).  A request that was not acknowledged is sent
 * again, for about a minute.  Then the import stops and names the lines where it stopped.  A server
 * knows a key for a day.  Within that day the same import, from the first line on, counts only what
 * is missing, also when the file has grown meanwhile.
 *
 *   0  every line was read and sent; malformed lines are named
 *   1  a well-formed line was rejected, or a part could not be read or sent */
int import_main(int argc, char **argv);

/* `tallyd query`: ask a running tallyd a question, and print the answer as a table, CSV or JSON.
 *
 *   0  the answer was printed
 *   1  the server did not answer, or refused the question */
int query_main(int argc, char **argv);

/* `tallyd cluster`: look at the servers that have the data.  The command talks to Redis itself, so
 * it needs no running service.
 *
 *   1  something is wrong with the servers, or nothing could be done */
int cluster_main(int argc, char **argv);

/* `tallyd token new`: make a token.  Two lines on stdout: the token, which cannot be had back
 * later, and the token's line for the file of --tokens.
 *
 *   1  there are no random bytes */
int token_main(int argc, char **argv);

#endif
