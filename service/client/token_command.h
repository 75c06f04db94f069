/* token_command.h - the command `tallyd token new`: make a token.
 *
 * Layer: service/client.
 */
#ifndef SERVICE_CLIENT_TOKEN_COMMAND_H
#define SERVICE_CLIENT_TOKEN_COMMAND_H

/* Run the command; argv[0] is "token".  Prints two lines on stdout: the token, which cannot be had
 * back later, and the token's line for the file of --tokens.  Returns the exit status: 0, 1 if
 * there are no random bytes or stdout fails, 2 if the command line is wrong. */
int token_main(int argc, char **argv);

#endif
