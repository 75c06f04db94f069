/* page_rules.h - rules that make one page of many, and sections: many pages that have one name.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A pattern is cut at its slashes.  `*` stands for one part, whatever it is, but not for an empty
 * one.  A last `**` stands for any rest, also for none:
 *
 *     the pattern     fits                              does not fit
 *     /user/X/XX      /user/7, /user/7/, /user/7/posts  /user, /user/
 *
 * (where X is an asterisk, which a comment in C cannot have behind a slash).  A page that fits is
 * counted as the rule's page, for everything: views, visits, lists, who saw it.  The first rule
 * that fits holds.
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

/* The number of a rule, 1..PAGE_RULES_MAX, from its name.  0: it is none. */
unsigned page_rule_number(struct slice name);

/* Read a rule, "PATTERN -> PAGE"; the slices of @ret point into @text.  NULL, or what is wrong, a
 * static text. */
const char *page_rule_parse(struct slice text, struct page_rule *ret) MUST_CHECK;

/* As which page @page is counted: @page, or that of the first rule that fits. */
struct slice page_rules_apply(const struct app *app, struct slice page);

/* The sections that @page is in: ret[0 .. result), at most DIMENSION_SECTIONS_MAX. */
size_t page_sections_of(const struct app *app, struct slice page, struct slice *ret);

/* Leave out those of the sections @names that lie in another one of them, so that no page is in two
 * of those that stay.  The names stand behind a mark, and stay so.  Sections that are not
 * configured any more stay, because nobody knows where they lay.  Returns how many stay. */
size_t page_sections_apart(const struct app *app, struct slice *names, size_t n);

#endif
