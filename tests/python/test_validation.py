"""The validation of the modelled drive at its smallest size: it runs, it holds what it finds to its answers,
and it can fail.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from support import missing

from testdrive.engine import find_engine
from testdrive.errors import EngineError

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from benchmarks import documents  # noqa: E402
from validation import __main__ as validation  # noqa: E402
from validation import checks, closed_forms, figures  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _engine() -> None:
    """Skip where the engine was not built."""
    try:
        find_engine()
    except EngineError:
        missing("the engine's release build")


def validate(tmp_path: Path, key: str) -> tuple[int, dict[str, object]]:
    places = ["--output", str(tmp_path / "out"), "--scratch", str(tmp_path)]
    status = validation.main(["--quick", "--only", key, *places])
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "recordings are left behind"
    return status, json.loads((tmp_path / "out" / "validation.json").read_text())


@pytest.mark.parametrize("key", validation.CURVES)
def test_each_curve_lies_where_it_should(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = validate(tmp_path, key)
    said = capsys.readouterr()
    assert status == 0, said.err
    curve = report[key]
    assert isinstance(curve, dict)
    assert curve["checks"]
    assert all(check["reached"] for check in curve["checks"])
    assert all(f"| {check['what']}" in said.out for check in curve["checks"])
    image = tmp_path / "out" / f"validation-{key}.png"
    assert 5_000 < image.stat().st_size < figures.BYTES_MAX


def test_a_curve_that_lies_elsewhere_ends_with_status_1_and_names_the_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = closed_forms.write_amplification
    monkeypatch.setattr(closed_forms, "write_amplification", lambda spare: 1.02 * right(spare))
    status, report = validate(tmp_path, "write-amplification")
    assert status == 1
    said = capsys.readouterr()
    assert (
        "outside: Write amplification against spare, uniform, 1,008 pages a superblock, 28 % spare"
        in said.err
    )
    assert "| **no**" in said.out
    curve = report["write-amplification"]
    assert isinstance(curve, dict)
    # The points that are held to published tables are still where they should be.
    assert [check["reached"] for check in curve["checks"]] == [False, True, True, True]


def test_a_value_is_near_within_what_is_allowed_on_either_side_and_no_number_never_is() -> None:
    def reached(measured: float) -> bool:
        return checks.near("", measured, 200.0, 0.01, str).reached

    assert [reached(value) for value in (197.9, 198.1, 201.9, 202.1)] == [False, True, True, False]
    assert not reached(math.nan)
    assert not checks.between("", math.nan, 0, 1, str).reached
    assert validation.finite(checks.between("", 3.0, float("-inf"), 4.0, str)) == {
        "measured": 3.0,
        "low": None,
        "high": 4.0,
    }
    assert checks.between("", 3.0, float("-inf"), 4.0, str).expected == "at most 4.0"


def test_the_closed_forms_are_the_published_ones() -> None:
    for spare, published in ((0.07, 7.82), (0.125, 4.68), (0.28, 2.48)):
        assert closed_forms.write_amplification(spare) == pytest.approx(published, abs=0.005)
    for x in (-1 / math.e, -0.3, -1e-9, 0.0, 0.5, 1.0, 1e6):
        w = closed_forms.lambert_w(x)
        assert w * math.exp(w) == pytest.approx(x, rel=1e-12, abs=1e-15)
    with pytest.raises(ValueError, match="below -1/e"):
        closed_forms.lambert_w(-0.4)


def test_behind_the_cliff_large_superblocks_are_reclaimed_as_full_as_chance_left_them() -> None:
    """Without chance, each superblock has e^-t of its pages left after t drive writes: so 1 / (1 - e^-t)."""
    for spare in (0.07, 0.28):
        errors = []
        for pages in (512, 2_048, 8_192):
            written, amplification = closed_forms.behind_the_cliff(spare, pages, 0.25)
            assert (written[0], written[-1]) == pytest.approx((spare, 1.25 * spare))
            errors.append(np.mean(1 / -np.expm1(-written)) / np.mean(amplification) - 1)
        # Chance makes some emptier than others, and these are reclaimed first: by 1 / sqrt(pages), about.
        assert errors[0] > errors[1] > errors[2] > 0
        assert errors[0] / errors[2] == pytest.approx(4, rel=0.2)


def test_the_page_has_a_place_for_the_plots_and_every_plot_that_it_shows() -> None:
    text = validation.DOCUMENT.read_text()
    assert text.count("<!-- measured: validation -->") == text.count("<!-- end: validation -->") == 1
    for key in validation.CURVES:
        image = validation.IMAGES / f"validation-{key}.png"
        assert f"(images/{image.name})" in text
        assert image.stat().st_size < figures.BYTES_MAX
    assert "**no**" not in text.partition("<!-- measured: validation -->")[2]


def test_a_part_of_the_curves_never_replaces_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = validation.DOCUMENT.read_bytes()
    assert validation.main(["--quick", "--write-docs", "--output", str(tmp_path)]) == 1
    assert "leave --only and --quick away" in capsys.readouterr().err
    assert validation.main(["--only", "nothing"]) == 2
    assert "there is no curve 'nothing'" in capsys.readouterr().err
    assert validation.DOCUMENT.read_bytes() == before


def test_what_is_put_into_the_page_is_found_there_again(tmp_path: Path) -> None:
    figure = figures.new_figure("A curve", 2.0)
    [panel] = figures.panels(figure)
    figures.expected_line(panel, [0, 1], [1, 1], 0.1, "expected")
    outside = checks.near("a point", 3.0, 2.0, 0.01, "{:.1f} us".format)
    curve = checks.Curve("write-cliff", "A title", [outside], figure)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured: validation -->\nold\n<!-- end: validation -->\nafter\n")
    documents.write({"validation": validation.page_lines([curve])}, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "![A title: modelled and expected](images/validation-write-cliff.png)" in text
    assert "| A title | a point | 2.0 us   | 3.0 us   | +50.00 %  | ±1 %    | **no**  |" in text
    assert validation.verdict([curve]) == 1
    figures.save(figure, tmp_path / "a.png")
    figures.save(figure, tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
