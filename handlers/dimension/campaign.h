/* campaign.h - the campaign that a visitor came by: utm_ parameters in the query of a page's URL.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * The query is read leniently, because anybody may have written the link: a bad escape stands for
 * itself, and of a parameter that is given twice the first value counts.  Source of the five names:
 * Google Analytics, "Custom campaigns"; every web analytics tool knows them.
 */
#ifndef HANDLERS_DIMENSION_CAMPAIGN_H
#define HANDLERS_DIMENSION_CAMPAIGN_H

#include <stdbool.h>

#include "storage/base/slice.h"

enum utm { UTM_SOURCE, UTM_MEDIUM, UTM_CAMPAIGN, UTM_TERM, UTM_CONTENT, UTM_N };

/* The name of a parameter, as "utm_source": static. */
struct slice utm_name(enum utm which);

/* The parameter with the name @name.  UTM_N: it is none of them. */
enum utm utm_find(struct slice name);

/* Has @page, a path or a URL, a query in which "utm_" stands?  Else it has no campaign. */
bool campaign_has(struct slice page);

/* Read the parameters of @page's query into those of @utm that are empty.  Values are decoded to
 * @to, which has room for as many bytes as @page has and must live as long as @utm.  A value that
 * is no UTF-8, or has control characters, is ignored.  A value of more than DIMENSION_VALUE_MAX
 * bytes is cut off behind a whole character. */
void campaign_read(struct slice page, char *to, struct slice utm[UTM_N]);

#endif
