"""The section of a statement's page on places: addresses against time, hot regions, growth."""

from __future__ import annotations

from testdrive.manifest import opcode_name
from testdrive.report import html, units, words
from testdrive.report.html import Markup
from testdrive.report.plots import choice
from testdrive.report.rows import dig
from testdrive.report.subject import Subject
from testdrive.statement.frames import any_there, code_at, each, overlay, read_it, shared_note
from testdrive.statement.operations import MANY, told
from testdrive.statement.view import View, Views


def places_section(views: Views) -> Markup:
    """Return addresses against time, hot regions and the growth of the footprint."""
    return html.section(
        "places",
        "Where it reads, writes and trims",
        *_against_time(views),
        html.tag("div", _hot(views), _growth(views), class_="pair"),
        link="Places",
    )


def _against_time(views: Views) -> list[Markup]:
    figures = each(
        views, "places", "Addresses against time", lambda view: view.places, _code, "places", _cell_note
    )
    if not any_there(views, lambda view: view.places):
        return figures
    present = {opcode_name(code) for view in views.views if view.places for code in view.places.opcodes}
    apart = any(told(view.subject.summary) for view in views.views)
    options = ["all", *(said for name, said in MANY.items() if apart and name in present)]
    cut = any(view.places and view.places.addresses.cut for view in views.views)
    return [
        read_it(
            "each I/O is drawn over all the addresses that it touches; the darker a cell, the more I/Os (by"
            " their logarithm). A slope is sequential, a level band is a hot place, an even haze is random.",
            "Great gaps that nothing touches are left out; a dashed line stands where." if cut else "",
            shared_note(views, views.one_address, "scale of addresses"),
        ),
        html.tag(
            "p",
            "Drag a rectangle to zoom: what is in it is drawn again from finer cells. A double click shows"
            " all of it again.",
            class_="note screen",
        ),
        html.tag("div", choice("places", "Show", options), class_="choices"),
        *figures,
    ]


def _code(subject: Subject) -> str:
    lacks = set(subject.manifest.absent_columns)
    if lacks & {"offset_bytes", "length_bytes"} or lacks >= {"intended_ns", "submit_ns"}:
        return "not_recorded"
    return "no_ios"


def _cell_note(view: View) -> Markup:
    size = view.subject.drive.capacity_bytes
    capacity = f"Capacity {units.capacity(size)}. " if size else ""
    return html.tag("figcaption", capacity, html.tag("span", class_="cell-size"))


def _hot(views: Views) -> Markup:
    several = len(views.views) > 1
    said = [
        f"{view.subject.name + ': ' if several else ''}{words.plural(found['regions_touched'], 'region')}"
        f" of {units.block(found['region_bytes'])} in use, with {units.number(found['ios_per_region'])}"
        " reads and writes each on average."
        for view in views.views
        if (found := dig(view.subject.summary, "workload.hot_regions"))
    ]
    reading = read_it(
        "the higher a line rises at the left, the more of the I/Os go to few places, which a cache can hold;"
        " along the dotted line all would be used alike.",
        *said,
        "With few I/Os for each region chance alone lifts the line.",
    )
    code = code_at("workload.hot_regions_code")
    return overlay(views, "hot", "Hot regions", lambda view: view.hot, code, reading=reading)


def _growth(views: Views) -> Markup:
    code, there = code_at("workload.footprint_code", "workload.growth_code"), lambda view: view.growth
    reading = read_it(
        "a line is all that was touched so far. One that still climbs at the end has not shown the whole"
        " footprint.",
        "Bars are what reads and writes touched within each minute: what a cache would have to hold."
        if any(view.working_sets for view in views.views)
        else "",
    )
    return html.tag(
        "figure",
        html.tag("h3", "Growth of the footprint"),
        *each(views, "growth", "Growth of the footprint", there, code),
        reading if any_there(views, there) else None,
    )
