"""ACT at a rating of 100: whether the load is what was asked, and at its times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import engine, places
from benchmarks.section import Section, Table, Target
from benchmarks.sizes import Sizes
from benchmarks.spread import Spread

RATING = 100
RATE_ERROR_MAX = 0.001
LATENESS_P99_MAX_NS = 50_000
URI = "null:?size=1TiB"


def measure(sizes: Sizes, scratch: Path) -> Section:
    """The load of a rating of 100 on the null path, every I/O recorded."""
    seconds = sizes.replay_seconds
    runs = [_once(scratch / "act.rec", seconds) for _ in range(sizes.replay_rounds)]
    rates = {name: Spread([run["rates"][name] for run in runs]) for name in runs[0]["rates"]}
    asked: dict[str, float] = runs[0]["asked"]
    lateness = {key: Spread([float(run[key]) for run in runs]) for key in ("p50", "p99", "p99_9", "max")}
    error = max(abs(value / asked[name] - 1) for name, spread in rates.items() for value in spread.values)
    rows = [[name, f"{asked[name]:,.2f}", spread.text(2)] for name, spread in rates.items()]
    late = [[key.replace("_", "."), spread.scaled(1e-3).text(1)] for key, spread in lateness.items()]
    return Section(
        "act",
        f"ACT at {RATING}x on the null path",
        [
            f"The plan act with a rating of {RATING} on a drive that does nothing, one submitter, every I/O"
            f" recorded, {seconds:g} s in {len(runs)} rounds: small reads with the large blocks beside them."
        ],
        [
            Table("I/Os a second", ["stream", "asked", "done"], rows),
            Table("Lateness of all I/Os, us", ["", "lateness"], late),
        ],
        [
            Target(
                "rate of every stream",
                f"within {RATE_ERROR_MAX:.1%}, or one I/O",
                f"{error:.3%}",
                all(_close(run, seconds) for run in runs),
            ),
            Target(
                "lateness p99",
                f"under {LATENESS_P99_MAX_NS / 1e3:g} us",
                f"{lateness['p99'].median / 1e3:.1f} us",
                lateness["p99"].median < LATENESS_P99_MAX_NS,
            ),
        ],
        {
            "rates": {name: spread.json() for name, spread in rates.items()},
            "asked": asked,
            "lateness_ns": {key: spread.json() for key, spread in lateness.items()},
        },
    )


def _close(run: dict[str, Any], seconds: float) -> bool:
    """Within the tolerance; a short run may hold one I/O of a slow stream more or less than its rate."""
    asked, rates = run["asked"], run["rates"]
    return all(
        abs(rates[name] - rate) <= max(RATE_ERROR_MAX * rate, 1 / seconds) for name, rate in asked.items()
    )


def _once(output: Path, seconds: float) -> dict[str, Any]:
    import duckdb

    from testdrive.plans import bind, load

    length_ns = round(seconds * 1e9)
    # Slices are whole seconds, and a benchmark may be shorter: only the streams are the plan's.
    (phase,) = bind(load("act"), {"rating": RATING, "prepare": "none", "for": "1h"}).phases
    job = phase.model_dump(mode="json", exclude_none=True) | {"duration_ns": length_ns}
    engine.run_phase(URI, output, job)
    names = [stream["name"] for stream in job["streams"]]
    paths = str(output / "ios" / "*.parquet")
    counted = duckdb.execute(
        "SELECT stream, count(*) FROM read_parquet(?) GROUP BY stream ORDER BY stream", [paths]
    ).fetchall()
    quantiles = duckdb.execute(
        "SELECT quantile_disc(submit_ns - intended_ns, [0.5, 0.99, 0.999, 1.0]) FROM read_parquet(?)", [paths]
    ).fetchone()
    places.remove(output)
    assert quantiles is not None, "an aggregate has a row"
    return {
        "asked": {stream["name"]: stream["arrivals"]["rate_iops"] for stream in job["streams"]},
        "rates": {names[stream]: ios / seconds for stream, ios in counted},
        **dict(zip(("p50", "p99", "p99_9", "max"), quantiles[0], strict=True)),
    }
