#include "handlers/dimension/agent.h"

#include <stdbool.h>
#include <stdint.h>

#include "handlers/text/ascii.h"
#include "handlers/text/robots.h"

/* The meanings of the words in user agents; each is a bit. */
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

struct known_word {
    const char *text;
    size_t n;
    enum word word;
};

#define KNOWN(text, is)                                                                            \
    {                                                                                              \
        text, sizeof(text) - 1, is                                                                 \
    }
#define WORDS(...)                                                                                 \
    (const struct known_word[])                                                                    \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, 0, WORD_NONE                                                                     \
        }                                                                                          \
    }

/* The texts that known words begin with, by their first letter.  Where a text is the beginning of
 * another one, the longer text stands first. */
static const struct known_word *const known_words[128] = {
    ['A'] = WORDS(KNOWN("AppleWebKit/", WORD_WEBKIT), KNOWN("Android TV", WORD_TV),
        KNOWN("Android", WORD_ANDROID), KNOWN("AppleTV", WORD_TV), KNOWN("AFT", WORD_TV)),
    ['B'] = WORDS(KNOWN("Brave", WORD_BRAVE), KNOWN("BRAVIA", WORD_TV)),
    ['C'] = WORDS(KNOWN("Chrome/", WORD_CHROME), KNOWN("CriOS/", WORD_CHROME),
        KNOWN("Chromium/", WORD_CHROME), KNOWN("CrOS ", WORD_CROS)),
    ['D'] = WORDS(KNOWN("DuckDuckGo/", WORD_DUCKDUCKGO), KNOWN("Ddg/", WORD_DUCKDUCKGO),
        KNOWN("DragonFly", WORD_BSD)),
    ['E'] = WORDS(KNOWN("Edg/", WORD_EDGE), KNOWN("EdgA/", WORD_EDGE), KNOWN("EdgiOS/", WORD_EDGE),
        KNOWN("Edge/", WORD_EDGE)),
    ['F'] = WORDS(KNOWN("Firefox/", WORD_FIREFOX), KNOWN("FxiOS/", WORD_FIREFOX),
        KNOWN("Focus/", WORD_FIREFOX), KNOWN("FreeBSD", WORD_BSD)),
    ['G'] = WORDS(KNOWN("GoogleTV", WORD_TV)),
    ['H'] = WORDS(KNOWN("HeadlessChrome/", WORD_CHROME), KNOWN("HarmonyOS", WORD_HARMONY),
        KNOWN("HbbTV", WORD_TV)),
    ['K'] = WORDS(KNOWN("KAIOS", WORD_KAIOS), KNOWN("Kindle", WORD_TABLET)),
    ['L'] = WORDS(KNOWN("Linux", WORD_LINUX)),
    ['M'] = WORDS(KNOWN("MSIE ", WORD_IE), KNOWN("Macintosh", WORD_MAC),
        KNOWN("Mac OS X", WORD_MAC), KNOWN("Mobile", WORD_MOBILE)),
    ['N'] = WORDS(KNOWN("Nintendo", WORD_CONSOLE), KNOWN("NetBSD", WORD_BSD)),
    ['O'] = WORDS(KNOWN("OPR/", WORD_OPERA), KNOWN("Opera", WORD_OPERA), KNOWN("OPT/", WORD_OPERA),
        KNOWN("OPiOS/", WORD_OPERA), KNOWN("OpenBSD", WORD_BSD)),
    ['P'] = WORDS(KNOWN("PlayStation", WORD_CONSOLE), KNOWN("Phone", WORD_MOBILE)),
    ['R'] = WORDS(KNOWN("Roku", WORD_TV)),
    ['S'] = WORDS(KNOWN("Safari/", WORD_SAFARI), KNOWN("SamsungBrowser/", WORD_SAMSUNG),
        KNOWN("SeaMonkey/", WORD_SEAMONKEY), KNOWN("SMART-TV", WORD_TV), KNOWN("SmartTV", WORD_TV),
        KNOWN("Silk/", WORD_TABLET)),
    ['T'] = WORDS(KNOWN("Trident/", WORD_IE), KNOWN("Tablet", WORD_TABLET),
        KNOWN("Tizen", WORD_TIZEN), KNOWN("TV", WORD_TV)),
    ['U'] =
        WORDS(KNOWN("UCBrowser/", WORD_UC), KNOWN("UCWEB/", WORD_UC), KNOWN("Ubuntu", WORD_LINUX)),
    ['V'] = WORDS(KNOWN("Vivaldi/", WORD_VIVALDI)),
    ['W'] = WORDS(KNOWN("Windows", WORD_WINDOWS), KNOWN("Web0S", WORD_TV)),
    ['X'] = WORDS(KNOWN("X11", WORD_LINUX), KNOWN("Xbox", WORD_CONSOLE)),
    ['Y'] = WORDS(KNOWN("YaBrowser/", WORD_YANDEX)),
    ['i'] =
        WORDS(KNOWN("iPhone", WORD_IPHONE), KNOWN("iPad", WORD_IPAD), KNOWN("iPod", WORD_IPHONE)),
};

/* The known word that @text begins with; the first character of @text is ASCII. */
static enum word word_at(struct slice text)
{
    const struct known_word *known = known_words[(unsigned char)text.p[0]];
    for (; known != NULL && known->text != NULL; known++) {
        if (text.n >= known->n && memcmp(text.p, known->text, known->n) == 0) {
            return known->word;
        }
    }
    return WORD_NONE;
}

static bool is_word_char(char c)
{
    return ascii_is_alnum(c) || c == '_';
}

/* All words of @agent, as bits. */
static uint32_t words_of(struct slice agent)
{
    uint32_t words = 0;
    bool inside = false;
    size_t n = agent.n < ROBOTS_LOOKED_AT ? agent.n : ROBOTS_LOOKED_AT;
    for (size_t i = 0; i < n; i++) {
        bool is = is_word_char(agent.p[i]);
        if (is && !inside) {
            struct slice text = {agent.p + i, n - i};
            words |= UINT32_C(1) << word_at(text);
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

/* The name of the first of @n choices whose word is in @words; empty if there is none. */
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

/* The most special browsers come first: most of them say Chrome/ and Safari/, too. */
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
    return name.n == 0 && webkit && apple ? SLICE("Safari") : name; /* a web view in an app */
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
    /* Old versions of Windows say "Tablet PC" on desktops. */
    uint32_t words = words_of(agent);
    if ((words >> WORD_WINDOWS & 1) != 0) {
        words &= ~(UINT32_C(1) << WORD_TABLET);
    }
    return (struct agent_parts){browser_of(words), os_of(words), device_of(words)};
}
