"""A stand-in for the engine that speaks its protocol (docs/job.md) and does what the scenario says.

The scenario is JSON in ``FAKE_ENGINE``, each key optional: ``answers`` (what a subcommand such as ``drives``
prints), ``save`` (a file that gets arguments and job), ``copy`` (a recording to copy to the output),
``manifest`` (to make a recording of, whose writer is this process), ``lines`` to print (objects, or raw
text), ``deaf`` (then ignore signals), ``on_signal`` (then wait for one and print this), ``stderr``, ``exit``
(status, or a negative signal to die of).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

#: For as long it is deaf: longer than any test needs, and not for ever.
_DEAF_S = 120


def main() -> int:
    scenario: dict[str, Any] = json.loads(os.environ["FAKE_ENGINE"])
    arguments = sys.argv[1:]
    answers = scenario.get("answers", {})
    if arguments and arguments[0] in answers:
        say(answers[arguments[0]])
        return 0
    got: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: got.append(number))
    job = json.loads(sys.stdin.read()) if arguments[0] == "run" else None
    if "save" in scenario:
        with open(scenario["save"], "a", encoding="utf-8") as file:
            file.write(json.dumps({"arguments": arguments, "job": job, "pid": os.getpid()}) + "\n")
    output = job["output"] if job else arguments[arguments.index("-o") + 1]
    if "copy" in scenario:
        shutil.copytree(scenario["copy"], output)
    if "manifest" in scenario:
        Path(output).mkdir()
        Path(output, "manifest.json").write_text(
            json.dumps({**scenario["manifest"], "writer": this_process()})
        )
    for line in scenario.get("lines", []):
        say(line)
    if scenario.get("deaf"):
        # Whoever waits for its end gets it, and fails by what is missing then.
        time.sleep(_DEAF_S)
    if "on_signal" in scenario:
        while not got:
            time.sleep(0.01)
        for line in scenario["on_signal"]:
            say({"signal": got[0]} | line if isinstance(line, dict) else line)
    print(scenario.get("stderr", ""), file=sys.stderr, flush=True)
    status: int = scenario.get("exit", 0)
    if status < 0:
        os.kill(os.getpid(), -status)
    return status


def say(line: Any) -> None:
    print(line if isinstance(line, str) else json.dumps(line), flush=True)


def this_process() -> dict[str, Any]:
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"pid": os.getpid(), "start_ticks": int(fields[19]), "boot_id": boot_id}


if __name__ == "__main__":
    sys.exit(main())
