#include "handlers/ingest/event_names.h"

static const char *const member_pointers[] = {
    [MEMBER_PAGE] = "/page",
    [MEMBER_USER] = "/user",
    [MEMBER_SITE] = "/site",
    [MEMBER_IP] = "/ip",
    [MEMBER_UA] = "/ua",
    [MEMBER_TS] = "/ts",
    [MEMBER_REFERRER] = "/referrer",
    [MEMBER_ACTIONS] = "/actions",
    [MEMBER_EVENT] = "/event",
    [MEMBER_VISITOR] = "/visitor",
    [MEMBER_COUNTRY] = "/country",
    [MEMBER_LANGUAGE] = "/language",
    [MEMBER_PROPS] = "/props",
    [MEMBER_UTM + UTM_SOURCE] = "/utm_source",
    [MEMBER_UTM + UTM_MEDIUM] = "/utm_medium",
    [MEMBER_UTM + UTM_CAMPAIGN] = "/utm_campaign",
    [MEMBER_UTM + UTM_TERM] = "/utm_term",
    [MEMBER_UTM + UTM_CONTENT] = "/utm_content",
};

/* The length of a name leaves few members to choose from.  As the number of bytes to compare is a
 * constant, the compiler makes a few instructions of each memcmp(). */
enum member event_member_find(struct slice name)
{
    switch (name.n) {
    case 2:
        if (memcmp(name.p, "ts", 2) == 0) {
            return MEMBER_TS;
        }
        if (memcmp(name.p, "ip", 2) == 0) {
            return MEMBER_IP;
        }
        return memcmp(name.p, "ua", 2) == 0 ? MEMBER_UA : MEMBER_UNKNOWN;
    case 4:
        if (memcmp(name.p, "page", 4) == 0) {
            return MEMBER_PAGE;
        }
        if (memcmp(name.p, "user", 4) == 0) {
            return MEMBER_USER;
        }
        return memcmp(name.p, "site", 4) == 0 ? MEMBER_SITE : MEMBER_UNKNOWN;
    case 5:
        if (memcmp(name.p, "event", 5) == 0) {
            return MEMBER_EVENT;
        }
        return memcmp(name.p, "props", 5) == 0 ? MEMBER_PROPS : MEMBER_UNKNOWN;
    case 7:
        if (memcmp(name.p, "visitor", 7) == 0) {
            return MEMBER_VISITOR;
        }
        if (memcmp(name.p, "actions", 7) == 0) {
            return MEMBER_ACTIONS;
        }
        return memcmp(name.p, "country", 7) == 0 ? MEMBER_COUNTRY : MEMBER_UNKNOWN;
    case 8:
        if (memcmp(name.p, "referrer", 8) == 0) {
            return MEMBER_REFERRER;
        }
        if (memcmp(name.p, "language", 8) == 0) {
            return MEMBER_LANGUAGE;
        }
        return (enum member)(MEMBER_UTM + (unsigned)utm_find(name));
    case 10:
    case 11:
    case 12:
        return (enum member)(MEMBER_UTM + (unsigned)utm_find(name));
    default:
        return MEMBER_UNKNOWN;
    }
}

const char *event_member_pointer(enum member member)
{
    return member_pointers[member];
}
