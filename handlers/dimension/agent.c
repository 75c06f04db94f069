#include "handlers/dimension/agent.h"

#include <stdbool.h>
#include <stdint.h>

#define AGENT_LOOKED_AT 512 /* bytes */

/* The words; each is a bit. */
enum word {
    WORD_NONE,
    /* browsers */
    WORD_BRAVE,
    WORD_CHROME,
    WORD_DUCKDUCKGO,
    WORD_EDGE,
    WORD_FIREFOX,
    WORD_IE,
    WORD_OPERA,
    WORD_SAFARI,
    WORD_SAMSUNG,
    WORD_SEAMONKEY,
    WORD_UC,
    WORD_VIVALDI,
    WORD_WEBKIT,
    WORD_YANDEX,
    /* systems and devices */
    WORD_ANDROID,
    WORD_BSD,
    WORD_CONSOLE,
    WORD_CROS,
    WORD_HARMONY,
    WORD_IPAD,
    WORD_IPHONE,
    WORD_KAIOS,
    WORD_LINUX,
    WORD_MAC,
    WORD_MOBILE,
    WORD_TABLET,
    WORD_TIZEN,
    WORD_TV,
    WORD_WINDOWS,
};

static bool starts(struct slice text, const char *word, size_t n)
{
    return text.n >= n && memcmp(text.p, word, n) == 0;
}

#define TRY(word, is)                                                                              \
    if (starts(text, word, sizeof(word) - 1)) {                                                    \
        return is;                                                                                 \
    }

/* The browser that @text, which begins with a word, begins with. */
static enum word browser_word(struct slice text)
{
    switch (text.p[0]) {
    case 'A':
        TRY("AppleWebKit/", WORD_WEBKIT)
        break;
    case 'B':
        TRY("Brave", WORD_BRAVE)
        break;
    case 'C':
        TRY("Chrome/", WORD_CHROME)
        TRY("CriOS/", WORD_CHROME)
        TRY("Chromium/", WORD_CHROME)
        break;
    case 'D':
        TRY("DuckDuckGo/", WORD_DUCKDUCKGO)
        TRY("Ddg/", WORD_DUCKDUCKGO)
        break;
    case 'E':
        TRY("Edg/", WORD_EDGE)
        TRY("EdgA/", WORD_EDGE)
        TRY("EdgiOS/", WORD_EDGE)
        TRY("Edge/", WORD_EDGE)
        break;
    case 'F':
        TRY("Firefox/", WORD_FIREFOX)
        TRY("FxiOS/", WORD_FIREFOX)
        TRY("Focus/", WORD_FIREFOX)
        break;
    case 'H':
        TRY("HeadlessChrome/", WORD_CHROME)
        break;
    case 'M':
        TRY("MSIE ", WORD_IE)
        break;
    case 'O':
        TRY("OPR/", WORD_OPERA)
        TRY("Opera", WORD_OPERA)
        TRY("OPT/", WORD_OPERA)
        TRY("OPiOS/", WORD_OPERA)
        break;
    case 'S':
        TRY("Safari/", WORD_SAFARI)
        TRY("SamsungBrowser/", WORD_SAMSUNG)
        TRY("SeaMonkey/", WORD_SEAMONKEY)
        break;
    case 'T':
        TRY("Trident/", WORD_IE)
        break;
    case 'U':
        TRY("UCBrowser/", WORD_UC)
        TRY("UCWEB/", WORD_UC)
        break;
    case 'V':
        TRY("Vivaldi/", WORD_VIVALDI)
        break;
    case 'Y':
        TRY("YaBrowser/", WORD_YANDEX)
        break;
    default:
        break;
    }
    return WORD_NONE;
}

/* The system, or the kind of device, that @text begins with. */
static enum word system_word(struct slice text)
{
    switch (text.p[0]) {
    case 'A':
        TRY("Android TV", WORD_TV)
        TRY("Android", WORD_ANDROID)
        TRY("AppleTV", WORD_TV)
        TRY("AFT", WORD_TV)
        break;
    case 'B':
        TRY("BRAVIA", WORD_TV)
        break;
    case 'C':
        TRY("CrOS ", WORD_CROS)
        break;
    case 'D':
        TRY("DragonFly", WORD_BSD)
        break;
    case 'F':
        TRY("FreeBSD", WORD_BSD)
        break;
    case 'G':
        TRY("GoogleTV", WORD_TV)
        break;
    case 'H':
        TRY("HarmonyOS", WORD_HARMONY)
        TRY("HbbTV", WORD_TV)
        break;
    case 'K':
        TRY("KAIOS", WORD_KAIOS)
        TRY("Kindle", WORD_TABLET)
        break;
    case 'L':
        TRY("Linux", WORD_LINUX)
        break;
    case 'M':
        TRY("Macintosh", WORD_MAC)
        TRY("Mac OS X", WORD_MAC)
        TRY("Mobile", WORD_MOBILE)
        break;
    case 'N':
        TRY("Nintendo", WORD_CONSOLE)
        TRY("NetBSD", WORD_BSD)
        break;
    case 'O':
        TRY("OpenBSD", WORD_BSD)
        break;
    case 'P':
        TRY("PlayStation", WORD_CONSOLE)
        TRY("Phone", WORD_MOBILE)
        break;
    case 'R':
        TRY("Roku", WORD_TV)
        break;
    case 'S':
        TRY("SMART-TV", WORD_TV)
        TRY("SmartTV", WORD_TV)
        TRY("Silk/", WORD_TABLET)
        break;
    case 'T':
        TRY("Tablet", WORD_TABLET)
        TRY("Tizen", WORD_TIZEN)
        TRY("TV", WORD_TV)
        break;
    case 'U':
        TRY("Ubuntu", WORD_LINUX)
        break;
    case 'W':
        TRY("Windows", WORD_WINDOWS)
        TRY("Web0S", WORD_TV)
        break;
    case 'X':
        TRY("X11", WORD_LINUX)
        TRY("Xbox", WORD_CONSOLE)
        break;
    case 'i':
        TRY("iPhone", WORD_IPHONE)
        TRY("iPad", WORD_IPAD)
        TRY("iPod", WORD_IPHONE)
        break;
    default:
        break;
    }
    return WORD_NONE;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* All words of @agent, as bits. */
static uint32_t words_of(struct slice agent)
{
    uint32_t words = 0;
    bool inside = false;
    size_t n = agent.n < AGENT_LOOKED_AT ? agent.n : AGENT_LOOKED_AT;
    for (size_t i = 0; i < n; i++) {
        bool is = is_word_char(agent.p[i]);
        if (is && !inside) {
            struct slice text = {agent.p + i, n - i};
            words |= UINT32_C(1) << browser_word(text) | UINT32_C(1) << system_word(text);
        }
        inside = is;
    }
    return words;
}

_Static_assert(WORD_WINDOWS < 32, "a bit for each word");

struct choice {
    enum word word;
    struct slice name;
};

/* The first of @n choices whose word is there. */
static struct slice choose(uint32_t words, const struct choice *choices, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((words >> choices[i].word & 1) != 0) {
            return choices[i].name;
        }
    }
    return SLICE("");
}

#define NAMED(word, text)                                                                          \
    {                                                                                              \
        word,                                                                                      \
        {                                                                                          \
            text, sizeof(text) - 1                                                                 \
        }                                                                                          \
    }

/* The most special ones first: most browsers say Chrome/ and Safari/, too. */
static struct slice browser_of(uint32_t words)
{
    static const struct choice choices[] = {
        NAMED(WORD_EDGE, "Edge"),
        NAMED(WORD_OPERA, "Opera"),
        NAMED(WORD_SAMSUNG, "Samsung Internet"),
        NAMED(WORD_YANDEX, "Yandex Browser"),
        NAMED(WORD_VIVALDI, "Vivaldi"),
        NAMED(WORD_UC, "UC Browser"),
        NAMED(WORD_DUCKDUCKGO, "DuckDuckGo"),
        NAMED(WORD_BRAVE, "Brave"),
        NAMED(WORD_SEAMONKEY, "SeaMonkey"),
        NAMED(WORD_FIREFOX, "Firefox"),
        NAMED(WORD_IE, "Internet Explorer"),
        NAMED(WORD_CHROME, "Chrome"),
        NAMED(WORD_SAFARI, "Safari"),
    };
    struct slice name = choose(words, choices, sizeof(choices) / sizeof(choices[0]));
    bool webkit = (words >> WORD_WEBKIT & 1) != 0;
    bool apple = (words >> WORD_IPHONE & 1) != 0 || (words >> WORD_IPAD & 1) != 0;
    if (slice_equal(name, SLICE("Safari")) && (words >> WORD_ANDROID & 1) != 0) {
        return SLICE("Android Browser");
    }
    return name.n == 0 && webkit && apple ? SLICE("Safari") : name; /* a view in an app */
}

static struct slice os_of(uint32_t words)
{
    static const struct choice choices[] = {
        NAMED(WORD_IPHONE, "iOS"),
        NAMED(WORD_IPAD, "iOS"),
        NAMED(WORD_WINDOWS, "Windows"),
        NAMED(WORD_HARMONY, "HarmonyOS"),
        NAMED(WORD_TIZEN, "Tizen"),
        NAMED(WORD_KAIOS, "KaiOS"),
        NAMED(WORD_ANDROID, "Android"),
        NAMED(WORD_CROS, "Chrome OS"),
        NAMED(WORD_MAC, "macOS"),
        NAMED(WORD_BSD, "BSD"),
        NAMED(WORD_LINUX, "Linux"),
    };
    return choose(words, choices, sizeof(choices) / sizeof(choices[0]));
}

static struct slice device_of(uint32_t words)
{
    static const struct choice choices[] = {
        NAMED(WORD_CONSOLE, "console"),
        NAMED(WORD_TV, "tv"),
        NAMED(WORD_IPAD, "tablet"),
        NAMED(WORD_TABLET, "tablet"),
        NAMED(WORD_MOBILE, "mobile"),
        NAMED(WORD_IPHONE, "mobile"),
        NAMED(WORD_KAIOS, "mobile"),
        NAMED(WORD_HARMONY, "mobile"),
        NAMED(WORD_ANDROID, "tablet"), /* telephones say Mobile */
        NAMED(WORD_TIZEN, "tv"),
        NAMED(WORD_WINDOWS, "desktop"),
        NAMED(WORD_MAC, "desktop"),
        NAMED(WORD_CROS, "desktop"),
        NAMED(WORD_BSD, "desktop"),
        NAMED(WORD_LINUX, "desktop"),
    };
    return choose(words, choices, sizeof(choices) / sizeof(choices[0]));
}

struct agent_parts agent_read(struct slice agent)
{
    /* "Tablet PC" of old versions of Windows is a desktop's. */
    uint32_t words = words_of(agent);
    if ((words >> WORD_WINDOWS & 1) != 0) {
        words &= ~(UINT32_C(1) << WORD_TABLET);
    }
    return (struct agent_parts){browser_of(words), os_of(words), device_of(words)};
}
