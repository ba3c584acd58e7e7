"""QEMU's monitor for the script in the guest: what it asks by a file in the shared folder is passed on.

The script writes a command of QEMU's machine protocol into ``monitor.NAME``, by a rename, and waits for
``monitor.NAME.done``, which has the answer. A guest that is stopped by its own command needs another to go
on, so a command may be followed by others: ``{"wait_s": 2}`` between them waits meanwhile.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

#: How often the folder is looked at.
_INTERVAL_S = 0.05


class Monitor:
    """Passes on what the guest asks, from a thread, while it is entered."""

    def __init__(self, address: Path, job: Path) -> None:
        self._address = address
        self._job = job
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="monitor")

    def __enter__(self) -> Monitor:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._over.wait(_INTERVAL_S):
            for path in sorted(self._job.glob("monitor.*")):
                answer = path.with_name(f"{path.name}.done")
                if path.suffix in (".done", ".part") or answer.exists():
                    continue
                answers = [self._ask(line) for line in path.read_text().splitlines() if line.strip()]
                part = path.with_name(f"{path.name}.part")
                part.write_text("".join(f"{json.dumps(each)}\n" for each in answers))
                part.rename(answer)

    def _ask(self, line: str) -> Any:
        command = json.loads(line)
        if "wait_s" in command:
            time.sleep(command["wait_s"])
            return {}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._address))
            stream = connection.makefile("rw")
            stream.readline()
            for each in ({"execute": "qmp_capabilities"}, command):
                stream.write(json.dumps(each) + "\n")
                stream.flush()
                answer = json.loads(stream.readline())
                while "event" in answer:
                    answer = json.loads(stream.readline())
            return answer
