#include "handlers/reply/json_object.h"

#include <stdio.h>
#include <string.h>

#include "handlers/reply/json_body.h"
#include "handlers/reply/problem.h"

#define MEMBER_SHOWN 64 /* bytes of the longest name that an answer repeats */

bool json_object_refuse(struct http_exchange *exchange, const char *pointer, const char *detail)
{
    problem_reply_errors(&exchange->response, PROBLEM_UNACCEPTABLE,
        json_pack("[{s:s,s:s}]", "pointer", pointer, "detail", detail), "%s", detail);
    return false;
}

json_t *json_object_body(struct http_exchange *exchange)
{
    if (!json_body_type(exchange, false)) {
        return NULL;
    }
    json_t *root = json_body_read(exchange, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES);
    if (root == NULL) {
        return NULL;
    }
    if (!json_is_object(root)) {
        json_decref(root);
        (void)json_object_refuse(exchange, "", "the body must be an object");
        return NULL;
    }
    return root;
}

bool json_object_only(
    struct http_exchange *exchange, json_t *root, const char *const *names, size_t n)
{
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
    {
        bool known = false;
        for (size_t i = 0; i < n; i++) {
            known = known || strcmp(name, names[i]) == 0;
        }
        if (!known) {
            char detail[128] = "the body has a member that is not known here";
            if (strlen(name) <= MEMBER_SHOWN) {
                (void)snprintf(detail, sizeof(detail),
                    "the body has a member that is not known here: %s", name);
            }
            return json_object_refuse(exchange, "", detail);
        }
    }
    return true;
}
