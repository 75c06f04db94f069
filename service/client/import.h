/* import.h - `tallyd import`: the page views of a file into a running tallyd.
 *
 * Layer: service/client; speaks HTTP like any client and knows nothing of the server's inside.
 *
 * An event is sent once.  What the server certainly did not apply (503, 429, a connection that did
 * not come up) is sent again, for about a minute; what it may have applied (504, a connection lost
 * behind the request) is not, because it would count twice: the import stops and names the lines in
 * doubt.
 */
#ifndef SERVICE_CLIENT_IMPORT_H
#define SERVICE_CLIENT_IMPORT_H

/* Run the command; argv[0] is "import".  Returns the exit status: 0; 1 if a line was rejected for
 * another reason than being malformed, or not everything could be read and sent; 2 for a wrong
 * command line.  Needs curl_global_init() only if other threads run. */
int import_main(int argc, char **argv);

#endif
