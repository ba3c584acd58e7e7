"""The same timed replay by the block path, by passthrough and by the user-space driver, polled and with
interrupts, on the same emulated drive: how late I/Os go out, how long they take, and what they cost in CPU
time. A run costs a second of CPU before its first I/O, and for what it looks at, so that runs of one I/O are
taken off: what is left is that of the I/Os.

Emulated figures show mechanism, not speed: nothing here is asserted of them but that they can be had.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
from guest import Guest

GUEST = Guest(
    disks={"disk0": "256M"},
    devices=("nvme,serial=VM0,drive=disk0",),
    modules=("vfio-pci", "vfio_iommu_type1"),
    iommu=True,
    alone=True,
)

IOS = 1000
SPACING_US = 2000
CLOSED_IOS = 40_000

SCRIPT = f"""
set -eu
address=$(cat /sys/class/nvme/nvme0/address)
{{
    echo time_us,op,offset_bytes,length_bytes
    n=0; while [ $n -lt {IOS} ]; do
        op=read; [ $((n % 3)) -ne 0 ] || op=write
        echo $((n * {SPACING_US})),$op,$(((n * 7919 % 60000) * 4096)),4096
        n=$((n + 1))
    done
}} >/tmp/workload.csv
testdrive-engine import /tmp/workload.csv -o /tmp/workload.rec >/dev/null
# The guest's CPU time, but idle and waiting, in ticks of 10 ms.
busy() {{ awk '/^cpu / {{ print $2 + $3 + $4 + $7 + $8 }}' /proc/stat; }}
run() {{ # NAME URI PHASE
    cat >/tmp/job.json <<END
{{"version": 1, "drive": {{"uri": "$2", "erase": "VM0"}}, "output": "/tmp/$1.rec", "phases": [$3]}}
END
    before=$(busy)
    testdrive-engine run --job /tmp/job.json >/tmp/$1.json || {{ cat /tmp/$1.json; exit 1; }}
    echo $(($(busy) - before)) >/job/$1.ticks
    cp -r /tmp/$1.rec /job/
}}
timed='{{"kind": "replay", "recording": "/tmp/workload.rec"}}'
closed='{{"kind": "synthetic", "depth": 16, "ios": {CLOSED_IOS}}}'
one='{{"kind": "synthetic", "depth": 16, "ios": 1}}'
for round in 1 2; do
    run block-$round /dev/nvme0n1 "$timed"
    run passthrough-$round /dev/ng0n1 "$timed"
    run userspace-$round pci:$address "$timed"
    run interrupts-$round "pci:$address?interrupts=yes" "$timed"
done
for round in 1 2 closed; do
    phase=$one; name=one-$round
    [ $round != closed ] || {{ phase=$closed; name=closed; }}
    run block-$name /dev/nvme0n1 "$phase"
    run passthrough-$name /dev/ng0n1 "$phase"
    run userspace-$name pci:$address "$phase"
    run interrupts-$name "pci:$address?interrupts=yes" "$phase"
done
"""

PATHS = ("block", "passthrough", "userspace", "interrupts")


def check(job: Path) -> None:
    """Print the table."""
    print("lateness and service time in us of a timed replay; CPU time of a closed loop: of a run of one I/O")
    print(f"in ms, and for each of {CLOSED_IOS:,} I/Os in us, without that")
    print("emulation shows mechanism, not speed")
    heads = "  late p50  late p99   late sd     p50     p99  start  CPU/I/O"
    print(f"{'path':<12}{heads}")
    for path in PATHS:
        places = ", ".join(f"'{job}/{path}-{number}.rec/ios/*.parquet'" for number in (1, 2))
        late = "(submit_ns - intended_ns) / 1000"
        row = duckdb.sql(
            "select count(*), count(*) filter (status <> 0),"
            f" quantile_disc({late}, [0.5, 0.99]), stddev_pop({late}),"
            f" quantile_disc(latency_ns / 1000, [0.5, 0.99]) from read_parquet([{places}])"
        ).fetchall()
        ios, failed, (late_p50, late_p99), deviation, (p50, p99) = row[0]
        assert (ios, failed) == (2 * IOS, 0)
        closed = json.loads((job / f"{path}-closed.rec" / "manifest.json").read_text())
        assert closed["counts"]["ios"] == CLOSED_IOS
        start_ms = (cpu_ms(job, f"{path}-one-1") + cpu_ms(job, f"{path}-one-2")) / 2
        cpu_us = (cpu_ms(job, f"{path}-closed") - start_ms) * 1000 / CLOSED_IOS
        figures = f"{late_p50:>10.0f}{late_p99:>10.0f}{deviation:>10.0f}{p50:>8.0f}{p99:>8.0f}"
        figures += f"{start_ms:>7.0f}{cpu_us:>9.0f}"
        print(f"{path:<12}{figures}")


def cpu_ms(job: Path, run: str) -> int:
    """The CPU time of the whole guest during a run."""
    return int((job / f"{run}.ticks").read_text()) * 10
