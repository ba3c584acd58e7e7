"""The command: which curves, how many points, and where the plots and the table go."""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

from benchmarks import documents
from benchmarks.errors import BenchmarkError
from benchmarks.section import table_lines
from testdrive.errors import TestdriveError
from validation import (
    background_stalls,
    figures,
    mapping_cache,
    parallelism,
    read_tail,
    slc_knee,
    thermal,
    trim_storm,
    write_amplification,
    write_buffer,
    write_cliff,
)
from validation.checks import Check, Curve, summary, table
from validation.drives import Bench
from validation.errors import ValidationError
from validation.sizes import FULL, QUICK, Sizes

CURVES: dict[str, ModuleType] = {
    curve.KEY: curve
    for curve in (
        write_amplification,
        write_cliff,
        slc_knee,
        mapping_cache,
        read_tail,
        thermal,
        write_buffer,
        trim_storm,
        parallelism,
        background_stalls,
    )
}
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "modelled-drive.md"
IMAGES = DOCUMENT.parent / "images"


def main(arguments: list[str] | None = None) -> int:
    """Validate the modelled drive.

    Returns
    -------
    int
        0, or 1 when a curve lies outside of what is allowed or could not be measured, or 2 for bad arguments.
    """
    options = _parser().parse_args(arguments)
    unknown = [key for key in options.only.split(",") if key not in CURVES]
    if unknown:
        print(f"error: there is no curve {unknown[0]!r}; choose from {', '.join(CURVES)}", file=sys.stderr)
        return 2
    # The signals that end a process at once become an orderly end, which removes what was made.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return _validate(options)
    except (TestdriveError, BenchmarkError, ValidationError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m validation", description=__doc__)
    every = ",".join(CURVES)
    parser.add_argument("--only", default=every, help=f"which curves: {every}")
    parser.add_argument(
        "--quick", dest="sizes", action="store_const", const=QUICK, default=FULL, help="fewer points"
    )
    parser.add_argument("--output", type=Path, default=Path("validation-out"), help="where plots and JSON go")
    parser.add_argument(
        "--scratch", type=Path, default=_scratch(), help="where recordings go while they are needed"
    )
    parser.add_argument(
        "--write-docs", action="store_true", help="put the plots and the table into docs/modelled-drive.md"
    )
    return parser


def _scratch() -> Path | None:
    """Memory where there is some to be had as a directory: recordings are short-lived, and disks slow."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else None


def _validate(options: argparse.Namespace) -> int:
    sizes: Sizes = options.sizes
    keys = options.only.split(",")
    if options.write_docs and (keys != list(CURVES) or sizes is not FULL):
        raise ValidationError("the page holds every curve at full size; leave --only and --quick away")
    curves = []
    for key in keys:
        began_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="testdrive-validation-", dir=options.scratch) as scratch:
            curves.append(CURVES[key].measure(Bench(sizes, Path(scratch))))
        _tell(curves[-1], time.monotonic() - began_s)
    _write(curves, options.output)
    if options.write_docs:
        for curve in curves:
            figures.save(curve.figure, IMAGES / image_name(curve))
        documents.write({"validation": page_lines(curves)}, DOCUMENT)
        print(f"page: {DOCUMENT}")
    return verdict(curves)


def _tell(curve: Curve, took_s: float) -> None:
    print(f"\n## {curve.title} ({took_s:.1f} s)\n", *table_lines(table([curve])), sep="\n", flush=True)


def _write(curves: list[Curve], directory: Path) -> None:
    for curve in curves:
        figures.save(curve.figure, directory / image_name(curve))
    report = {
        curve.key: {
            "title": curve.title,
            "checks": [
                {"what": check.what, "reached": check.reached, **finite(check)} for check in curve.checks
            ],
            "series": curve.series,
        }
        for curve in curves
    }
    (directory / "validation.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"\nplots and figures: {directory}")


def finite(check: Check) -> dict[str, float | None]:
    """Return a check's numbers as JSON can have them: null is no bound, or what was never met."""
    return {name: value if math.isfinite(value) else None for name, value in check.numbers.items()}


def image_name(curve: Curve) -> str:
    """Return the name of a curve's plot."""
    return f"validation-{curve.key}.png"


def page_lines(curves: list[Curve]) -> list[str]:
    """Return what the page has between its marks: each plot with the words of its file, and the table."""
    lines = [*table_lines(summary(curves)), ""]
    for curve in curves:
        # The first line of a file's docstring is its name, the rest says what is run and what is expected.
        _, _, words = (CURVES[curve.key].__doc__ or "").strip().partition("\n")
        image = f"![{curve.title}: modelled and expected](images/{image_name(curve)})"
        lines += [f"### {curve.title}", "", *words.strip().splitlines(), "", image, ""]
    return [*lines, "### Every point", "", *table_lines(table(curves))]


def verdict(curves: list[Curve]) -> int:
    """Say which points lie outside, if any; return the exit status."""
    outside = [(curve, check) for curve in curves for check in curve.outside]
    for curve, check in outside:
        print(
            f"outside: {curve.title}, {check.what}: {check.measured} where {check.expected} was expected"
            f" ({check.allowed} allowed)",
            file=sys.stderr,
        )
    if not outside:
        print(f"every point of {len(curves)} curves lies where it should")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
