#include "service/tokens/tokens.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "handlers/reply/problem.h"

struct tokens {
    char *path;
    bool open_too;
    pthread_mutex_t lock; /* guards the pointer `set`, until that set has one holder more */
    struct token_set *set;
};

struct tokens *tokens_open(const char *path, bool open_too, char *ret_error)
{
    struct token_set *set = token_file_read(path, ret_error);
    if (set == NULL) {
        return NULL;
    }
    struct tokens *tokens = calloc(1, sizeof(*tokens));
    char *copy = strdup(path);
    if (tokens == NULL || copy == NULL || pthread_mutex_init(&tokens->lock, NULL) != 0) {
        (void)snprintf(ret_error, TOKEN_FILE_ERROR, "out of memory");
        free(tokens);
        free(copy);
        token_set_free(set);
        return NULL;
    }
    tokens->path = copy;
    tokens->open_too = open_too;
    tokens->set = set;
    return tokens;
}

void tokens_close(struct tokens *tokens)
{
    if (tokens != NULL) {
        tokens_let_go(tokens->set);
        pthread_mutex_destroy(&tokens->lock);
        free(tokens->path);
        free(tokens);
    }
}

bool tokens_reload(struct tokens *tokens, char *ret_error)
{
    struct token_set *set = token_file_read(tokens->path, ret_error);
    if (set == NULL) {
        return false;
    }
    pthread_mutex_lock(&tokens->lock);
    struct token_set *old = tokens->set;
    tokens->set = set;
    pthread_mutex_unlock(&tokens->lock);
    tokens_let_go(old);
    return true;
}

static struct token_set *hold(struct tokens *tokens)
{
    pthread_mutex_lock(&tokens->lock);
    struct token_set *set = tokens->set;
    (void)atomic_fetch_add(&set->holders, 1);
    pthread_mutex_unlock(&tokens->lock);
    return set;
}

void tokens_let_go(struct token_set *held)
{
    if (held != NULL && atomic_fetch_sub(&held->holders, 1) == 1) {
        token_set_free(held);
    }
}

size_t tokens_count(struct tokens *tokens)
{
    struct token_set *set = hold(tokens);
    size_t n = set->n;
    tokens_let_go(set);
    return n;
}

/* ---- judging ---- */

/* The token behind "Bearer ", in upper or lower case.  False: there is none. */
static bool read_bearer(struct slice field, struct slice *ret)
{
    static const char scheme[] = "bearer";
    size_t at = sizeof(scheme) - 1;
    if (field.n <= at || strncasecmp(field.p, scheme, at) != 0 || field.p[at] != ' ') {
        return false;
    }
    while (at < field.n && field.p[at] == ' ') {
        at++;
    }
    *ret = (struct slice){field.p + at, field.n - at};
    return ret->n > 0 && ret->n <= TOKEN_MAX;
}

static bool refuse(struct http_response *response, const char *detail, const char *challenge)
{
    problem_reply(response, PROBLEM_UNAUTHORIZED, "%s", detail);
    (void)problem_add_header(
        response, "WWW-Authenticate", challenge); /* the first: there is room */
    return false;
}

static bool lacks_scope(struct http_response *response, const char *scope)
{
    char challenge[sizeof(((struct http_header *)0)->value)];
    problem_reply(response, PROBLEM_FORBIDDEN, "the token lacks the scope %s", scope);
    (void)snprintf(challenge, sizeof(challenge),
        ACCESS_CHALLENGE ", error=\"insufficient_scope\", scope=\"%s\"", scope);
    (void)problem_add_header(response, "WWW-Authenticate", challenge);
    return false;
}

bool tokens_admit(struct tokens *tokens, const struct route *route, struct http_exchange *exchange,
    struct token_set **ret_held)
{
    struct http_response *response = &exchange->response;
    unsigned needed = access_needed(route, tokens->open_too);
    struct slice shown;
    *ret_held = NULL;
    if (needed == 0) {
        return true;
    }
    if ((exchange->request.repeated >> FIELD_AUTHORIZATION & 1) != 0) {
        problem_reply(response, PROBLEM_MALFORMED, "Authorization stands twice");
        return false;
    }
    if (!read_bearer(exchange->request.fields[FIELD_AUTHORIZATION], &shown)) {
        exchange->tokenless = access_tokenless(route, exchange);
        return exchange->tokenless || refuse(response, ACCESS_NEEDED, ACCESS_CHALLENGE);
    }
    struct token_set *set = hold(tokens);
    exchange->access = token_set_find(set, shown);
    if (exchange->access == NULL) {
        tokens_let_go(set);
        return refuse(
            response, "the token is not known", ACCESS_CHALLENGE ", error=\"invalid_token\"");
    }
    *ret_held = set;
    return (exchange->access->scopes & needed) != 0 ||
           lacks_scope(response, access_scope_name((enum access_scope)needed));
}
