/* names.h - names as Grafana's data source plugins send them.
 *
 * Layer: handlers, pure.  Thread-safe.
 * A variable that stands in text is filled in with the format "regex": `example.com` arrives as
 * `example\.com`, `/a` as `\/a`, several values as `(\/a|\/b)` (templateSrv.replace and escapeRegex
 * of
 * @grafana/runtime).  In JSON payloads values stand as they are, several as an array.  A backslash
 * that is not in front of one of the characters that Grafana escapes is kept.
 */
#ifndef HANDLERS_GRAFANA_NAMES_H
#define HANDLERS_GRAFANA_NAMES_H

#include <jansson.h>

#include "storage/base/slice.h"

/* All names in @value, a text or an array of such; anything else, NULL too, has none.  Numbers
 * count as their digits.  Empty names, and what stands for all of them ("$__all", "All", "*"), are
 * left out.  A new object whose keys, in the same order, are the names; NULL if memory is out. */
json_t *grafana_names(const json_t *value);

/* The first of @names, "" if there is none or @names is NULL; valid as long as it stays there. */
struct slice grafana_first_name(json_t *names);

#endif
