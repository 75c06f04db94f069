#include "handlers/dimension/agent.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define WEBKIT "AppleWebKit/537.36 (KHTML, like Gecko) "

static void check(const char *agent, const char *browser, const char *os, const char *device)
{
    struct agent_parts parts = agent_read(slice_of(agent));
    cr_expect(slice_equal(parts.browser, slice_of(browser)), "%s: %s", agent, parts.browser.p);
    cr_expect(slice_equal(parts.os, slice_of(os)), "%s: %s", agent, parts.os.p);
    cr_expect(slice_equal(parts.device, slice_of(device)), "%s: %s", agent, parts.device.p);
}

Test(agent, desktops)
{
    check("Mozilla/5.0 (Windows NT 10.0; Win64; x64) " WEBKIT "Chrome/120.0.0.0 Safari/537.36",
        "Chrome", "Windows", "desktop");
    check("Mozilla/5.0 (Windows NT 10.0; Win64; x64) " WEBKIT
          "Chrome/120.0.0.0 Safari/537.36 Edg/120.0.2210.61",
        "Edge", "Windows", "desktop");
    check(
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) "
        "Version/17.1 Safari/605.1.15",
        "Safari", "macOS", "desktop");
    check("Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0",
        "Firefox", "Linux", "desktop");
    check("Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) " WEBKIT "Chrome/119.0.0.0 Safari/537.36",
        "Chrome", "Chrome OS", "desktop");
    check("Mozilla/5.0 (Windows NT 10.0) " WEBKIT "Chrome/119.0 Safari/537.36 OPR/105.0.0.0",
        "Opera", "Windows", "desktop");
    check("Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; Trident/5.0; Tablet PC 2.0)",
        "Internet Explorer", "Windows", "desktop");
    check("Mozilla/5.0 (Windows NT 6.1; Trident/7.0; rv:11.0) like Gecko", "Internet Explorer",
        "Windows", "desktop");
    check(
        "Opera/9.80 (Windows NT 6.0) Presto/2.12.388 Version/12.14", "Opera", "Windows", "desktop");
    check("Mozilla/5.0 (X11; FreeBSD amd64) " WEBKIT "HeadlessChrome/90.0 Safari/537.36", "Chrome",
        "BSD", "desktop");
}

Test(agent, telephones_and_tablets)
{
    check(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
        "Gecko) Version/17.1 Mobile/15E148 Safari/604.1",
        "Safari", "iOS", "mobile");
    check(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
        "Gecko) CriOS/119.0.6045.109 Mobile/15E148 Safari/604.1",
        "Chrome", "iOS", "mobile");
    check(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 16_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
        "Gecko) Mobile/15E148 Instagram 289.0",
        "Safari", "iOS", "mobile");
    check("Mozilla/5.0 (iPad; CPU OS 16_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
          "Version/16.5 Mobile/15E148 Safari/604.1",
        "Safari", "iOS", "tablet");
    check("Mozilla/5.0 (Linux; Android 10; K) " WEBKIT "Chrome/119.0.0.0 Mobile Safari/537.36",
        "Chrome", "Android", "mobile");
    check("Mozilla/5.0 (Linux; Android 13; SM-X906C) " WEBKIT "Chrome/119.0.0.0 Safari/537.36",
        "Chrome", "Android", "tablet");
    check("Mozilla/5.0 (Linux; Android 13; SAMSUNG SM-S918B) " WEBKIT
          "SamsungBrowser/23.0 Chrome/115.0.0.0 Mobile Safari/537.36",
        "Samsung Internet", "Android", "mobile");
    check("Mozilla/5.0 (Android 13; Mobile; rv:120.0) Gecko/120.0 Firefox/120.0", "Firefox",
        "Android", "mobile");
    check("Mozilla/5.0 (Linux; U; Android 4.0.3; de-de) AppleWebKit/534.30 (KHTML, like Gecko) "
          "Version/4.0 Mobile Safari/534.30",
        "Android Browser", "Android", "mobile");
    check("Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; NOKIA) " WEBKIT
          "Chrome/52.0 Mobile Safari/537.36 Edge/15.15063",
        "Edge", "Windows", "mobile");
}

Test(agent, other_devices)
{
    check("Mozilla/5.0 (SMART-TV; Linux; Tizen 6.0) " WEBKIT "Version/6.0 TV Safari/537.36",
        "Safari", "Tizen", "tv");
    check("Mozilla/5.0 (PlayStation; PlayStation 5/6.00) AppleWebKit/605.1.15 (KHTML, like Gecko) "
          "Version/13.0 Safari/605.1.15",
        "Safari", "", "console");
}

Test(agent, what_is_not_known)
{
    check("", "", "", "");
    check("curl/8.5.0", "", "", "");
    check("notChrome/1 myEdg/2 xWindows", "", "", "");
    check("Mozilla/5.0", "", "", "");
}

Test(agent, only_the_beginning_is_looked_at)
{
    size_t n = 1 << 20;
    char *text = malloc(n);
    cr_assert_not_null(text);
    memset(text, ' ', n);
    memcpy(text + n - 10, "Firefox/99", 10);
    cr_expect(agent_read((struct slice){text, n}).browser.n == 0);
    memcpy(text + 500, "Firefox/99", 10);
    cr_expect(slice_equal(agent_read((struct slice){text, n}).browser, SLICE("Firefox")));
    memcpy(text + 500, "       Firefox/99", 17); /* cut off: not that word any more */
    cr_expect(agent_read((struct slice){text, n}).browser.n == 0);
    free(text);
}
