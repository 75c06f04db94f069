/* campaign.h - the campaign that a page was reached by: utm_ parameters in the query of its URL.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * The query is read leniently, as browsers write it and strangers change it: a bad escape stands
 * for itself, and of a parameter that is given twice the first one counts.  Source of the five
 * names: Google Analytics, "Custom campaigns"; every tool of the field knows them.
 */
#ifndef HANDLERS_DIMENSION_CAMPAIGN_H
#define HANDLERS_DIMENSION_CAMPAIGN_H

#include <stdbool.h>

#include "storage/base/slice.h"

enum utm { UTM_SOURCE, UTM_MEDIUM, UTM_CAMPAIGN, UTM_TERM, UTM_CONTENT, UTM_N };

/* The name of a parameter. */
struct slice utm_name(enum utm which);

/* The parameter of a name as "utm_source".  UTM_N: it is none. */
enum utm utm_find(struct slice name);

/* Has @page, a path or a URL, a query with a parameter whose name begins with utm_? */
bool campaign_has(struct slice page);

/* Read the parameters of @page's query into those of @utm that are empty.  Values are decoded to
 * @to, which has as many bytes as @page.  A value that is no UTF-8, or has control characters, is
 * passed over, and a long one is cut off behind a whole character. */
void campaign_read(struct slice page, char *to, struct slice utm[UTM_N]);

#endif
