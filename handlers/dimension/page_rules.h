/* page_rules.h - rules that count many pages as one, and sections: many pages under one name.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A pattern is cut at its slashes into parts.  `*` stands for any one part that is not empty.  A
 * last `**` stands for any rest, also for none:
 *
 *     the pattern     fits                              does not fit
 *     /user/X/XX      /user/7, /user/7/, /user/7/posts  /user, /user/
 *
 * (where X is an asterisk, which a comment in C cannot have behind a slash).  A page that fits is
 * counted as the rule's page everywhere: in page views, in visits, in lists and in who saw what.
 * The first rule that fits holds.
 */
#ifndef HANDLERS_DIMENSION_PAGE_RULES_H
#define HANDLERS_DIMENSION_PAGE_RULES_H

#include <stdbool.h>

#include "handlers/http/app.h"
#include "storage/base/compiler.h"

#define PAGE_RULES_MAX    100
#define PAGE_SECTIONS_MAX 100

/* Does @page fit @pattern? */
bool page_pattern_fits(struct slice pattern, struct slice page) MUST_CHECK;

/* The number of the rule with the name @name, which is the number in decimal digits without leading
 * zeros: 1..PAGE_RULES_MAX.  0: there is no such rule. */
unsigned page_rule_number(struct slice name);

/* Read a rule, "PATTERN -> PAGE"; the slices of @ret point into @text.  Returns NULL, or what is
 * wrong (static). */
const char *page_rule_parse(struct slice text, struct page_rule *ret) MUST_CHECK;

/* The page that @page is counted as: that of the first rule that fits, else @page itself. */
struct slice page_rules_apply(const struct app *app, struct slice page);

/* Write the names of the sections that @page is in to @ret, which has room for
 * DIMENSION_SECTIONS_MAX.  Returns how many there are; more than that are left out. */
size_t page_sections_of(const struct app *app, struct slice page, struct slice *ret);

/* Leave out of the @n sections @names those that lie in another one of them, so that no page is in
 * two of the sections that stay.  The names have their mark (storage/job/counted_name.h).  Sections
 * that are not configured any more stay, because it is not known what they held.  Returns how many
 * stay. */
size_t page_sections_apart(const struct app *app, struct slice *names, size_t n);

#endif
