"""How far bursts and trims go together: correlation only, with the words that keep it so."""

from __future__ import annotations

from collections.abc import Sequence

from testdrive.report import html, units, words
from testdrive.report.fidelity import name_cell
from testdrive.report.html import Markup, Node
from testdrive.report.rows import dig
from testdrive.report.subject import Subject


def trims_table(subjects: Sequence[Subject]) -> Markup | None:
    """Return the table of trim attribution, or None where no recording has trims."""
    with_trims = [
        one for one in subjects if dig(one.summary, "trim_attribution.streams") or _share(one) is not None
    ]
    if not with_trims:
        return None
    return html.join(
        html.tag("h3", "Do the bursts go with the trims?"),
        html.tag(
            "p",
            "The share is of the worst burst's excess latency: what fell on reads and writes that "
            "overlapped a trim, or started within 100 ms after one. The correlation "
            "is of the bytes trimmed with the latency up to 10 s later; p is the chance of one as strong "
            "without any connection. Neither shows a cause: "
            "for that, replay without the trims and compare.",
        ),
        html.table(
            ["Drive", "Excess near trims", "Correlation (lag)", "p", "Streams that trimmed"],
            [_cells(one) for one in with_trims],
            caption="Trims and latency",
        ),
    )


def _share(subject: Subject) -> float | None:
    share = dig(subject.summary, "trim_attribution.excess_share")
    return None if share is None else float(share)


def _cells(subject: Subject) -> list[Node]:
    found = dig(subject.summary, "trim_attribution") or {}
    share, related, streams = _share(subject), found.get("correlation"), found.get("streams")
    return [
        name_cell(subject),
        units.percent(share, 2) if share is not None else words.code(found.get("excess_share_code")),
        f"{related['r']:.2f} ({units.moment(related['lag_ns'])})"
        if related
        else words.code(found.get("correlation_code")),
        f"{related['p_value']:.3f}" if related else units.ABSENT,
        units.count(len(streams)) if streams is not None else words.code(found.get("streams_code")),
    ]
