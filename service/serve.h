/* serve.h - `tallyd serve`: everything put together, run, and taken apart in reverse.
 *
 * Layer: service.
 */
#ifndef SERVICE_SERVE_H
#define SERVICE_SERVE_H

/* @argv: what follows the word `serve`.  Returns the exit status: 0 after SIGTERM or SIGINT, 1 if
 * it could not run, 2 if it was told something it cannot do. */
int serve_main(int argc, char **argv);

#endif
