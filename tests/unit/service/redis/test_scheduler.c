#include "service/redis/scheduler.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

static struct sched_attr attributes(void)
{
    struct sched_attr attr = {.size = sizeof(attr)};
    cr_assert_eq(syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0), 0);
    return attr;
}

/* Kernels that know slices tell the usual one where none was asked for. */
static bool knows_slices(void)
{
    return attributes().sched_runtime > 0;
}

/* The tests may have been started with another policy: chrt --idle 0 make units. */
static void take_usual_policy(void)
{
    struct sched_attr usual = attributes();
    if (usual.sched_policy == SCHED_NORMAL) {
        return;
    }
    usual = (struct sched_attr){
        .size = sizeof(usual), .sched_policy = SCHED_NORMAL, .sched_nice = usual.sched_nice};
    if (syscall(SYS_sched_setattr, 0, &usual, 0) != 0) {
        cr_skip_test("nobody but root leaves this policy");
    }
}

Test(scheduler, short_slices_and_nothing_else)
{
    take_usual_policy();
    bool known = knows_slices();
    cr_assert_eq(setpriority(PRIO_PROCESS, 0, 19), 0); /* which needs no right */
    cr_assert(scheduler_ask_short_slices());
    struct sched_attr after = attributes();
    cr_expect_eq(after.sched_nice, 19);
    cr_expect_eq(after.sched_policy, SCHED_NORMAL);
    cr_expect_eq(after.sched_flags, 0);
    if (known) {
        cr_expect_eq(after.sched_runtime, SCHEDULER_SHORT_NS);
    } else {
        cr_log_warn("this kernel knows no slices");
    }
}

Test(scheduler, a_child_has_them_too)
{
    take_usual_policy();
    bool known = knows_slices();
    cr_assert(scheduler_ask_short_slices());
    pid_t child = fork();
    if (child == 0) {
        _exit(attributes().sched_runtime == SCHEDULER_SHORT_NS ? 0 : 1);
    }
    int status = -1;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(!known || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

Test(scheduler, other_policies_are_left_alone)
{
    struct sched_attr idle = {.size = sizeof(idle), .sched_policy = SCHED_IDLE};
    cr_assert_eq(syscall(SYS_sched_setattr, 0, &idle, 0), 0);
    uint64_t slice = attributes().sched_runtime;
    cr_expect_not(scheduler_ask_short_slices());
    cr_expect_eq(attributes().sched_policy, SCHED_IDLE);
    cr_expect_eq(attributes().sched_runtime, slice);
}
