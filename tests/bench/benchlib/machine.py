"""CPU time and memory from /proc, and what the machine is."""

import os
import pathlib
import platform
import re
import resource
import subprocess
import time

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """User and system time of a process, all its threads; and that of its children that ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return tuple(sum(int(f) for f in fields[i:i + 2]) * TICK_S for i in (11, 13))


def threads_s(pid):
    """What the threads that live now have run, to the nanosecond; cpu_s() knows clock ticks of 10 ms only."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def machine_busy_s():
    """All time that was not idle, of all cores; what the hypervisor took counts as busy."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) * TICK_S


def memory_kib(pid, field="VmHWM"):
    match = re.search(rf"^{field}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(match[1])


def driver_s():
    """What this program and the children that it waited for have used."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


class Meter:
    """CPU time between its making and stop(), by role.  roles: {"tallyd": [pids], ..}.

    A Redis's includes that of its children: the rewrites of the append-only file."""

    def __init__(self, roles):
        self.roles = roles
        self.before = self.read()

    def read(self):
        roles = {role: sum(cpu_s(pid)[0] for pid in pids) for role, pids in self.roles.items()}
        rewrites = sum(cpu_s(pid)[1] for pid in self.roles.get("redis", ()))
        if "redis" in roles:
            roles["redis"] += rewrites
        return time.monotonic(), machine_busy_s(), driver_s(), rewrites, roles

    def stop(self):
        """{"elapsed_s", "cpu_s": {role: s}, "rewrites_cpu_s", "client_cpu_s", "others_percent"}"""
        after = self.read()
        elapsed, busy, driver, rewrites = (after[i] - self.before[i] for i in range(4))
        used = {role: after[4][role] - self.before[4][role] for role in self.roles}
        others = busy - driver - sum(used.values())
        return {"elapsed_s": elapsed, "cpu_s": used, "rewrites_cpu_s": rewrites, "client_cpu_s": driver,
                "others_percent": max(0.0, 100 * others / (elapsed * os.cpu_count()))}


def output(*argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return ""
    return (done.stdout + done.stderr).strip()


def package_version(name):
    """Empty where it is not installed."""
    words = output("dpkg-query", "-W", "-f", "${Status} ${Version}", name).split()
    return words[3] if words[:3] == ["install", "ok", "installed"] else ""


def describe(directory, root):
    """The machine, the versions and the state of the tree, for the head of the report."""
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    memory = re.search(r"^MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_mib": int(memory[1]) // 1024,
        "kernel": platform.release(),
        "filesystem": output("df", "--output=fstype", str(directory)).split()[-1],
        "load_average": os.getloadavg()[0],
        "commit": output("git", "-C", str(root), "rev-parse", "--short=12", "HEAD"),
        "tree_changed": bool(output("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")),
        "versions": {name: package_version(name) for name in
                     ("redis-server", "libmicrohttpd12", "libjansson4", "wrk", "webdis", "nginx")},
    }
