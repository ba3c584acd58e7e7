"""The tables of docs/benchmarks.md: what a run found goes between the marks; the words around stay."""

from __future__ import annotations

from pathlib import Path

from benchmarks.errors import BenchmarkError

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"


def write(found: dict[str, list[str]], document: Path = DOCUMENT) -> None:
    """For each section X, replace what stands between `<!-- measured: X -->` and `<!-- end: X -->`.

    Raises
    ------
    BenchmarkError
        The document lacks a section's marks, or has them in the wrong order.
    """
    text = document.read_text()
    for letter, lines in found.items():
        begin, end = f"<!-- measured: {letter} -->", f"<!-- end: {letter} -->"
        before, begun, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not (begun and ended):
            raise BenchmarkError(
                f"{document} has no '{begin}' with '{end}' after it; put them where the tables go"
            )
        text = "\n".join([before + begin, "", *lines, "", end + after])
    document.write_text(text)
