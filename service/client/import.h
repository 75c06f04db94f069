/* import.h - the command `tallyd import`: send the page views of a file to a running tallyd.
 *
 * Layer: service/client.  The command speaks HTTP like any client, and knows nothing of the
 * server's inside.
 *
 * Each request has an Idempotency-Key (import_key.h).  A request that was not acknowledged is sent
 * again, for about a minute.  Then the import stops and names the lines where it stopped.  A server
 * knows a key for a day.  Within that day the same import, from the first line on, counts only what
 * is missing, also when the file has grown meanwhile.
 */
#ifndef SERVICE_CLIENT_IMPORT_H
#define SERVICE_CLIENT_IMPORT_H

/* Run the command; argv[0] is "import".  curl_global_init() is needed only if other threads run.
 * Returns the exit status:
 *
 *   0  every line was read and sent; malformed lines are named
 *   1  a well-formed line was rejected, or a part could not be read or sent
 *   2  the command line is wrong */
int import_main(int argc, char **argv);

#endif
