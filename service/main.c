/* main.c - run the command that was asked for. */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "service/client/commands.h"
#include "service/ops/version.h"
#include "service/options/options.h"
#include "service/serve.h"

extern char **environ;

static void print_help(FILE *out)
{
    (void)fputs(
        "tallyd counts people on the web: page views, visitors, visits, over any window.\n"
        "\n"
        "  tallyd serve [OPTION...]          run the service\n"
        "  tallyd import [OPTION...] FILE|-  send an access log or NDJSON to it (--help says "
        "more)\n"
        "  tallyd query QUESTION [OPTION...] ask it: uv, pv, stats, pages.. (--help says more)\n"
        "  tallyd token new SCOPES NAME      make a token (--help says more)\n"
        "  tallyd cluster status --redis URL the servers that have the data (--help says more)\n"
        "  tallyd config [OPTION...]         print every option, its value and where it came from\n"
        "  tallyd --help | --version\n"
        "\n",
        out);
    options_print_help(out);
}

static int print_config(int argc, char **argv)
{
    char error[OPTIONS_ERROR];
    struct options options = {0};
    if (!options_load(&options, argc, argv, environ, false, error)) {
        (void)fprintf(stderr, "tallyd: %s\n", error);
        return 2;
    }
    options_print(&options, stdout);
    options_release(&options);
    return 0;
}

/* -h is help where most people try it: first, or right behind the command.  Elsewhere it may be the
 * value of an option. */
static void spell_help_out(int argc, char **argv)
{
    static char help[] = "--help";
    if (argc > 1 && (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)) {
        argv[1] = help;
    } else if (argc > 2 && strcmp(argv[2], "-h") == 0) {
        argv[2] = help;
    }
}

static bool has_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return true;
        }
    }
    return false;
}

/* Run a command that ends by itself. */
static int run(const char *command, int argc, char **argv)
{
    if (strcmp(command, "import") == 0) {
        return import_main(argc - 1, argv + 1);
    }
    if (strcmp(command, "query") == 0) {
        return query_main(argc - 1, argv + 1);
    }
    if (strcmp(command, "cluster") == 0) {
        return cluster_main(argc - 1, argv + 1);
    }
    if (strcmp(command, "token") == 0) {
        return token_main(argc - 1, argv + 1);
    }
    if (strcmp(command, "--version") == 0) {
        (void)puts("tallyd " TALLYD_VERSION);
        return 0;
    }
    if (strcmp(command, "--help") == 0 || has_help(argc - 1, argv + 1)) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(command, "config") == 0) {
        return print_config(argc - 2, argv + 2);
    }
    (void)fprintf(stderr, "tallyd: %s%s; try tallyd --help\n",
        argc > 1 ? "unknown command " : "a command is missing", command);
    return 2;
}

/* The exit status of a command that has ended with @status.  0 must mean that the output was
 * written, because a script may look at nothing else. */
static int finish(int status)
{
    const char *why = fflush(stdout) != 0   ? strerror(errno)
                      : ferror(stdout) != 0 ? "a part of it is lost"
                                            : NULL;
    if (why == NULL) {
        return status;
    }
    (void)fprintf(stderr, "tallyd: cannot write the output: %s\n", why);
    return status == 0 ? 1 : status;
}

/* The parent process may have closed stdin, stdout or stderr.  Then a file or a connection of ours
 * would get that number, and what is printed would go there.  So /dev/null takes the place, opened
 * such that reads from stdin, and writes to the others, still fail. */
static void take_standard_places(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) { /* fd is the lowest free number, which open() gives */
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

int main(int argc, char **argv)
{
    take_standard_places();
    spell_help_out(argc, argv);
    const char *command = argc > 1 ? argv[1] : "";
    if (strcmp(command, "serve") == 0 && !has_help(argc - 1, argv + 1)) {
        return serve_main(argc - 2, argv + 2);
    }
    return finish(run(command, argc, argv));
}
