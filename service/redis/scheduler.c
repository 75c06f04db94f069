#include "service/redis/scheduler.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

bool scheduler_ask_short_slices(void)
{
    struct sched_attr attr = {.size = sizeof(attr)};
    /* The call sets all attributes at once, so it must repeat the present niceness. */
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0 ||
        (attr.sched_policy != SCHED_NORMAL && attr.sched_policy != SCHED_BATCH)) {
        return false;
    }
    attr.sched_runtime = SCHEDULER_SHORT_NS;
    attr.sched_flags &= SCHED_FLAG_RESET_ON_FORK;
    return syscall(SYS_sched_setattr, 0, &attr, 0) == 0;
}
