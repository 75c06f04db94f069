#include "storage/known/announced.h"

#include <stdint.h>
#include <stdlib.h>

bool announced_has(const struct announced *announced, unsigned partition, struct slice member)
{
    for (size_t i = 0; i < announced->n; i++) {
        const struct announced_member *m = &announced->members[i];
        if (m->partition == partition && slice_equal(m->member, member)) {
            return true;
        }
    }
    return false;
}

static void release(struct announced_member *member)
{
    free((void *)(uintptr_t)member->member.p);
}

void announced_add(struct announced *announced, unsigned partition, struct slice member)
{
    char *copy = announced_has(announced, partition, member) ? NULL : malloc(member.n + 1);
    if (copy == NULL) {
        return;
    }
    memcpy(copy, member.p, member.n);
    size_t at = announced->n;
    if (announced->n < ANNOUNCED_MAX) {
        announced->n++;
    } else {
        at = announced->oldest;
        announced->oldest = (announced->oldest + 1) % ANNOUNCED_MAX;
        release(&announced->members[at]);
    }
    announced->members[at] = (struct announced_member){partition, {copy, member.n}};
}

void announced_forget(struct announced *announced)
{
    for (size_t i = 0; i < announced->n; i++) {
        release(&announced->members[i]);
    }
    announced->n = announced->oldest = 0;
}
