#include "storage/redis/url.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "storage/base/buffer.h"

#define DB_MAX        100000
#define UNIX_PATH_MAX 107
#define PORT_CLUSTER  6379
#define PORT_SENTINEL 26379

static const char bad_form[] =
    "a Redis URL is redis://[user:password@]host:port[/db], unix:/path, "
    "redis-cluster://host[:port].. or redis-sentinel://host[:port]../master";
static const char no_tls[] =
    "there is no TLS to Redis: use redis:// and a tunnel, as stunnel, beside tallyd";
static const char bad_path[] =
    "behind unix: stands the absolute path of a unix socket, of at most 107 bytes";
static const char bad_login[] =
    "before the @ stands user:password, percent-encoded, %2F for / and %40 for @; a user has at "
    "most 127 bytes, a password 255";
static const char bad_host[] =
    "a host is a name or an address of at most 255 bytes, an IPv6 address in brackets; a port is 1 "
    "to 65535";
static const char no_port[] = "redis:// needs a port: redis://host:port";
static const char no_host[] = "a host is missing: host[:port][,host[:port]..]";
static const char too_many[] = "there are more than 16 hosts";
static const char twice[] = "a host stands twice with the same port";
static const char bad_db[] = "a database is a number from 0 to 100000";
static const char cluster_db[] =
    "a cluster has no databases: nothing follows the hosts of redis-cluster://";
static const char no_master[] =
    "redis-sentinel:// needs the name of the master: redis-sentinel://host[:port]/master";
static const char bad_master[] =
    "the name of a master has 1 to 127 letters, digits, dots, hyphens and underscores";
static const char bad_query[] =
    "behind the ? stand sentinel_user= and sentinel_password=, each once, percent-encoded";
static const char no_sentinel_password[] = "sentinel_user= needs sentinel_password=";

/* ---- pieces of text ---- */

static struct slice slice_between(const char *p, const char *end)
{
    return (struct slice){p, (size_t)(end - p)};
}

/* Cut @text at the first @c.  *ret_rest is what follows @c; its p is NULL if there is no @c. */
static struct slice slice_cut(struct slice text, char c, struct slice *ret_rest)
{
    const char *at = text.n > 0 ? memchr(text.p, c, text.n) : NULL;
    *ret_rest = at == NULL ? (struct slice){NULL, 0} : slice_between(at + 1, text.p + text.n);
    return at == NULL ? text : slice_between(text.p, at);
}

/* Percent-decode @from into @text of @size bytes.  False: @from holds a blank, a control character,
 * a NUL or a bad %, or is too long. */
static bool percent_decode(struct slice from, char *text, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < from.n; i++) {
        char c = from.p[i];
        if ((unsigned char)c <= ' ') {
            return false;
        }
        if (c == '%') {
            if (i + 2 >= from.n || hex_digit(from.p[i + 1]) < 0 || hex_digit(from.p[i + 2]) < 0) {
                return false;
            }
            c = (char)(hex_digit(from.p[i + 1]) * 16 + hex_digit(from.p[i + 2]));
            i += 2;
        }
        if (c == '\0' || at + 1 >= size) {
            return false;
        }
        text[at++] = c;
    }
    text[at] = '\0';
    return true;
}

/* The value of 1 to 9 decimal digits, which is at most @max; -1 for anything else. */
static int parse_number(struct slice digits, int max)
{
    int64_t value = digits.n <= 9 ? decimal_parse(digits, -1) : -1;
    return value <= max ? (int)value : -1;
}

/* ---- what stands before the path ---- */

/* Read "user:password@" into @ret, if *hosts has an "@", and cut that off *hosts.  False: the login
 * is wrong. */
static bool parse_login(struct slice *hosts, struct redis_login *ret)
{
    const char *at = hosts->n > 0 ? memrchr(hosts->p, '@', hosts->n) : NULL;
    if (at == NULL) {
        return true;
    }
    const char *login = hosts->p;
    struct slice password;
    struct slice user = slice_cut(slice_between(login, at), ':', &password);
    *hosts = slice_between(at + 1, hosts->p + hosts->n);
    size_t n = (size_t)(at - login);
    return password.p != NULL && memchr(login, '@', n) == NULL && memchr(login, '/', n) == NULL &&
           percent_decode(user, ret->user, sizeof(ret->user)) &&
           percent_decode(password, ret->password, sizeof(ret->password));
}

/* Read host[:port] or [v6][:port] into @ret.  A text without a port gets @port; where @port is 0
 * such a text is refused.  NULL, or the fault. */
static const char *parse_address(struct slice text, int port, struct redis_address *ret)
{
    bool v6 = text.n > 0 && *text.p == '[';
    struct slice rest;
    struct slice host = v6 ? slice_cut(slice_between(text.p + 1, text.p + text.n), ']', &rest)
                           : slice_cut(text, ':', &rest);
    if (v6 && (rest.p == NULL || (rest.n > 0 && *rest.p != ':'))) {
        return bad_host;
    }
    if (v6) {
        rest = rest.n == 0 ? (struct slice){NULL, 0} : (struct slice){rest.p + 1, rest.n - 1};
    }
    if (host.n == 0 || host.n >= sizeof(ret->host)) {
        return host.n == 0 && !v6 ? no_host : bad_host;
    }
    for (size_t i = 0; i < host.n; i++) {
        if ((unsigned char)host.p[i] <= ' ' || strchr("?#/@[]", host.p[i]) != NULL) {
            return bad_host;
        }
    }
    if (rest.p == NULL && port == 0) {
        return no_port;
    }
    ret->port = rest.p == NULL ? port : rest.n <= 5 ? parse_number(rest, 65535) : -1;
    memcpy(ret->host, host.p, host.n);
    ret->host[host.n] = '\0';
    return ret->port > 0 ? NULL : bad_host;
}

/* Does @url have @address already? */
static bool stands_before(const struct redis_url *url, const struct redis_address *address)
{
    for (size_t i = 0; i < url->n_seeds; i++) {
        if (redis_address_equal(&url->seeds[i], address)) {
            return true;
        }
    }
    return false;
}

/* Add the addresses of a list, host[:port][,host[:port]..], to ret->seeds.  NULL, or the fault. */
static const char *parse_seeds(struct slice text, int port, struct redis_url *ret)
{
    do {
        struct redis_address address = {.port = 0};
        const char *fault = parse_address(slice_cut(text, ',', &text), port, &address);
        if (fault != NULL) {
            return fault;
        }
        if (ret->n_seeds == REDIS_SEEDS_MAX) {
            return too_many;
        }
        if (stands_before(ret, &address)) {
            return twice;
        }
        ret->seeds[ret->n_seeds++] = address;
    } while (text.p != NULL);
    return NULL;
}

/* ---- the four forms ---- */

static const char *parse_unix(const char *path, struct redis_url *ret)
{
    size_t n = strlen(path);
    if (n < 2 || n > UNIX_PATH_MAX || path[0] != '/' || path[1] == '/') {
        return bad_path;
    }
    ret->kind = REDIS_ONE;
    memcpy(ret->seeds[0].host, path, n + 1);
    ret->n_seeds = 1;
    return NULL;
}

static const char *parse_one(struct slice text, struct redis_url *ret)
{
    struct slice db;
    ret->kind = REDIS_ONE;
    if (!parse_login(&text, &ret->login)) {
        return bad_login;
    }
    struct slice host = slice_cut(text, '/', &db);
    const char *fault = parse_address(host, 0, &ret->seeds[0]);
    ret->n_seeds = 1;
    ret->db = db.p == NULL ? 0 : parse_number(db, DB_MAX);
    return fault != NULL ? fault : ret->db < 0 ? bad_db : NULL;
}

/* Read the login and the hosts in @text.  A "/" in the login that is not percent-encoded begins the
 * path too early: then the "@" is in @path, which is refused. */
static const char *parse_authority(
    struct slice text, struct slice path, int port, struct redis_url *ret)
{
    if (path.n > 0 && memchr(path.p, '@', path.n) != NULL) {
        return bad_login;
    }
    return parse_login(&text, &ret->login) ? parse_seeds(text, port, ret) : bad_login;
}

static const char *parse_cluster(struct slice text, struct redis_url *ret)
{
    struct slice path;
    struct slice authority = slice_cut(text, '/', &path);
    ret->kind = REDIS_CLUSTER;
    const char *fault = parse_authority(authority, path, PORT_CLUSTER, ret);
    return fault == NULL && path.p != NULL ? cluster_db : fault;
}

static const char *parse_master(struct slice name, char *ret, size_t size)
{
    if (name.n == 0) {
        return no_master;
    }
    for (size_t i = 0; i < name.n; i++) {
        if (!isalnum((unsigned char)name.p[i]) && strchr(".-_", name.p[i]) == NULL) {
            return bad_master;
        }
    }
    if (name.n >= size) {
        return bad_master;
    }
    memcpy(ret, name.p, name.n);
    ret[name.n] = '\0';
    return NULL;
}

/* Read sentinel_user=U&sentinel_password=P, in either order, into @ret.  NULL, or the fault. */
static const char *parse_query(struct slice query, struct redis_login *ret)
{
    bool has_user = false, has_password = false;
    while (query.p != NULL) {
        struct slice value;
        struct slice name = slice_cut(slice_cut(query, '&', &query), '=', &value);
        bool is_user = slice_equal(name, SLICE("sentinel_user"));
        bool *had = is_user ? &has_user : &has_password;
        if (value.p == NULL || *had ||
            (!is_user && !slice_equal(name, SLICE("sentinel_password")))) {
            return bad_query;
        }
        *had = true;
        if (!percent_decode(value, is_user ? ret->user : ret->password,
                is_user ? sizeof(ret->user) : sizeof(ret->password))) {
            return bad_query;
        }
    }
    return ret->user[0] != '\0' && ret->password[0] == '\0' ? no_sentinel_password : NULL;
}

static const char *parse_sentinel(struct slice text, struct redis_url *ret)
{
    struct slice path, query, db;
    struct slice authority = slice_cut(text, '/', &path);
    ret->kind = REDIS_SENTINEL;
    struct slice master_db = slice_cut(path, '?', &query); /* the query's password may have an @ */
    const char *fault = parse_authority(authority, master_db, PORT_SENTINEL, ret);
    if (fault != NULL) {
        return fault;
    }
    fault = parse_master(slice_cut(master_db, '/', &db), ret->master, sizeof(ret->master));
    ret->db = db.p == NULL ? 0 : parse_number(db, DB_MAX);
    if (fault != NULL || ret->db < 0) {
        return fault != NULL ? fault : bad_db;
    }
    return parse_query(query, &ret->sentinel);
}

/* Does @url begin with @scheme?  Then *ret is the rest. */
static bool behind(const char *url, const char *scheme, struct slice *ret)
{
    size_t n = strlen(scheme);
    if (strncmp(url, scheme, n) != 0) {
        return false;
    }
    *ret = slice_of(url + n);
    return true;
}

const char *redis_url_parse(const char *url, struct redis_url *ret)
{
    struct redis_url parsed = {.kind = REDIS_ONE};
    struct slice rest;
    const char *fault = bad_form;
    if (behind(url, "unix:", &rest)) {
        fault = parse_unix(rest.p, &parsed);
    } else if (behind(url, "redis://", &rest)) {
        fault = parse_one(rest, &parsed);
    } else if (behind(url, "redis-cluster://", &rest)) {
        fault = parse_cluster(rest, &parsed);
    } else if (behind(url, "redis-sentinel://", &rest)) {
        fault = parse_sentinel(rest, &parsed);
    } else if (behind(url, "rediss://", &rest)) {
        fault = no_tls;
    }
    if (fault == NULL) {
        *ret = parsed;
    }
    return fault;
}
