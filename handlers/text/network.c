#include "handlers/text/network.h"

#include <string.h>

#include "handlers/text/check.h"
#include "handlers/text/plain.h"

#define MAPPED_BITS 96 /* bits that stand before the IPv4 address in an IPv4-mapped IPv6 address */

const char *network_parse(struct slice text, struct network *ret)
{
    struct network network = {0};
    struct slice address = text;
    bool has_bits = slice_take_until(&text, '/', &address);
    if (event_parse_address(address, &network.address) != NULL) {
        return "a network is ADDRESS or ADDRESS/BITS, as 10.0.0.0/8 or fd00::/8";
    }
    bool six = memchr(address.p, ':', address.n) != NULL;
    bool mapped = six && network.address.len == 4;
    uint64_t max = six ? 128 : 32;
    uint64_t bits = max;
    if (has_bits && !text_number(text, max, &bits)) {
        return "the bits of a network are a number from 0 to 32, or 128 for IPv6";
    }
    if (mapped && bits < MAPPED_BITS) {
        return "a network of mapped addresses has at least 96 bits";
    }
    network.bits = (unsigned)(mapped ? bits - MAPPED_BITS : bits);
    *ret = network;
    return NULL;
}

bool network_holds(const struct network *network, const struct event_address *address)
{
    unsigned whole = network->bits / 8;
    unsigned rest = network->bits % 8;
    if (address->len != network->address.len ||
        memcmp(address->bytes, network->address.bytes, whole) != 0) {
        return false;
    }
    if (rest == 0) {
        return true;
    }
    unsigned mask = 0xffu << (8 - rest) & 0xffu;
    return ((address->bytes[whole] ^ network->address.bytes[whole]) & mask) == 0;
}

bool networks_hold(const struct network *networks, size_t n, const struct event_address *address)
{
    for (size_t i = 0; i < n; i++) {
        if (network_holds(&networks[i], address)) {
            return true;
        }
    }
    return false;
}
