"""The statement in words: each sentence where the figures bear it, and none that they do not."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import builders
import numpy as np
import pytest
import recordings

from testdrive.manifest import Manifest
from testdrive.metrics.summary import summarize_scan
from testdrive.statement.needs import drive_writes_per_day, needs
from testdrive.statement.sentences import sentences

SECOND_NS = 1_000_000_000


def summary_of(columns: dict[str, Any] | None, **manifest: Any) -> dict[str, Any]:
    return summarize_scan(builders.scan_of(columns, **manifest))


def said_of(columns: dict[str, Any] | None, **manifest: Any) -> str:
    return " ".join(sentences(summary_of(columns, **manifest)))


@functools.cache
def mixed() -> dict[str, Any]:
    return summary_of(recordings.mixed(), absent_columns=[], drive={"capacity_bytes": 10**12})


def transfers(n: int, **changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    return {
        "submit_ns": np.arange(n) * 10_000_000,
        "offset_bytes": rng.integers(0, 1 << 20, n) * 4096,
        "length_bytes": 4096,
        "opcode": np.arange(n) % 2,
        **changes,
    }


def test_a_workload_of_everything_is_said_in_the_order_of_weight():
    said = sentences(mixed())
    assert said[0] == "Mostly reads (67 % reads, 33 % writes): random, all of 8 KiB."
    assert said[1].startswith("61.3 IOPS and 443 kB/s on average over 90 s; ")
    assert said[2] == (
        "120 trims, all of 1 MiB, 120 MiB in all, in 4 bursts of about 300 ms, 20 s apart, all from CPU 3."
    )
    assert said[3].startswith("For durability: a flush for every 2.98 writes")
    assert "of the writes with FUA" in said[3]
    assert said[4].startswith("It touches ")
    assert any(each.startswith("On the drive that it was recorded on, ") for each in said)
    assert said[-1].startswith("If it went on like that, ")
    assert said[-1].endswith("would be written a day (extrapolated from 90 s).")


@pytest.mark.parametrize(
    ("writes", "first"),
    [
        (0, "Only reads, no writes:"),
        (1, "Nearly all reads (>99.9 % reads, <0.1 % writes):"),
        (200, "Mostly reads (90 % reads, 10 % writes):"),
        (1000, "Reads and writes alike (50 % reads, 50 % writes):"),
        (1990, "Nearly all writes (0.50 % reads, 99.5 % writes):"),
        (2000, "Only writes, no reads:"),
    ],
)
def test_the_mix_is_called_what_it_is_and_never_rounded_to_all(writes, first):
    opcode = (np.arange(2000) < writes).astype(int)
    assert said_of(transfers(2000, opcode=opcode)).startswith(first)


def test_reads_and_writes_that_differ_are_described_apart():
    n = 400
    opcode = np.arange(n) % 2
    rng = np.random.default_rng(5)
    columns = transfers(n, opcode=opcode, length_bytes=np.where(opcode == 1, 4096, 131_072))
    columns["offset_bytes"] = np.where(
        opcode == 1, rng.integers(0, 1 << 20, n) * 4096, (np.arange(n) // 2) * 131_072
    )
    said = said_of(columns)
    assert "reads (50 %) sequential, all of 128 KiB; writes (50 %) random, all of 4 KiB." in said


def test_sizes_of_which_none_prevails_are_told_by_their_mean():
    lengths = np.tile([512, 4096, 16_384, 65_536], 100)
    said = said_of(transfers(400, length_bytes=lengths, opcode=0))
    assert "of many sizes, 21.1 KiB on average" in said
    lengths = np.tile([4096, 4096, 16_384, 65_536, 512], 80)
    said = said_of(transfers(400, length_bytes=lengths, opcode=0))
    assert "most often of 4 KiB (40 %), 17.7 KiB on average" in said


@pytest.mark.parametrize(
    ("busy", "words"),
    [(1, "arrivals are even."), (2, "arrivals are uneven."), (30, "arrivals come in bursts.")],
)
def test_arrivals_are_told_by_their_busiest_second(busy, words):
    second = np.concatenate((np.repeat(np.arange(60), 20), np.full(20 * (busy - 1), 30)))
    at = np.sort(second * SECOND_NS + np.arange(len(second)) % 20 * 49_000_000)
    said = said_of(transfers(len(at), submit_ns=at))
    assert words in said


def test_of_less_than_a_second_no_busiest_one_is_told():
    said = said_of(transfers(100, submit_ns=np.arange(100) * 1_000_000))
    assert "which is too short to tell its busiest second." in said
    assert "a day" not in said


def test_trims_at_odd_times_are_not_called_regular():
    at = np.repeat(np.array([5, 9, 30, 80]) * SECOND_NS, 10)
    said = said_of(among_others({"submit_ns": at, "opcode": 2, "length_bytes": 1 << 20, "offset_bytes": 0}))
    assert "40 trims, all of 1 MiB, 40.0 MiB in all, in 4 bursts of about 100 ms, 4 s to 50 s apart." in said
    assert "CPU" not in said.partition("40 trims")[2].partition(".")[0]


def test_a_few_trims_are_told_without_a_pattern():
    at = np.arange(4) * 7 * SECOND_NS
    columns = {"submit_ns": at, "opcode": 2, "length_bytes": 4096, "offset_bytes": 0, "stream": [0, 0, 1, 2]}
    assert "4 trims, all of 4 KiB, 16.0 KiB in all, from 3 CPUs." in said_of(among_others(columns))


def among_others(columns):
    """Some I/Os beside 9,000 that are usual."""
    ios = len(columns["submit_ns"])
    filler = transfers(9000) | ({"stream": 0} if "stream" in columns else {})
    return {
        name: np.r_[np.broadcast_to(values, 9000), np.broadcast_to(columns[name], ios)]
        for name, values in filler.items()
    }


def test_a_single_trim_is_no_burst():
    opcode = np.zeros(100, int)
    opcode[50] = 2
    said = said_of(transfers(100, opcode=opcode, stream=6))
    assert "1 trim of 4 KiB, from CPU 6." in said


def test_trims_throughout_are_no_bursts():
    n = 1000
    said = said_of(transfers(n, opcode=np.where(np.arange(n) % 5 == 0, 2, 0)))
    assert "most of the time" in said
    assert "burst" not in said


def test_what_was_not_recorded_is_said_and_nothing_is_claimed_of_it():
    said = said_of(transfers(400))
    assert "did not record completions, so nothing is known of latency and of I/Os in flight" in said
    assert "took at most" not in said
    assert "in flight on average" not in said
    untimed = said_of(
        transfers(400, submit_ns=0), absent_columns=["intended_ns", "submit_ns", "latency_ns", "stream"]
    )
    assert "did not record times" in untimed
    assert "IOPS" not in untimed
    placeless = transfers(400)
    del placeless["offset_bytes"]
    said = said_of(placeless)
    assert "touches" not in said
    assert "random" not in said
    assert "sequential" not in said


def test_operations_that_were_not_told_apart_are_called_neither_reads_nor_writes():
    said = said_of(transfers(8000, opcode=0), absent_columns=["opcode", "latency_ns"])
    assert said.startswith("I/Os: random, all of 4 KiB. Whether they read or write is not known.")
    for claim in ("reads,", "Only reads", "would be written", "trims,", "flush"):
        assert claim not in said.partition("The source did not record")[0], claim


def test_few_ios_are_called_few():
    said = said_of(transfers(29))
    assert said.startswith("Only 29 I/Os: too few to say what is usual.")
    assert "%" not in said
    assert said_of(None) == "There is no I/O in this recording."


def test_hot_places_are_claimed_only_where_chance_cannot_make_them():
    rng = np.random.default_rng(6)
    spread = transfers(4000, offset_bytes=rng.integers(0, 2000, 4000) * 4096)
    assert "hottest" not in said_of(spread)
    places = np.where(rng.random(4000) < 0.8, rng.integers(0, 20, 4000), rng.integers(0, 300, 4000))
    assert "The hottest tenth of what is read and written takes 8" in said_of(
        transfers(4000, offset_bytes=places * 4096)
    )


def test_misaligned_ios_are_told():
    said = said_of(transfers(400, offset_bytes=np.arange(400) * 4096 + 512))
    assert "Only 0 % of the I/Os begin and end at multiples of 4 KiB." in said
    assert "multiples" not in said_of(transfers(400))


def test_a_replay_speaks_of_its_own_drive_and_workers():
    columns = recordings.mixed()
    columns["stream"] = np.where(columns["opcode"] == 2, 7, 0)
    said = said_of(columns, absent_columns=[], kind="run")
    assert "On this drive, " in said
    assert "all from worker 7" in said


def test_needs_are_the_busiest_second_and_say_what_is_extrapolated():
    found = {need.name: need for need in needs(mixed())}
    workload = mixed()["workload"]
    assert found["Busiest second"].value.startswith(f"{workload['iops_peak_1s']} IOPS, ")
    assert found["reads"].part
    assert found["Written a day"].note == "extrapolated from 90 s"
    assert found["Drive writes"].note == "of the recorded drive's 1.00 TB, extrapolated from 90 s"
    assert found["Working set of a minute"].value.endswith(" at most")
    written = workload["sizing"]["written_bytes_per_day"]
    assert drive_writes_per_day(mixed(), [10**12]) == [(10**12, written / 10**12)]


def test_needs_that_cannot_be_told_say_why():
    found = {need.name: need for need in needs(summary_of(transfers(100)))}
    assert found["I/Os in flight"].value == "not recorded"
    assert found["Written a day"].value == "too short"
    assert found["Written a day"].note == "less than a minute does not tell of a day"
    assert drive_writes_per_day(summary_of(transfers(100))) == []


@pytest.mark.parametrize("kind", recordings.KINDS)
def test_every_kind_of_recording_has_a_statement_and_needs(kind, tmp_path: Path):
    from testdrive.metrics import summarize
    from testdrive.recording import Recording

    with Recording.open(recordings.KINDS[kind](tmp_path / "a.rec")) as recording:
        summary = summarize(recording)
        assert isinstance(recording.manifest, Manifest)
    said = sentences(summary)
    assert said
    assert all(each.endswith(".") for each in said)
    for text in [*said, *(need.value for need in needs(summary))]:
        assert "None" not in text
        assert "nan" not in text
        assert "_" not in text
