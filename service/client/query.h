/* query.h - `tallyd query`: a question to a running tallyd, its answer as a table.
 *
 * Layer: service/client; speaks HTTP like any client and knows nothing of the server's inside.
 */
#ifndef SERVICE_CLIENT_QUERY_H
#define SERVICE_CLIENT_QUERY_H

/* Run the command; argv[0] is "query".  Returns the exit status: 0; 1 if the server did not answer,
 * or refused; 2 for a wrong command line. */
int query_main(int argc, char **argv);

#endif
