/* bare_mhd.c - the least a libmicrohttpd server can do with a POST: the ceiling tallyd is measured
 * against.
 *
 * Usage: bare_mhd PORT THREADS [CONNECTION_MEMORY]
 *
 * Reads the body and throws it away, answers every request with 202 and one fixed JSON text.  It
 * makes a response per request, as any server must whose answers differ; no routing, no checks, no
 * request id, no deadline.  Runs until it is killed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <microhttpd.h>

static const char answer[] = "{\"accepted\":1,\"rejected\":0,\"errors\":[]}";

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
    const char *method, const char *version, const char *upload, size_t *upload_n, void **state)
{
    (void)cls;
    (void)url;
    (void)method;
    (void)version;
    (void)upload;
    if (*state == NULL) { /* the head: an answer now would close the connection */
        *state = connection;
        return MHD_YES;
    }
    if (*upload_n != 0) {
        *upload_n = 0;
        return MHD_YES;
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(
        sizeof(answer) - 1, (void *)(uintptr_t)answer, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result queued = MHD_add_response_header(response, "Content-Type", "application/json");
    if (queued == MHD_YES) {
        queued = MHD_queue_response(connection, MHD_HTTP_ACCEPTED, response);
    }
    MHD_destroy_response(response);
    return queued;
}

/* A whole number of 1..@max; 0 if @text is anything else. */
static unsigned number(const char *text, unsigned max)
{
    char *end;
    uintmax_t value = strtoumax(text, &end, 10);
    return *text == '\0' || *end != '\0' || value > max ? 0 : (unsigned)value;
}

int main(int argc, char **argv)
{
    unsigned port = argc > 2 ? number(argv[1], 65535) : 0;
    unsigned threads = argc > 2 ? number(argv[2], 64) : 0;
    unsigned memory = argc > 3 ? number(argv[3], 1u << 20) : 16384;
    if (port == 0 || threads == 0 || memory == 0) {
        (void)fprintf(stderr, "usage: bare_mhd PORT THREADS [CONNECTION_MEMORY]\n");
        return 2;
    }
    struct MHD_OptionItem pool[] = {
        {threads > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, (intptr_t)threads, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_Daemon *daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, (uint16_t)port,
        NULL, NULL, on_request, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)memory,
        MHD_OPTION_ARRAY, pool, MHD_OPTION_END);
    if (daemon == NULL) {
        perror("bare_mhd");
        return 1;
    }
    for (;;) {
        (void)pause();
    }
}
