/* nginx.h - the logs that nginx writes with a log_format of the user's.
 *
 * Layer: service/formats, pure.  Thread-safe.
 *
 * nginx's variables have names, whether a log_format writes a JSON object whose members are named
 * as the variables (json_log.h, with the table below), or a line of text: a template.
 *
 * A template is taken apart once.  In a line, a variable's text ends at the first place where the
 * text stands that follows the variable; the last variable takes the rest.  nginx writes a quote
 * inside a variable as \x22, so a quoted variable ends at its quote.  Variables that
 * say nothing of a page view are passed over.
 *
 * Source: nginx.org/en/docs/http/ngx_http_log_module.html#log_format, and ngx_http_core_module
 * (embedded variables).
 */
#ifndef SERVICE_FORMATS_NGINX_H
#define SERVICE_FORMATS_NGINX_H

#include "service/formats/log_fields.h"

#define NGINX_PARTS_MAX 64

/* remote_addr, time_local, request, status, http_user_agent, host.. */
extern const struct log_table nginx_variables;

/* A text, and the variable that follows the text.  The last part may have no variable. */
struct nginx_part {
    struct slice text; /* borrowed from the format */
    bool has_variable;
    const struct log_member *member; /* NULL: the variable is passed over */
};

struct nginx_template {
    size_t n; /* 0: there is no template */
    struct nginx_part parts[NGINX_PARTS_MAX];
};

/* Take @format apart, as in '$remote_addr - $remote_user [$time_local] "$request" $status'.  *ret
 * borrows @format.  NULL, or what is wrong with the format (static); then *ret is untouched. */
const char *nginx_template_compile(const char *format, struct nginx_template *ret) MUST_CHECK;

/* Parse a line that was written by @tmpl.  NULL, or what is wrong (static); then *ret is
 * untouched. */
const char *nginx_template_parse(
    const struct nginx_template *tmpl, struct slice line, struct log_line *ret) MUST_CHECK;

#endif
