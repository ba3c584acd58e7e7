"""The processors: their frequency, their sleep, what else they do, and the clock that they have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from testdrive.doctor.finding import Finding, ok, warning
from testdrive.doctor.host import Host
from testdrive.report import units

_CPUS = "sys/devices/system/cpu"
#: A state of sleep that takes longer than this to leave shows in the latencies of a fast drive.
EXIT_LATENCY_US_MAX = 20
#: The rest of the host may take so much of all CPUs before it is a nuisance.
BUSY_SHARE_MAX = 0.10
STEAL_SHARE_MAX = 0.005
_IDLE_STATES_LISTED = 3
#: What it means, and what to do.
_STOLEN = (
    "another guest takes our CPUs away: I/Os are late by milliseconds, and latencies grow",
    "give this guest CPUs of its own, or measure on bare metal",
)
_BUSY = (
    "other work delays submission and completion: the tail of latencies is partly the host's",
    "stop what is running (top -o %CPU shows it), or keep the run on CPUs of its own (cpus = [...])",
)


def findings(host: Host) -> Iterator[Finding]:
    """Every finding about the processors."""
    yield governor(host)
    yield frequency_limit(host)
    yield idle_states(host)
    yield load(host)
    yield clock_source(host)


def governor(host: Host) -> Finding:
    """Which rule sets the frequency of the CPUs."""
    found = Counter(
        text
        for path in host.all(f"{_CPUS}/cpu[0-9]*/cpufreq/scaling_governor")
        if (text := host.read(path)) is not None
    )
    if not found:
        return ok(
            "cpu_governor", "the frequency of the CPUs is not set by this kernel (a guest, or firmware)"
        )
    if set(found) == {"performance"}:
        return ok("cpu_governor", "performance, on all CPUs")
    shown = ", ".join(f"{name} on {units.count(cpus)}" for name, cpus in found.most_common())
    return warning(
        "cpu_governor",
        shown,
        "CPUs slow down between I/Os: latencies at low depth are longer, and differ from run to run",
        "cpupower frequency-set -g performance",
    )


def frequency_limit(host: Host) -> Finding:
    """Whether something keeps the CPUs below their highest frequency."""
    limited = 0
    for path in host.all(f"{_CPUS}/cpu[0-9]*/cpufreq/scaling_max_freq"):
        limit, top = host.number(path), host.number(path.with_name("cpuinfo_max_freq"))
        limited += limit is not None and top is not None and limit < top
    off = host.read(f"{_CPUS}/intel_pstate/no_turbo") == "1" or host.read(f"{_CPUS}/cpufreq/boost") == "0"
    if limited:
        return warning(
            "cpu_frequency_limit",
            f"{limited} CPUs are kept below their highest frequency",
            "each I/O costs more CPU time, so that one thread generates fewer IOPS",
            "cpupower frequency-set -u $(cat /sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq)",
        )
    if off:
        return warning(
            "cpu_frequency_limit",
            "turbo is off",
            "steady, but slower: one thread generates fewer IOPS. Compare only with runs without it",
            "echo 0 > /sys/devices/system/cpu/intel_pstate/no_turbo"
            if host.exists(f"{_CPUS}/intel_pstate/no_turbo")
            else "echo 1 > /sys/devices/system/cpu/cpufreq/boost",
        )
    return ok("cpu_frequency_limit", "none")


def idle_states(host: Host) -> Finding:
    """How long the CPUs take to wake from the deepest sleep that they may fall into."""
    deep: dict[str, int] = {}
    for path in host.all(f"{_CPUS}/cpu[0-9]*/cpuidle/state[0-9]*/latency"):
        latency_us = host.number(path)
        if latency_us is None or latency_us <= EXIT_LATENCY_US_MAX:
            continue
        if host.read(path.with_name("disable")) != "1":
            name = host.read(path.with_name("name")) or path.parent.name
            deep[name] = max(latency_us, deep.get(name, 0))
    if not deep:
        return ok("cpu_idle_states", f"none takes more than {EXIT_LATENCY_US_MAX} µs to leave")
    shown = sorted(deep.items(), key=lambda each: each[1])[-_IDLE_STATES_LISTED:]
    return warning(
        "cpu_idle_states",
        ", ".join(f"{name} takes {latency_us} µs to leave" for name, latency_us in shown),
        "an interrupt that wakes a CPU is so much late: latencies of fast drives grow by it at low rates",
        f"cpupower idle-set -D {EXIT_LATENCY_US_MAX}",
    )


def load(host: Host) -> Finding:
    """What the CPUs do now, beside us, and what another guest takes of them."""
    before = _times(host)
    host.wait()
    after = _times(host)
    if before is None or after is None:
        return warning("cpu_load", "not known", "/proc/stat cannot be read", "mount -t proc proc /proc")
    spent = [max(late - early, 0) for early, late in zip(before, after, strict=False)]
    total = sum(spent)
    # Of proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
    idle, steal = spent[3] + spent[4], spent[7]
    busy_share = (total - idle - steal) / total if total else 0.0
    steal_share = steal / total if total else 0.0
    shown = f"{100 * busy_share:.0f} % busy, {100 * steal_share:.1f} % stolen"
    causes = []
    if steal_share > STEAL_SHARE_MAX:
        causes.append(_STOLEN)
    if busy_share > BUSY_SHARE_MAX:
        causes.append(_BUSY)
    if not causes:
        return ok("cpu_load", shown)
    return warning("cpu_load", shown, *("; ".join(texts) for texts in zip(*causes, strict=True)))


def _times(host: Host) -> list[int] | None:
    first = (host.read("proc/stat") or "").partition("\n")[0].split()
    if len(first) < 9 or first[0] != "cpu":
        return None
    return [int(text) for text in first[1:9]]


def clock_source(host: Host) -> Finding:
    """Whether time stamps cost a few nanoseconds, and are the same on all CPUs."""
    source = host.read("sys/devices/system/clocksource/clocksource0/current_clocksource") or "not known"
    flags = _flags(host)
    if source == "tsc" and {"constant_tsc", "nonstop_tsc"} <= flags:
        return ok("clock_source", "tsc, constant and without stops")
    if source in ("kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"):
        return ok("clock_source", source)
    if source == "tsc":
        return warning(
            "clock_source",
            "tsc, which is not invariant",
            "the clock changes its rate with the CPU's frequency: times are of unknown length",
            "use another host, or boot with clocksource=hpet, at more cost for each I/O",
        )
    return warning(
        "clock_source",
        source,
        "each time stamp is a slow read of a device: an I/O costs a microsecond more",
        "boot with tsc=reliable if the hardware is sound (dmesg | grep -i tsc says why it was given up)",
    )


def _flags(host: Host) -> set[str]:
    for line in (host.read("proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return set(value.split())
    return set()
