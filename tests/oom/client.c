#include "tests/oom/client.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/oom/failing_alloc.h"

#define END_MS 90000 /* an import waits for a minute */

/* What the child tells, in memory that both have. */
struct told {
    bool struck;
    size_t left, size;
    unsigned long number;
};

static struct told *told;

/* ---- libcurl ---- */

CURLcode __real_curl_easy_perform(CURL *easy);
CURLcode __wrap_curl_easy_perform(CURL *easy);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *text);

static atomic_bool is_talking;

CURLcode __wrap_curl_easy_perform(CURL *easy)
{
    is_talking = true;
    CURLcode code = __real_curl_easy_perform(easy);
    is_talking = false;
    return code;
}

static void *curl_malloc(size_t n)
{
    return is_talking ? __real_malloc(n) : malloc(n);
}

static void *curl_calloc(size_t n, size_t size)
{
    return is_talking ? __real_calloc(n, size) : calloc(n, size);
}

/* The block may be watched: it is libcurl's from now on. */
static void *curl_realloc(void *p, size_t n)
{
    if (is_talking) {
        alloc_handed_over(p);
        return __real_realloc(p, n);
    }
    return realloc(p, n);
}

static char *curl_strdup(const char *text)
{
    return is_talking ? __real_strdup(text) : strdup(text);
}

/* ---- processes ---- */

static _Noreturn void give_up(const char *what)
{
    perror(what);
    exit(2);
}

void client_set_up(void)
{
    union {
        void *address;
        __typeof__(&curl_global_init_mem) function;
    } init = {.address = NULL};
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    init.address = library == NULL ? NULL : dlsym(library, "curl_global_init_mem");
    if (init.address == NULL || init.function(CURL_GLOBAL_ALL, curl_malloc, free, curl_realloc,
                                    curl_strdup, curl_calloc) != CURLE_OK) {
        fprintf(stderr, "libcurl cannot be loaded: %s\n", dlerror());
        exit(2);
    }
    told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED) {
        give_up("mmap");
    }
}

void client_start_server(struct serving *ret, const struct service *service, const char *log)
{
    char redis[256];
    char words[][16] = {"--redis", "--listen", "127.0.0.1:0", "--threads", "1", "--readers", "1",
        "--partitions", "2", "--seen", "off", "--ack-replicas", "0"};
    char *argv[24] = {words[0], redis};
    int n = 2;
    (void)snprintf(redis, sizeof(redis), "%s", service_redis_url(service));
    for (size_t i = 1; i < sizeof(words) / sizeof(words[0]); i++) {
        argv[n++] = words[i];
    }
    serving_start(ret, n, argv, log, SERVING_UNWATCHED, 0);
    if (ret->port == 0) {
        fprintf(stderr, "the server does not start: see %s\n", log);
        exit(2);
    }
}

int client_stop_server(struct serving *server)
{
    (void)kill(server->pid, SIGTERM);
    return serving_wait(server);
}

static int cut_into_words(char *line, char *ret[CLIENT_WORDS + 1])
{
    int n = 0;
    for (char *rest = line, *word; n < CLIENT_WORDS && (word = strsep(&rest, " ")) != NULL;) {
        ret[n++] = word;
    }
    ret[n] = NULL;
    return n;
}

static _Noreturn void be_client(
    client_command *command, const char *line, unsigned long nth, unsigned long more)
{
    char text[2048], *words[CLIENT_WORDS + 1];
    (void)snprintf(text, sizeof(text), "%s", line);
    int n = cut_into_words(text, words);
    alloc_watch();
    if (nth > 0) {
        alloc_fail(nth, more);
    }
    int status = command(n, words);
    told->struck = alloc_stop();
    told->left = alloc_left(&told->number, &told->size);
    exit(status);
}

/* What the child has printed so far into the file @fd. */
static void read_text(int fd, char ret[CLIENT_TEXT])
{
    ssize_t n = pread(fd, ret, CLIENT_TEXT - 1, 0);
    ret[n > 0 ? n : 0] = '\0';
}

static int wait_for(pid_t pid, int err, const char *until, char text[CLIENT_TEXT])
{
    int status = 0;
    for (int ms = 0; ms < END_MS; ms++) {
        if (waitpid(pid, &status, WNOHANG) == pid) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
        }
        read_text(err, text);
        if (until != NULL && strstr(text, until) != NULL) {
            (void)kill(pid, SIGTERM);
            until = NULL;
        }
        service_wait_ms(1);
    }
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    return 256 + SIGKILL;
}

void client_run(struct client_end *ret, client_command *command, const char *line,
    const char *until, unsigned long nth, unsigned long more)
{
    int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);
    if (out < 0 || err < 0) {
        give_up("memfd_create");
    }
    *told = (struct told){.struck = false};
    (void)fflush(stdout); /* or the child has it, too */
    pid_t pid = fork();
    if (pid < 0) {
        give_up("fork");
    }
    if (pid == 0) {
        if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0) {
            give_up("dup2");
        }
        be_client(command, line, nth, more);
    }
    ret->status = wait_for(pid, err, until, ret->err);
    read_text(out, ret->out);
    read_text(err, ret->err);
    ret->struck = told->struck;
    ret->left = told->left;
    ret->size = told->size;
    ret->number = told->number;
    (void)close(out);
    (void)close(err);
}

bool client_starved(const struct client_end *end)
{
    return end->status == 1 && strcasestr(end->err, "memory") != NULL;
}
