"""The SMART log as a power meter reads it, by the package's ioctl, is what the engine reads by passthrough.

Both are asked before and after a run, so that each count has moved by what was sent, and a warning that is
raised from outside in between is seen by both. Power states: the emulated drive has one, which can be asked
for; a run that asks for another, or sets this one, is refused with the reason. Changing states, and watts in
the log, cannot be proved on it, since it has neither.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from guest import nvme
from python_files import ENVIRONMENT

from testdrive.power import smart

READS = 1000
#: A bit of the critical warning: the reliability is degraded.
WARNING = 4
GUEST = dataclasses.replace(nvme("64M", id="controller"), python=("testdrive.power.nvme",))

SCRIPT = f"""
set -eu
{ENVIRONMENT}
cat >/tmp/meter.py <<END
import json, sys
from testdrive.power.choice import parse
from testdrive.power.nvme import get_log_page, open_meter
from testdrive.power.smart import LOG_BYTES, LOG_ID

(choice,) = parse(["nvme:/dev/nvme0n1"])
meter = open_meter(choice)
with open("/dev/nvme0", "rb") as controller:
    page = get_log_page(controller.fileno(), LOG_ID, LOG_BYTES)
told = {{"values": meter.read(), "page": page.hex(), "details": meter.source.details}}
with open(sys.argv[1], "w") as output:
    json.dump(told, output)
END
run() {{ # NAME MORE-OF-DRIVE
    echo '{{"version": 1, "drive": {{"uri": "/dev/ng0n1", "erase": "VM0"'$2'}}, "output": "/tmp/'$1'.rec",
      "phases": [{{"kind": "synthetic", "ios": {READS}}}]}}' >/tmp/job.json
    testdrive-engine run --job /tmp/job.json >/job/$1.json
}}
python3 -S /tmp/meter.py /job/before.json
run first ''
echo '{{"execute": "qom-set", "arguments": {{"path": "/machine/peripheral/controller",
  "property": "smart_critical_warning", "value": {WARNING}}}}}' | tr '\\n' ' ' >/job/monitor.1.part
mv /job/monitor.1.part /job/monitor.1
wait_until [ -e /job/monitor.1.done ]
run second ''
python3 -S /tmp/meter.py /job/after.json
cp /tmp/first.rec/manifest.json /job/first.manifest
cp /tmp/second.rec/manifest.json /job/second.manifest
for state in 0 1; do
    status=0; run state$state ', "power_state": '$state || status=$?
    [ $status -eq 2 ]
done
"""

#: The same field of the log, as the meter and as the engine name it.
SAME = {
    "critical_warning_flags": "critical_warning",
    "available_spare_percent": "available_spare_percent",
    "available_spare_threshold_percent": "available_spare_threshold_percent",
    "percentage_used_percent": "percentage_used",
    "data_units_read": "data_units_read",
    "data_units_written": "data_units_written",
    "host_read_commands": "host_reads",
    "host_write_commands": "host_writes",
    "controller_busy_time_min": "controller_busy_minutes",
    "power_cycles": "power_cycles",
    "power_on_hours": "power_on_hours",
    "unsafe_shutdowns": "unsafe_shutdowns",
    "media_errors": "media_errors",
    "error_log_entries": "error_log_entries",
    "warning_temperature_time_min": "warning_temperature_minutes",
    "critical_temperature_time_min": "critical_temperature_minutes",
}


def by_meter(job: Path, name: str) -> dict[str, Any]:
    """What the meter read, whose page is decoded here once more."""
    told = json.loads((job / f"{name}.json").read_text())
    assert told["details"] == {"device": "/dev/nvme0", "model": "QEMU NVMe Ctrl", "serial": "VM0"}
    values: dict[str, Any] = told["values"]
    assert smart.decode(bytes.fromhex(told["page"])) == values
    return values


def by_engine(job: Path, run: str, when: str) -> dict[str, Any]:
    """What the engine read, in the meter's words."""
    account = json.loads((job / f"{run}.manifest").read_text())["nvme"][when]
    assert account["power_state"] == 0
    log = account["smart"]
    values = {name: log[other] for name, other in SAME.items()}
    return values | {"temperature_mc": (log["temperature_kelvin"] - 273) * 1000}


def check(job: Path) -> None:
    """Both read the same, of logs that differ from one another."""
    before, after = by_meter(job, "before"), by_meter(job, "after")
    assert before["temperature_mc"] > 0
    told = by_engine(job, "first", "before")
    assert told == {name: before[name] for name in told}
    told = by_engine(job, "second", "after")
    assert told == {name: after[name] for name in told}
    # Each run also reads a block to see what the kernel does with registered buffers.
    assert 2 * READS <= after["host_read_commands"] - before["host_read_commands"] <= 2 * READS + 10
    assert after["data_units_read"] > before["data_units_read"]
    assert (before["critical_warning_flags"], after["critical_warning_flags"]) == (0, WARNING)
    assert "feature not changeable (NVMe status 0x" in (job / "state0.json").read_text()
    assert "power_state is 1: give one below" in (job / "state1.json").read_text()
