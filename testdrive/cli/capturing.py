"""`testdrive capture`: the I/O of block devices, recorded as it happens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testdrive.cli import options as shared

if TYPE_CHECKING:
    from testdrive.events import Captured

#: Where the recordings of several devices go when nothing is said.
SEVERAL = Path("captured")


def capture(
    devices: Annotated[
        list[str],
        typer.Argument(
            metavar="DEVICE...",
            help="Block devices: paths, names or MAJ:MIN; partitions, volumes and arrays too.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The recording to make; with several devices, the folder for one each."
            "  [default: named after the device]",
            show_default=False,
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="DURATION", help="How long; without it until Ctrl-C.", show_default=False
        ),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="End when the recordings have this size.", show_default=False),
    ] = None,
    events: Annotated[
        str,
        typer.Option(
            metavar="EVENTS", help="Which events are recorded; the columns of what is left out are absent."
        ),
    ] = "queue,issue,complete",
    buffer: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="The kernel's buffer for each CPU.  [default: by CPUs and memory]",
            show_default=False,
        ),
    ] = None,
    power: shared.Power = None,
    as_json: shared.AsJson = False,
) -> int:
    """Record the I/O of block devices while their applications run. Needs root; writes nothing to them."""
    from testdrive.cli.metering import beside_capture
    from testdrive.cli.naming import RECORDING_SUFFIX, new_recording
    from testdrive.cli.output import print_json, show_on_stderr
    from testdrive.drive_names import drive_name
    from testdrive.engine import capture_devices
    from testdrive.quantities import duration_ns, size_bytes

    default = Path(drive_name(devices[0]) + RECORDING_SUFFIX) if len(devices) == 1 else SEVERAL
    chosen = new_recording(output, default)
    meters = beside_capture(devices, power or [])
    with show_on_stderr(", ".join(Path(device).name for device in devices)) as shown, meters(shown) as follow:
        finished = capture_devices(
            devices,
            chosen,
            duration_ns=None if duration is None else duration_ns(duration),
            size_max_bytes=None if max_size is None else size_bytes(max_size),
            events=events,
            buffer_bytes=None if buffer is None else size_bytes(buffer),
            on_event=follow,
        )
    if as_json:
        print_json(finished.model_dump(mode="json", exclude={"event", "accounting"}))
    else:
        _say(finished)
    return 0


def _say(finished: Captured) -> None:
    """What was captured, what was lost, and where to go from here."""
    from testdrive.report import units

    for each in finished.recordings:
        counts = each.counts
        print(
            f"{each.device}: {units.count(counts.get('ios'))} I/Os over {units.time(counts.get('span_ns'))}"
        )
    if finished.reason:
        print(f"ended: {finished.reason}")
    if finished.events_lost:
        print(f"{units.count(finished.events_lost)} events were lost: every report of this capture says so")
    paths = " ".join(str(each.output) for each in finished.recordings)
    print(f"recording: {paths}")
    for each in finished.recordings:
        print(f"next: testdrive inspect {each.output}")
