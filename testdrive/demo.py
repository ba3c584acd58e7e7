"""The demo: the main job from end to end, with no hardware and no privileges.

The sample workload, PostgreSQL with bursts of trims, is replayed on modelled drives in virtual time and on a
file in real time; the recordings are compared with the original.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testdrive.errors import UsageError
from testdrive.plans import bind, load
from testdrive.running import Result, RunOptions, Show, Target, run_one

#: The workload that comes with the package.
SAMPLE = Path(__file__).parent / "samples" / "pgbench-trim.rec"
#: Modelled drives that take a burst of trims differently: `testdrive drives --models`.
MODELS = ("enterprise-mixed", "consumer-highend", "consumer-dramless", "consumer-qlc")

#: What marks a directory as the demo's own, so that it may be made anew.
_MARKER = ".testdrive-demo"
_OWN = ("recordings", "figures", "tables", "index.html", "drive.img", _MARKER)
_FILE_BYTES = 1 << 30
#: The file runs in real time, so that it gets a part of the workload: the first burst of trims and what is
#: around it.
FILE_WINDOW = ("15s", "45s")


@dataclass(frozen=True)
class DemoOutcome:
    """What the demo made.

    ``page`` is None if fewer than one drive could be replayed on; ``left_out`` says which drive was not tried
    and why.
    """

    page: Path | None
    rows: list[dict[str, Any]]
    results: list[Result]
    left_out: list[str]


def run_demo(
    output: Path,
    show: Show,
    *,
    sample: Path = SAMPLE,
    models: Sequence[str] = MODELS,
    window: tuple[str, str] = FILE_WINDOW,
) -> DemoOutcome:
    """Replay the sample on every target of the demo and compare.

    Parameters
    ----------
    output : pathlib.Path
        The directory to make. One that an earlier demo made is made anew.
    show : callable
        Makes the display of a target's progress.
    sample : pathlib.Path
        The workload.
    models : sequence of str
        The modelled drives.
    window : tuple of str
        From when to when of the workload is replayed on the file, as durations.

    Raises
    ------
    UsageError
        ``output`` holds something that no demo made, or the sample is missing.
    """
    from testdrive.compare import write_comparison
    from testdrive.errors import Interrupted

    if not (sample / "manifest.json").is_file():
        raise UsageError(f"the sample workload {sample} is missing; install the package again")
    claim(output)
    results: list[Result] = []
    left_out: list[str] = []
    for model in models:
        results.append(_on_model(output, sample, model, show))
        if isinstance(results[-1].error, Interrupted):
            return DemoOutcome(None, [], results, left_out)
    shortage = _shortage(output)
    if shortage:
        left_out.append(shortage)
    else:
        results.append(_on_file(output, sample, window, show))
    recordings = [result.target.recording for result in results if result.summary is not None]
    if not recordings:
        return DemoOutcome(None, [], results, left_out)
    made = write_comparison(recordings, output, sample)
    return DemoOutcome(made.page, made.rows, results, left_out)


def claim(output: Path) -> None:
    """Make the directory, or empty it of what an earlier demo left there.

    Raises
    ------
    UsageError
        It is not a directory, or holds something that no demo made.
    """
    if output.exists() and not output.is_dir():
        raise UsageError(f"{output} is not a directory; choose another with --output")
    if output.is_dir() and any(output.iterdir()):
        if not (output / _MARKER).is_file():
            raise UsageError(
                f"{output} holds something that no demo made; choose another directory with --output"
            )
        # Only what a demo makes: somebody may have put a note of their own beside it.
        for name in _OWN:
            path = output / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    output.mkdir(parents=True, exist_ok=True)
    (output / _MARKER).touch()


def _on_model(output: Path, sample: Path, model: str, show: Show) -> Result:
    bound = bind(load("replay"), {"recording": sample, "prepare": "none"})
    target = Target(f"sim:{model}", None, output / "recordings" / f"{model}.rec")
    return run_one(bound, target, RunOptions(), show)


def _on_file(output: Path, sample: Path, window: tuple[str, str], show: Show) -> Result:
    given = {"recording": sample, "prepare": "sequential", "from": window[0], "to": window[1]}
    image = output / "drive.img"
    target = Target(f"file:{image}?size={_FILE_BYTES}", None, output / "recordings" / "file.rec")
    try:
        return run_one(bind(load("replay"), given), target, RunOptions(), show)
    finally:
        image.unlink(missing_ok=True)


def _shortage(output: Path) -> str | None:
    """Why the file is left out, or None if the disk has room for it."""
    free_bytes = shutil.disk_usage(output).free
    if free_bytes >= 2 * _FILE_BYTES:
        return None
    needed, free = 2 * _FILE_BYTES >> 20, free_bytes >> 20
    return f"the file was left out: {output} has {free} MiB free, and it needs {needed} MiB"
