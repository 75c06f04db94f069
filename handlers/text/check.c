#include "handlers/text/check.h"

#include <arpa/inet.h>

#include "handlers/text/ascii.h"
#include "storage/job/counted_name.h"

/* Is one of the eight bytes at @p a C0 control or DEL?  A subtraction borrows into the top bit of a
 * byte that is less than a blank, or that is 0 after an XOR with DEL.  A borrow can only add marks
 * above a true one.  Bytes from 0x80 on are masked out. */
static bool word_has_control(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    uint64_t marks = (word - ASCII_WORD(' ')) | ((word ^ ASCII_WORD(0x7f)) - ASCII_WORD(1));
    return (marks & ~word & ASCII_WORD(0x80)) != 0;
}

bool text_has_control(struct slice text)
{
    size_t i = 0;
    for (; text.n - i >= 8; i += 8) {
        if (word_has_control(text.p + i)) {
            return true;
        }
    }
    for (; i < text.n; i++) {
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f) {
            return true;
        }
    }
    return false;
}

bool name_valid(struct slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!ascii_is_alnum(c) && c != '.' && c != '_' && c != '-') {
            return false;
        }
    }
    return name.n >= 1 && name.n <= NAME_MAX_BYTES;
}

const char *name_check(struct slice name)
{
    return name_valid(name) ? NULL : NAME_DETAIL;
}

/* The details of a text that is empty, that is too long, and that has a control character. */
struct text_faults {
    const char *empty, *too_long, *control;
};

#define FAULTS(member, max)                                                                        \
    {                                                                                              \
        member " must not be empty", member " must be at most " max " bytes",                      \
            member " must not hold control characters"                                             \
    }

static const char *check_text(struct slice text, size_t max, const struct text_faults *faults)
{
    return text.n == 0              ? faults->empty
           : text.n > max           ? faults->too_long
           : text_has_control(text) ? faults->control
                                    : NULL;
}

const char *event_check_page(struct slice page)
{
    static const struct text_faults faults = FAULTS("page", "2048");
    return check_text(page, EVENT_PAGE_MAX, &faults);
}

const char *event_check_user(struct slice user)
{
    static const struct text_faults faults = FAULTS("user", "256");
    return check_text(user, EVENT_USER_MAX, &faults);
}

const char *event_check_name(struct slice name)
{
    static const struct text_faults faults = FAULTS("event", "128");
    return check_text(name, EVENT_NAME_MAX, &faults);
}

const char *event_check_visitor(struct slice visitor)
{
    static const struct text_faults faults = FAULTS("visitor", "256");
    return check_text(visitor, EVENT_VISITOR_MAX, &faults);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || ascii_is_digit(c);
}

/* Has @text no other bytes than small letters, digits and @marks? */
static bool is_name(struct slice text, const char *marks, size_t n_marks)
{
    for (size_t i = 0; i < text.n; i++) {
        if (!is_name_byte(text.p[i]) && memchr(marks, text.p[i], n_marks) == NULL) {
            return false;
        }
    }
    return true;
}

const char *event_check_site(struct slice site)
{
    if (site.n == 0 || site.n > EVENT_SITE_MAX) {
        return "site must be 1 to 64 bytes";
    }
    if (!is_name_byte(site.p[0]) || !is_name(site, "._-", 3)) {
        return "site must match [a-z0-9][a-z0-9._-]*";
    }
    return NULL;
}

const char *event_check_action(struct slice action)
{
    if (action.n == 0 || action.n > EVENT_ACTION_MAX) {
        return "an action must be 1 to 64 bytes";
    }
    if (!is_name(action, "._:-", 4)) {
        return "an action must match [a-z0-9._:-]+";
    }
    return NULL;
}

const char *event_check_agent(struct slice agent)
{
    return agent.n > EVENT_TEXT_MAX ? "ua must be at most 16384 bytes" : NULL;
}

const char *event_check_referrer(struct slice referrer)
{
    return referrer.n > EVENT_TEXT_MAX ? "referrer must be at most 16384 bytes" : NULL;
}

const char *event_check_value(struct slice value)
{
    if (value.n > DIMENSION_VALUE_MAX) {
        return "must be at most 256 bytes";
    }
    return text_has_control(value) ? "must have no control characters" : NULL;
}

const char *event_check_time(int64_t at_s, int64_t oldest_s, int64_t latest_s)
{
    if (at_s > latest_s) {
        return "ts is too far in the future";
    }
    if (at_s < oldest_s) {
        return "ts is older than everything that is kept";
    }
    return NULL;
}

/* Read one of the four numbers of an IPv4 address.  Returns the byte behind the number; NULL: there
 * is no such number. */
static const char *parse_octet(const char *p, const char *end, uint8_t *ret)
{
    const char *start = p;
    unsigned value = 0;
    for (; p < end && ascii_is_digit(*p); p++) {
        value = value * 10 + (unsigned)(*p - '0');
        if (value > 255 || (p > start && *start == '0')) {
            return NULL;
        }
    }
    if (p == start) {
        return NULL;
    }
    *ret = (uint8_t)value;
    return p;
}

/* Read an IPv4 address.  Nearly every event has one, so this is written by hand: inet_pton() wants
 * a copy with a NUL. */
static bool parse_ipv4(struct slice text, uint8_t bytes[4])
{
    const char *p = text.p;
    const char *end = text.p + text.n;
    for (int i = 0; i < 4; i++) {
        if (i > 0 && (p == end || *p++ != '.')) {
            return false;
        }
        p = parse_octet(p, end, &bytes[i]);
        if (p == NULL) {
            return false;
        }
    }
    return p == end;
}

static bool parse_ipv6(struct slice text, uint8_t bytes[16])
{
    char copy[INET6_ADDRSTRLEN];
    if (text.n >= sizeof(copy) || memchr(text.p, 0, text.n) != NULL) {
        return false;
    }
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    return inet_pton(AF_INET6, copy, bytes) == 1;
}

/* Make an IPv4-mapped IPv6 address the IPv4 one. */
static void unmap(struct event_address *address)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    if (memcmp(address->bytes, prefix, sizeof(prefix)) != 0) {
        return;
    }
    struct event_address inner = {.len = 4};
    memcpy(inner.bytes, address->bytes + sizeof(prefix), 4);
    *address = inner;
}

const char *event_parse_address(struct slice text, struct event_address *ret)
{
    if (text.n == 0) {
        return "ip must be an IPv4 or IPv6 address";
    }
    struct event_address address = {.len = 4};
    if (!parse_ipv4(text, address.bytes)) {
        if (!parse_ipv6(text, address.bytes)) {
            return "ip must be an IPv4 or IPv6 address";
        }
        address.len = 16;
        unmap(&address);
    }
    *ret = address;
    return NULL;
}
