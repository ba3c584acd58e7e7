"""What the commands that run a plan have of meters: which is read beside which drive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from testdrive.errors import UsageError
from testdrive.events import Event
from testdrive.power import Choice, Sampler, parse
from testdrive.power.choice import LOG_INTERVAL_NS
from testdrive.power.nvme import controller_of
from testdrive.quantities import duration_ns
from testdrive.running import Target

#: How long a drive is left alone before a run beside which its power is measured.
IDLE_DEFAULT_NS = 5_000_000_000
#: A drive's log is not read more often than this: each time is a command to the drive.
LOG_INTERVAL_MIN_NS = 1_000_000_000
_MODELLED = "sim:"


def beside_meters(targets: Sequence[Target], texts: Sequence[str], telemetry: str | None) -> list[Target]:
    """Open the meters for each drive, and its own log where it has one and `telemetry` is not ``off``.

    Raises
    ------
    UsageError
        A meter cannot be opened, is of no drive of this run, or could be of several drives. None is left
        open.
    """
    choices = parse(texts)
    interval_ns = _log_interval_ns(telemetry)
    _check_drives(choices, [target.uri for target in targets])
    made: list[Target] = []
    try:
        for target in targets:
            mine = [choice for choice in choices if choice.concerns(target.uri)]
            sampler = Sampler(mine, _log_of(target.uri, interval_ns, mine))
            made.append(replace(target, sampler=sampler if sampler.has_meters else None))
        _check_one_drive_each(choices, made)
    except BaseException:
        for target in made:
            if target.sampler is not None:
                target.sampler.close()
        raise
    return made


Follow = Callable[[Event], None]


def beside_capture(
    devices: Sequence[str], texts: Sequence[str]
) -> Callable[[Follow], AbstractContextManager[Follow]]:
    """Open the meters for a capture; return what reads them around it, showing events with what is given.

    Raises
    ------
    UsageError
        A meter cannot be opened, or the capture is of several devices.
    """
    choices = parse(texts)
    if choices and len(devices) > 1:
        raise UsageError("--power is of one device; capture the device that the meter measures by itself")
    sampler = Sampler(choices) if choices else None

    @contextmanager
    def around(show: Follow) -> Iterator[Follow]:
        if sampler is None:
            yield show
            return

        def follow(event: Event) -> None:
            for news in sampler.follow(event):
                show(news)
            show(event)

        with sampler:
            yield follow
        for news in sampler.news():
            show(news)

    return around


def _log_interval_ns(telemetry: str | None) -> int | None:
    """How often a drive's log is read; None for never."""
    if telemetry is None:
        return LOG_INTERVAL_NS
    if telemetry == "off":
        return None
    interval_ns = duration_ns(telemetry)
    if interval_ns < LOG_INTERVAL_MIN_NS:
        raise UsageError(f"--telemetry {telemetry} is too often; give at least 1s, or off")
    return interval_ns


def _log_of(uri: str, interval_ns: int | None, chosen: Sequence[Choice]) -> list[Choice]:
    """The drive's own log, where it has one that was not asked for by name."""
    controller = controller_of(uri) if uri.startswith("/dev/") else None
    if interval_ns is None or controller is None or any(choice.kind == "nvme" for choice in chosen):
        return []
    place = uri.partition("?")[0]
    return [Choice(f"nvme:{place}", "nvme", place, interval_ns, None, uri, {})]


def _check_drives(choices: Sequence[Choice], uris: Sequence[str]) -> None:
    for choice in choices:
        if choice.drive is not None and choice.drive not in uris:
            raise choice.error(f"drive={choice.drive} is no drive of this run; it has {', '.join(uris)}")
    for uri in uris:
        if uri.startswith(_MODELLED) and any(choice.concerns(uri) for choice in choices):
            raise UsageError(
                f"--power beside {uri}: a modelled drive runs in virtual time, which no meter follows; it"
                " keeps a ledger of its own, so leave --power out, or say ?drive=URI of the one measured"
            )


def _check_one_drive_each(choices: Sequence[Choice], targets: Sequence[Target]) -> None:
    if len(targets) < 2:
        return
    for target in targets:
        meters = target.sampler.sources if target.sampler is not None else []
        logs = target.sampler.logs if target.sampler is not None else []
        of_drive = {source.name for source in meters if source.of == "drive"}
        of_drive |= {f"csv:{log.file}" for log in logs if log.of == "drive"}
        for choice in choices:
            name = f"csv:{Path(choice.place).absolute()}" if choice.kind == "csv" else choice.name
            if choice.drive is None and name in of_drive:
                raise choice.error(
                    "with several drives nobody knows which one it measures; add ?drive=URI, or ?of=host if"
                    " it measures the host"
                )
