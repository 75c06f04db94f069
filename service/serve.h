/* serve.h - the command `tallyd serve`: start the service, run it, and stop it in reverse order.
 *
 * Layer: service.
 */
#ifndef SERVICE_SERVE_H
#define SERVICE_SERVE_H

/* Run the command.  @argv is what follows the word `serve`.  Returns the exit status:
 *
 *   0  SIGTERM or SIGINT came
 *   1  a part could not be started
 *   2  an option, a file or the data in Redis does not fit */
int serve_main(int argc, char **argv);

#endif
