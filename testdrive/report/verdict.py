"""What the figures say of one drive, in plain words: how it took the workload, never why."""

from __future__ import annotations

from typing import Literal

from testdrive.report import html, units, words
from testdrive.report.html import Markup
from testdrive.report.rows import Row

Outcome = Literal["calm", "reserved", "recovers", "fails", "unanswering", "unknown"]
_MARKS = {
    "calm": ("✓ handles it", "good"),
    "reserved": ("△ no burst, with reservations", "caution"),
    "recovers": ("△ handles it with bursts", "caution"),
    "fails": ("✗ does not handle it", "bad"),
    "unknown": ("? no verdict", "caution"),
}
_FAILING = ("never_recovered", "unstable", "saturated")


def outcome(row: Row) -> Outcome:
    """Return the class of a recording.

    A drive that stopped answering, was reset or was lost has no other. Else it is that of its worst burst;
    but a run without one that failed I/Os, ended early, left a part of the workload out or was not the same
    workload has not shown that its drive handles it.
    """
    if row["incidents"]:
        return "unanswering"
    code = row["recovery_code"]
    if code in _FAILING or row["baseline_code"] in _FAILING:
        return "fails"
    if code == "no_burst":
        unshown = row["errors"] or row["left_out_ios"] or row["status"] != "complete"
        return "reserved" if unshown or row["fidelity_verdict"] == "not_faithful" else "calm"
    return "recovers" if row["recovery_ns"] is not None else "unknown"


def mark(row: Row) -> Markup:
    """Return the class in words, with a sign and a colour."""
    if row["role"] == "original":
        return html.tag("span", "the workload itself", class_="note")
    found = outcome(row)
    text, class_ = (_incident(row), "bad") if found == "unanswering" else _MARKS[found]
    return html.tag("span", text, class_=f"mark {class_}")


def _incident(row: Row) -> str:
    codes = row["incidents"]
    if "drive_lost" in codes:
        return "✗ was lost"
    return "✗ stopped answering" if "command_timeout" in codes or row["lost_ios"] else "✗ was reset"


def sentences(row: Row) -> str:
    """Return what is to be said of a recording: its latency, its worst burst, errors, fidelity."""
    said = [*_lost(row), _latency(row), *_trims(row)]
    if row["errors"] > row["lost_ios"]:
        others = " others" if row["lost_ios"] else ""
        said.append(f"{words.plural(row['errors'] - row['lost_ios'], 'I/O')}{others} failed.")
    if row["no_completion"]:
        said.append(f"Of {words.plural(row['no_completion'], 'I/O')} no completion was seen.")
    if row["status"] != "complete":
        said.append(f"The run is {row['status']}: part of the workload is missing.")
    if row["left_out_ios"]:
        left_out = words.plural(row["left_out_ios"], "I/O")
        said.append(
            f"The replay left out {left_out} of the workload, and shows nothing of how it takes those."
        )
    if row["fidelity_verdict"] == "not_faithful":
        reasons = "; ".join(row["fidelity_reasons"])
        said.append(
            f"Its replay was not faithful ({reasons}), so it was not quite this workload that it took."
        )
    return " ".join(said)


def _lost(row: Row) -> list[str]:
    if not row["lost_ios"]:
        return []
    return [
        f"{words.plural(row['lost_ios'], 'I/O')} got no answer, and with them the slowest took at least"
        f" {units.time(row['peak_at_least_ns'])}. What follows is of those that completed."
    ]


def _trims(row: Row) -> list[str]:
    share = row["excess_near_trims_share"]
    if share is None:
        return []
    ios = units.percent(row["ios_near_trims_share"], 2)
    return [
        f"Near trims fell {units.percent(share, 2)} of that burst's excess latency and {ios} of its reads "
        "and writes, "
        "which is no proof of a cause."
    ]


def _longer(row: Row) -> str:
    limit = row["recovery_more_than_ns"]
    return f", more than {units.time(limit)} later" if limit is not None else ""


def _short_of_one(row: Row) -> str:
    """What rose as high as a burst but not for long enough: no burst, and felt all the same."""
    if row["longest_rise_ns"] is None:
        return ""
    begin = units.moment(row["longest_rise_time_ns"])
    return (
        f": the longest rise took {units.duration(row['longest_rise_ns'])} from {begin} on, and a burst fills"
        " eight tenths of a second"
    )


def _latency(row: Row) -> str:
    code, bursts = row["recovery_code"], len(row["bursts"])
    worst = (
        f"the slowest read or write took {units.time(row['peak_latency_ns'])}, "
        f"{units.moment(row['peak_time_ns'])} in"
    )
    if row["peak_latency_ns"] is None:
        said = words.code(row["baseline_code"])
        return f"No latency is known: {'it was ' if row['baseline_code'] == 'not_recorded' else ''}{said}."
    if code == "never_recovered":
        before = row["level_before_burst_ns"]
        level = f" from {units.time(before)}" if before is not None else ""
        return f"Latency rose{level} and had not come back when the recording ended{_longer(row)}; {worst}."
    if code == "unstable" or row["baseline_code"] == "unstable":
        lasted = (
            f", in a burst that lasted {units.time(row['recovery_ns'])}"
            if row["recovery_ns"] is not None
            else ""
        )
        return (
            f"Latency is calm for less than half of the time, so that there is no baseline; {worst}{lasted}."
        )
    if code == "saturated":
        return (
            "It cannot keep up: I/Os come faster than it completes them, without a burst to blame; "
            f"baseline {words.baseline(row)}, {worst}."
        )
    if code == "no_burst":
        return f"Baseline latency {words.baseline(row)}; {worst}, and no burst lasted{_short_of_one(row)}."
    if row["recovery_ns"] is not None:
        return (
            f"Baseline latency {words.baseline(row)}; {words.plural(bursts, 'burst')} of raised latency; "
            f"{worst}, and the burst that holds it lasted "
            f"{units.time(row['recovery_ns'])}."
        )
    return f"Baseline latency {words.baseline(row)}; {worst}; bursts: {words.code(code)}."
