#include "service/tokens/tokens.h"

#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "handlers/reply/problem.h"
#include "storage/base/cond.h"

struct tokens {
    char *path;
    bool open_too;
    pthread_mutex_t lock; /* guards the pointer `set`, also while a holder is added to that set */
    struct token_set *set;
};

struct tokens *tokens_open(const char *path, bool open_too, char *ret_error)
{
    struct token_set *set = token_file_read(path, false, ret_error);
    if (set == NULL) {
        return NULL;
    }
    struct tokens *tokens = calloc(1, sizeof(*tokens));
    char *copy = strdup(path);
    if (tokens == NULL || copy == NULL) {
        (void)snprintf(ret_error, TOKEN_FILE_ERROR, "out of memory");
        free(tokens);
        free(copy);
        token_set_free(set);
        return NULL;
    }
    mutex_init(&tokens->lock);
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
    struct token_set *set = token_file_read(tokens->path, true, ret_error);
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

/* Take what follows @scheme, whose case does not matter, and blanks.  False: the scheme is another
 * one, or nothing follows. */
static bool read_scheme(struct slice field, struct slice scheme, struct slice *ret)
{
    size_t at = scheme.n;
    if (field.n <= at || strncasecmp(field.p, scheme.p, at) != 0 || field.p[at] != ' ') {
        return false;
    }
    while (at < field.n && field.p[at] == ' ') {
        at++;
    }
    *ret = (struct slice){field.p + at, field.n - at};
    return ret->n > 0;
}

static bool read_bearer(struct slice field, struct slice *ret)
{
    return read_scheme(field, SLICE("bearer"), ret) && ret->n <= TOKEN_MAX;
}

/* Take the user name of Basic (RFC 7617), decoded into @to.  The password does not matter. */
static bool read_basic(struct slice field, char to[static TOKEN_MAX + 1], struct slice *ret)
{
    struct slice coded;
    size_t n = 0;
    if (!read_scheme(field, SLICE("basic"), &coded) ||
        sodium_base642bin((unsigned char *)to, TOKEN_MAX + 1, coded.p, coded.n, NULL, &n, NULL,
            sodium_base64_VARIANT_ORIGINAL) != 0) {
        return false;
    }
    struct slice decoded = {to, n};
    return slice_take_until(&decoded, ':', ret) && ret->n > 0;
}

static bool refuse(struct http_response *response, const char *detail, const char *challenge)
{
    problem_reply(response, PROBLEM_UNAUTHORIZED, "%s", detail);
    (void)problem_add_header(
        response, "WWW-Authenticate", challenge); /* the first header: there is room */
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

static bool lacks_sites(struct http_response *response)
{
    problem_reply(response, PROBLEM_FORBIDDEN,
        "the token is good for some sites only, and this request is about all of them");
    return false;
}

bool tokens_show(struct tokens *tokens, const struct route *route, struct slice shown,
    struct http_exchange *exchange, struct token_set **ret_held)
{
    struct http_response *response = &exchange->response;
    unsigned needed = access_needed(route, tokens->open_too);
    struct token_set *set = hold(tokens);
    exchange->access = shown.n > 0 && shown.n <= TOKEN_MAX ? token_set_find(set, shown) : NULL;
    if (exchange->access == NULL) {
        tokens_let_go(set);
        return refuse(response,
            "the token is not known; a new one counts when its file has been read again",
            ACCESS_CHALLENGE ", error=\"invalid_token\"");
    }
    exchange->tokenless = false;
    *ret_held = set;
    if ((exchange->access->scopes & needed) == 0) {
        return lacks_scope(response, access_scope_name((enum access_scope)needed));
    }
    bool is_bound = exchange->access->n_sites > 0;
    return (route->flags & ROUTE_ALL_SITES) == 0 || !is_bound || lacks_sites(response);
}

bool tokens_admit(struct tokens *tokens, const struct route *route, struct http_exchange *exchange,
    struct token_set **ret_held)
{
    struct http_response *response = &exchange->response;
    struct slice field = exchange->request.fields[FIELD_AUTHORIZATION];
    char user[TOKEN_MAX + 1];
    struct slice shown;
    *ret_held = NULL;
    if (access_needed(route, tokens->open_too) == 0) {
        return true;
    }
    if ((exchange->request.repeated >> FIELD_AUTHORIZATION & 1) != 0) {
        problem_reply(response, PROBLEM_MALFORMED, "Authorization stands twice");
        return false;
    }
    bool basic = (route->flags & ROUTE_BASIC) != 0 && read_basic(field, user, &shown);
    if (!basic && !read_bearer(field, &shown)) {
        exchange->tokenless = access_tokenless(route, exchange);
        return exchange->tokenless || refuse(response, ACCESS_NEEDED, ACCESS_CHALLENGE);
    }
    return tokens_show(tokens, route, shown, exchange, ret_held);
}
