#include "service/reread.h"

#include <stdio.h>
#include <string.h>

extern char **environ;

/* One line for all: the log passes over what repeats itself. */
static void add_name(void *data, const char *name)
{
    char *names = data;
    size_t n = strlen(names);
    (void)snprintf(names + n, LOG_VALUE_MAX - n, "%s%s", n == 0 ? "" : ",", name);
}

static void tell_restart(struct service *s, const struct options *next)
{
    char names[LOG_VALUE_MAX] = "";
    live_tell_rest(&s->options, next, add_name, names);
    if (names[0] != '\0') {
        log_warn(s->logger, "these options changed, which takes effect at the next start",
            log_text("options", names));
    }
}

static void apply(struct service *s, struct live *live)
{
    const struct app *app = live_app(live);
    s->live = live;
    s->app.guard_limit = app->guard_limit; /* no request looks there */
    storage_guard_set_limit(app->storage, &app->guard_limit);
    http_server_set_app(s->server, app);
    logger_set_level(s->logger, live_options(live)->log_level);
}

/* The configuration as it is now.  What is wrong with it changes nothing at all. */
static void reread_config(struct service *s)
{
    char error[OPTIONS_ERROR] = "ingest-burst is too large for ingest-limit to be counted exactly";
    struct options next = {0};
    enum guard_by by;
    struct limit limit;
    struct live *live = NULL;
    bool good =
        options_load(&next, s->argc, s->argv, environ, error) && live_guard(&next, &by, &limit);
    bool changed = good && live_differ(live_options(s->live), &next);
    if (good) {
        tell_restart(s, &next);
    }
    if (changed) {
        live = live_take(&s->app, &next, s->live);
        (void)snprintf(error, sizeof(error), "out of memory");
    }
    if (live != NULL) {
        apply(s, live);
    }
    options_release(&next);
    if (!good || (changed && live == NULL)) {
        log_error(s->logger, "the configuration could not be read again, that of before stays",
            log_text("reason", error));
    } else {
        log_info(s->logger, "read the configuration again", log_bool("changed", changed),
            log_uint("policies", live_app(s->live)->n_policies));
    }
}

/* What can be read again while requests are served. */
void reread(struct service *s)
{
    char error[TOKEN_FILE_ERROR];
    if (s->options.config[0] != '\0') {
        reread_config(s);
    }
    if (s->tokens == NULL && s->options.config[0] == '\0') {
        log_info(s->logger, "nothing to read again", log_text("signal", "SIGHUP"));
    } else if (s->tokens == NULL) {
        return;
    } else if (tokens_reload(s->tokens, error)) {
        log_info(s->logger, "read the tokens again", log_uint("tokens", tokens_count(s->tokens)));
    } else {
        log_error(s->logger, "the tokens could not be read again, those of before stay",
            log_text("reason", error));
    }
}
