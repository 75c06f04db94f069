/* import.h - `tallyd import`: the page views of a file into a running tallyd.
 *
 * Layer: service/client; speaks HTTP like any client and knows nothing of the server's inside.
 *
 * Each request has an Idempotency-Key (import_key.h).  What was not acknowledged is sent again, for
 * about a minute; then the import stops and names the lines it stopped at.  Run again within a day
 * (that is how long a server knows a key), from the first line on, it counts what is missing; also
 * when the file has grown meanwhile.
 */
#ifndef SERVICE_CLIENT_IMPORT_H
#define SERVICE_CLIENT_IMPORT_H

/* Run the command; argv[0] is "import".  Returns the exit status: 0; 1 if a line was rejected for
 * another reason than being malformed, or not everything could be read and sent; 2 for a wrong
 * command line.  Needs curl_global_init() only if other threads run. */
int import_main(int argc, char **argv);

#endif
