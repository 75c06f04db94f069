/* cluster_command.h - the command `tallyd cluster`: look at the servers that have the data.
 *
 * Layer: service/client.  Talks to Redis itself, so it works where no service does.
 */
#ifndef SERVICE_CLIENT_CLUSTER_COMMAND_H
#define SERVICE_CLIENT_CLUSTER_COMMAND_H

/* Run the command; argv[0] is "cluster".  Returns the exit status: 0; 1 if something is wrong with
 * the servers or nothing could be done; 2 if the command line is wrong. */
int cluster_main(int argc, char **argv);

#endif
