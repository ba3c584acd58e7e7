"""What a metric is: a name, the keys it fills, the columns it needs and a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from testdrive.metrics.scans import Scan

#: The code of a value that is absent because the source did not have a column that it needs.
NOT_RECORDED = "not_recorded"
#: The code of a value that is absent because there is no I/O to take it from.
NO_IOS = "no_ios"
#: The code of a latency that is absent because no I/O completed without an error.
NO_COMPLETIONS = "no_completions"
#: The code of a percentile with fewer I/Os than it needs.
TOO_FEW_SAMPLES = "too_few_samples"
#: The code of a value that is about trims where there are none.
NO_TRIMS = "no_trims"
#: The code of a value for which a recording does not last long enough.
TOO_SHORT = "too_short"
#: The code of a value that is not computed for so long a recording, because it would not fit in memory.
TOO_LONG = "too_long"

#: The code of a power that nothing measured.
NOT_MEASURED = "not_measured"
#: The code of a power of which too little was measured.
PARTLY_MEASURED = "partly_measured"
#: The code of a value that needs every row, of a recording that keeps histograms and the slowest I/Os.
ROWS_NOT_KEPT = "rows_not_kept"

#: For :attr:`Metric.columns`: times of any kind. A source that has one of them has both columns filled.
TIMES = "intended_ns|submit_ns"

Values = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """A metric of the summary. A file of this package that has one as ``METRIC`` is found and computed.

    Attributes
    ----------
    name : str
        What people call it.
    keys : tuple of str
        Every key of the summary that it fills; a dot goes one level down (``workload.queue_depth``). A key
        that ends in ``code`` is null, or the code that says why a value beside it is absent.
    columns : tuple of str
        The columns of the recording that it needs; of names with ``|`` between them, one is enough. If the
        source lacked one, every key is null and every code ``not_recorded``, without a call of ``compute``.
    compute : callable
        Takes the shared :class:`~testdrive.metrics.scans.Scan`, returns a value for each key.
    needs : str
        ``rows`` if it needs every row, ``histograms`` if those of each second are enough, ``manifest`` if it
        reads nothing else. Where a recording does not keep every row, metrics that need them are absent with
        the code ``rows_not_kept``.
    """

    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    compute: Callable[[Scan], Values]
    needs: Literal["rows", "histograms", "manifest"] = "rows"

    def values(self, scan: Scan) -> Values:
        """The values of every key, or their absence."""
        if any(scan.absent_columns.issuperset(column.split("|")) for column in self.columns):
            return self.absent(NOT_RECORDED)
        if self.needs == "rows" and scan.recording.manifest.kept is not None:
            return self.absent(ROWS_NOT_KEPT)
        values = self.compute(scan)
        assert set(values) == set(self.keys), (
            f"metric {self.name} fills {sorted(values)}, not {sorted(self.keys)}"
        )
        return values

    def absent(self, code: str) -> Values:
        """Null for every key, and ``code`` for those that tell a code."""
        return {key: code if is_code(key) else None for key in self.keys}


def is_code(key: str) -> bool:
    """Whether a key says why values beside it are absent: ``..._code``, or ``code`` alone below a dot."""
    name = key.rpartition(".")[2]
    # An opcode is none, though it ends alike.
    return name == "code" or name.endswith("_code")
