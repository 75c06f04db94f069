#include "storage/prepare/durability.h"

/* The value of the one setting that was asked for; "": it may not be read. */
static struct slice value_of(const struct reply *config)
{
    return config->type == REPLY_ARRAY && config->n == 2 ? config->items[1].text : SLICE("");
}

struct durability durability_of(bool has_aof, const struct reply *config)
{
    struct slice fsync = value_of(config);
    struct durability unknown = {.go_back_ms = GO_BACK_MS};
    if (!has_aof) {
        unknown.warning = "it has no append-only file: when it crashes, everything is lost that "
                          "came since its last snapshot, acknowledged or not";
        return unknown;
    }
    if (slice_equal(fsync, SLICE("always"))) {
        return (struct durability){.go_back_ms = 0};
    }
    if (slice_equal(fsync, SLICE("everysec"))) {
        return unknown;
    }
    unknown.warning =
        slice_equal(fsync, SLICE("no"))
            ? "appendfsync is no: when the machine crashes, everything is lost that its system had "
              "not written yet, acknowledged or not"
            : "CONFIG GET appendfsync is not permitted: what Redis may lose when it crashes is not "
              "known, and is taken for 2 s";
    return unknown;
}
