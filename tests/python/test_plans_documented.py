"""Every built-in plan, present and future: documented, with a short form, and with figures that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import needed_values, run_testdrive

from testdrive.methods.method import all_methods
from testdrive.plans import bind, built_in_names, load

ROOT = Path(__file__).parents[2]
METHODS = ROOT / "docs" / "methods"
#: `| [name](page.md) | question | full length | short length |`
_ROW = re.compile(r"^\| \[([a-z-]+)\]\(([a-z-]+\.md)(?:#[a-z-]+)?\) \|(.+)\|$", re.MULTILINE)
ROWS = {name: (page, cells) for name, page, cells in _ROW.findall((METHODS / "README.md").read_text())}
#: Figures of any workload, which are not of one test (testdrive.report).
GENERAL = {"latency", "offsets", "percentiles", "lateness"}


def test_the_command_names_the_plans_that_are_looked_at_here() -> None:
    listed = json.loads(run_testdrive("plans", "--json").stdout)
    names = [each["name"] for each in listed] if isinstance(listed, list) else list(listed)
    assert sorted(names) == sorted(built_in_names())


def test_the_table_of_methods_has_a_row_for_each_plan_and_no_other() -> None:
    assert set(ROWS) == set(built_in_names())


@pytest.mark.parametrize("name", built_in_names())
def test_a_plan_has_a_page_a_row_a_short_form_and_figures(name: str) -> None:
    plan = load(name)
    page, cells = ROWS[name]
    question, full, short = (cell.strip() for cell in cells.split("|"))
    assert question.endswith("?")
    # Both lengths begin with how long it takes, or say whose length it is.
    assert full
    assert re.fullmatch(r"\d+ (s|min)|a minute", short), short
    text = (METHODS / page).read_text()
    assert re.search(rf"testdrive run (`)?{name}\b|`{name}`", text), f"{page} does not say how {name} is run"
    assert plan.short, f"{name} has no [short] section"
    needed = needed_values(plan)
    assert bind(plan, needed, short=True).phases != bind(plan, needed).phases
    assert plan.figures, f"{name} names no figures"
    known = set(all_methods()) | GENERAL
    assert set(plan.figures) <= known, set(plan.figures) - known
    documented = (ROOT / "docs" / "plans.md").read_text()
    assert f"`{name}`" in documented


def test_each_method_belongs_to_a_plan() -> None:
    wanted = {figure for name in built_in_names() for figure in load(name).figures}
    assert set(all_methods()) - wanted == set()
