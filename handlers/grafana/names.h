/* names.h - names of sites, pages and page sets, as Grafana's data source plugins send them.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * Grafana fills a variable that stands in a text with the format "regex": `example.com` arrives as
 * `example\.com`, `/a` as `\/a`, and several values as `(\/a|\/b)`.  (The source is
 * templateSrv.replace and escapeRegex of @grafana/runtime.)  In JSON payloads a value stands as it
 * is, and several values are an array.  A backslash in front of a character that Grafana does not
 * escape is kept.
 */
#ifndef HANDLERS_GRAFANA_NAMES_H
#define HANDLERS_GRAFANA_NAMES_H

#include <jansson.h>
#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* Is @value a text, an integer, or an array of these?  NULL and null are allowed, too: they have no
 * names. */
bool grafana_may_be_names(const json_t *value) MUST_CHECK;

/* Find all names in @value, which is a text, an integer (its digits are the name), or an array of
 * them.  Any other value, also NULL, has no names.  Empty names, and texts that stand for all names
 * ("$__all", "All", "*"), are left out.  Returns a new object whose keys are the names, in order;
 * NULL if memory is out. */
json_t *grafana_names(const json_t *value) MUST_CHECK;

/* The first of @names, which lives as long as it is in @names.  Empty: there is none, or @names is
 * NULL. */
struct slice grafana_first_name(json_t *names);

#endif
