/* hll_tool.c - storage/hll on standard input and output, for integration/test_hll_redis.py.
 *
 * Input, any number of cases; the items are binary, each with its size in front:
 *
 *     merge 2\n18\n<18 bytes>\n27\n<27 bytes>\n      the union of Redis strings
 *     add 1\n3\n<3 bytes>\n                          the sketch of elements
 *
 * Output, a line for each: the estimate, or "refused" and the number of the first string that
 * hll_merge() refused; then the 16384 registers in hexadecimal.  The strings after a refused one
 * are merged all the same.
 */
#include "storage/sketch/hll.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/hll_add.h"

#define ITEM_MAX (16u << 20)

static void die(const char *why)
{
    fprintf(stderr, "hll_tool: %s\n", why);
    exit(2);
}

/* Read one item into @item, which has ITEM_MAX bytes.  Returns its size. */
static size_t read_item(char *item)
{
    size_t n;

    if (scanf("%zu", &n) != 1 || getchar() != '\n' || n > ITEM_MAX) {
        die("bad size of an item");
    }
    if (fread(item, 1, n, stdin) != n || getchar() != '\n') {
        die("item cut off");
    }
    return n;
}

/* Merge or add @count items.  Returns the number of the first that is refused, or @count. */
static size_t read_case(struct hll *hll, bool add, size_t count, char *item)
{
    size_t refused = count;

    hll_clear(hll);
    for (size_t i = 0; i < count; i++) {
        size_t n = read_item(item);

        if (add) {
            hll_add(hll, item, n);
        } else if (!hll_merge(hll, item, n) && refused == count) {
            refused = i;
        }
    }
    return refused;
}

static void print_registers(const struct hll *hll)
{
    static const char digits[] = "0123456789abcdef";
    char hex[2 * HLL_REGISTERS];

    for (size_t i = 0; i < HLL_REGISTERS; i++) {
        hex[2 * i] = digits[hll->registers[i] >> 4];
        hex[2 * i + 1] = digits[hll->registers[i] & 15];
    }
    fwrite(hex, 1, sizeof(hex), stdout);
}

int main(void)
{
    char *item = malloc(ITEM_MAX), verb[8];
    struct hll *hll = malloc(sizeof(*hll));
    size_t count;

    if (!item || !hll) {
        die("no memory");
    }
    while (scanf("%7s %zu", verb, &count) == 2) {
        bool add = strcmp(verb, "add") == 0;
        size_t refused = read_case(hll, add, count, item);

        if (refused < count) {
            printf("refused %zu ", refused);
        } else {
            printf("%" PRIu64 " ", hll_estimate(hll));
        }
        print_registers(hll);
        putchar('\n');
    }
    free(hll);
    free(item);
    return feof(stdin) && fflush(stdout) == 0 ? 0 : 2;
}
