#include "handlers/text/robots.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static bool known(struct slice user_agent)
{
    struct robots robots;
    robots_init(&robots);
    return robots_known(&robots, user_agent);
}

#define MOZILLA "Mozilla/5.0 "

Test(robots, those_that_say_so)
{
    static const char *const rows[] = {
        MOZILLA "(compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        MOZILLA "(compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        MOZILLA "AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; "
                "+https://openai.com/gptbot)",
        MOZILLA "(compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
        MOZILLA "(compatible; Baiduspider/2.0)",
        MOZILLA "(compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
        MOZILLA "(X11; Linux x86_64) AppleWebKit/537.36 Chrome/99 Safari/537.36 Chrome-Lighthouse",
        MOZILLA "(compatible; archive.org_bot)",
        "facebookexternalhit/1.1",
        "Twitterbot/1.0",
        "Slackbot-LinkExpanding 1.0",
        "WhatsApp/2.23.20.0",
        "UPTIMEROBOT/2.0",
        "a bot",
        "bot",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect(known(slice_of(rows[i])), "%s", rows[i]);
    }
}

Test(robots, browsers_and_libraries_are_none)
{
    static const char *const rows[] = {
        "",
        MOZILLA "(Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
                "Chrome/140.0.0.0 Safari/537.36",
        MOZILLA "(Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0",
        MOZILLA "(Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
                "Version/18.5 Safari/605.1.15",
        MOZILLA "(iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
                "Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
        MOZILLA "(Linux; Android 9; CUBOT X19) AppleWebKit/537.36 (KHTML, like Gecko) "
                "Chrome/120.0.0.0 Mobile Safari/537.36",
        MOZILLA "(Linux; Android 14; SM-S918B) AppleWebKit/537.36 SamsungBrowser/25.0 "
                "Chrome/121.0.0.0 Mobile Safari/537.36",
        MOZILLA "(X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
                "HeadlessChrome/140.0.0.0 Safari/537.36",
        MOZILLA "(Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36 "
                "Edg/140.0.0.0",
        MOZILLA "(Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/138.0.0.0 Safari/537.36 "
                "OPR/122.0.0.0",
        MOZILLA "(X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 Chrome/139.0.0.0 Safari/537.36",
        "Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18",
        "curl/7.88.1",
        "python-requests/2.32.0",
        "Go-http-client/1.1",
        "bottle",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_not(known(slice_of(rows[i])), "%s", rows[i]);
    }
}

Test(robots, what_is_very_long_is_looked_at_from_its_beginning)
{
    size_t n = 16384;
    char *text = malloc(n);
    memset(text, 'x', n);
    memcpy(text, "Googlebot/2.1", 13);
    cr_expect(known((struct slice){text, n}));
    memset(text, 'x', 13);
    memcpy(text + n - 13, "Googlebot/2.1", 13);
    cr_expect_not(known((struct slice){text, n}));
    free(text);
}

/* The end of a name may be that of another text, and a name may begin within another. */
Test(robots, names_that_are_alike)
{
    cr_expect(known(SLICE("GoogleOther")));
    cr_expect(known(SLICE("Google-Google-Ads")));
    cr_expect(known(SLICE("google-site-google-site-verif")));
    cr_expect_not(known(SLICE("Google")));
    cr_expect_not(known(SLICE("google-bds oogle-ads gather other verif")));
    cr_expect(known(SLICE("spspider")));
}

/* A NUL in the text ends nothing, and what stands at the very end is found. */
Test(robots, at_the_edges)
{
    static const char nul[] = "x\0y+http";
    cr_expect(known((struct slice){nul, sizeof(nul) - 1}));
    cr_expect(known(SLICE("Xzgrab")));
    cr_expect_not(known(SLICE("Xzgra")));
    cr_expect_not(known(SLICE("zg")));
    cr_expect(known(SLICE("cubot bot")));
    cr_expect(known(SLICE("a \xff\xfe"
                          "crawl")));
}
