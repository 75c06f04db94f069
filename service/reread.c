#include "service/reread.h"

#include <stdio.h>
#include <string.h>

extern char **environ;

/* One line names all options: the log leaves out records of one message that repeat. */
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
    s->app.guard_limit = app->guard_limit; /* the next live_new() copies this, no request does */
    storage_guard_set_limit(app->storage, &app->guard_limit);
    http_server_set_app(s->server, app);
    logger_set_level(s->logger, live_options(live)->log_level);
}

/* The configuration as it is now, to be released.  False: @ret_error (OPTIONS_ERROR bytes) says
 * what is wrong with it, and nothing is owned. */
static bool load(const struct service *s, struct options *ret, char *ret_error)
{
    if (!options_load(ret, s->argc, s->argv, environ, true, ret_error)) {
        return false;
    }
    enum guard_by by;
    struct limit limit;
    if (live_guard(ret, &by, &limit)) {
        return true;
    }
    (void)snprintf(ret_error, OPTIONS_ERROR,
        "ingest-burst is too large for ingest-limit to be counted exactly");
    options_release(ret);
    return false;
}

static void tell_refused(struct service *s, const char *reason)
{
    log_error(s->logger, "the configuration could not be read again, that of before stays",
        log_text("reason", reason));
}

/* Read the configuration again.  One with a fault changes nothing at all. */
static void reread_config(struct service *s)
{
    char error[OPTIONS_ERROR];
    struct options next;
    if (!load(s, &next, error)) {
        tell_refused(s, error);
        return;
    }
    tell_restart(s, &next);
    bool changed = live_differ(live_options(s->live), &next);
    if (changed) {
        struct live *live = live_take(&s->app, &next, s->live);
        if (live == NULL) {
            options_release(&next);
            tell_refused(s, "out of memory");
            return;
        }
        apply(s, live);
    }
    options_release(&next); /* zeroed, where the options were taken over */
    log_info(s->logger, "read the configuration again", log_bool("changed", changed),
        log_uint("policies", live_app(s->live)->n_policies));
}

void reread(struct service *s)
{
    char error[TOKEN_FILE_ERROR];
    if (s->options.config[0] != '\0') {
        reread_config(s);
    } else if (s->tokens == NULL) {
        log_info(s->logger, "nothing to read again", log_text("signal", "SIGHUP"));
    }
    if (s->tokens != NULL && tokens_reload(s->tokens, error)) {
        log_info(s->logger, "read the tokens again", log_uint("tokens", tokens_count(s->tokens)));
    } else if (s->tokens != NULL) {
        log_error(s->logger, "the tokens could not be read again, those of before stay",
            log_text("reason", error));
    }
}
