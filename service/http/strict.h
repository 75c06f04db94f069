/* strict.h - what the head of a request must be, whatever the HTTP library lets pass.
 *
 * Layer: service, pure: no I/O, no allocation, no HTTP library.  Thread-safe.
 *
 * The rules are RFC 9110 section 5 and RFC 9112 sections 2 to 6.  They are taken strictly where two
 * parties that read a head differently could be played against each other (request smuggling):
 *
 *  - framing that is said twice, or in two ways
 *  - a name that is no token
 *  - a control character in a value
 *  - a missing or a second Host
 *
 * A head that breaks a rule is answered with 400, and the connection is closed: where the next
 * request begins is then unknown.
 *
 * Slices point into the bytes as received; nothing here owns them.
 */
#ifndef SERVICE_HTTP_STRICT_H
#define SERVICE_HTTP_STRICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "handlers/http/http.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* The most fields of a head; the caller answers 431 to more. */
#define HTTP_FIELDS_MAX      100
#define HTTP_FIELDS_MAX_TEXT "100"

struct http_field {
    struct slice name, value;
};

/* A head as the library cut it. */
struct http_head {
    struct slice method, target, version;
    const struct http_field *fields; /* n_fields of them, in order of arrival */
    size_t n_fields;
    size_t size; /* bytes from the method to the end of the empty line */
};

/* What a sound head says about its message.  Slices are empty where the field is absent. */
struct http_message {
    bool chunked;                      /* the body's length is not known beforehand */
    bool expects_continue;             /* the client waits before it sends the body */
    uint64_t content_length;           /* 0 if there is none, or chunked */
    struct slice fields[HTTP_KNOWN_N]; /* by enum http_field_name; the first of several */
    unsigned repeated; /* bits 1 << enum http_field_name: fields that stand more than once */
    struct slice forwarded[HTTP_FORWARDED_MAX]; /* the last X-Forwarded-For fields, in order */
    unsigned n_forwarded;
    struct slice content_encoding; /* "," if there is more than one such field */
    struct slice request_id;       /* X-Request-Id */
};

/* Check @head field by field.  NULL: @head is sound, and *ret is filled.  Else the result is the
 * fault, a static sentence for the client, and *ret is untouched. */
const char *http_strict_check(const struct http_head *head, struct http_message *ret) MUST_CHECK;

/* Check that every byte of the head is accounted for.  Method, target, version and fields must lie
 * one behind the other in one buffer, with exactly one blank, "\r\n", or a colon and blanks between
 * them.  libmicrohttpd cuts the head in place, and that hides what this check finds:
 *
 *  - a NUL, and what follows the NUL in its line
 *  - a folded line, which the library appends to the field's *name*
 *  - a line that ends in a bare LF
 *  - more than one blank in the request line
 *
 * Returns NULL, or the fault as above. */
const char *http_strict_layout(const struct http_head *head) MUST_CHECK;

/* Cut a request target at its first '?'.  An absolute form loses scheme and authority (RFC 9112
 * section 3.2.2).  Neither part is decoded. */
void http_target_split(struct slice target, struct slice *ret_path, struct slice *ret_query);

/* The first X-Request-Id of @head, sound or not; empty: it has none. */
struct slice http_request_id(const struct http_head *head);

#define HTTP_ID_MAX 128

/* May @id be echoed as a request id?  1..HTTP_ID_MAX bytes of [!-~]. */
bool http_request_id_valid(struct slice id);

/* Keep the field @name (empty: none) as FIELD_COUNTRY; case does not matter.  @name must outlive
 * all requests.  Not thread-safe: call this before the first request. */
void http_country_field(struct slice name);

#endif
