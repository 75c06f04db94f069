/* query.h - the command `tallyd query`: ask a running tallyd, and print its answer as a table.
 *
 * Layer: service/client.  The command speaks HTTP like any client, and knows nothing of the
 * server's inside.
 */
#ifndef SERVICE_CLIENT_QUERY_QUERY_H
#define SERVICE_CLIENT_QUERY_QUERY_H

/* Run the command; argv[0] is "query".  Returns the exit status:
 *
 *   0  the answer was printed
 *   1  the server did not answer, or refused
 *   2  the command line is wrong */
int query_main(int argc, char **argv);

#endif
