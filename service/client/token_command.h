/* token_command.h - `tallyd token new`: make a token.
 *
 * Layer: service/client.
 */
#ifndef SERVICE_CLIENT_TOKEN_COMMAND_H
#define SERVICE_CLIENT_TOKEN_COMMAND_H

/* argv[0] is "token".  Two lines on stdout: the token, which nobody can get back later, and its
 * line for the file of --tokens.  Returns the exit status. */
int token_main(int argc, char **argv);

#endif
