"""Elements of a page, escaped by construction: text is escaped unless it is `Markup` already.

Names in a page come from drives and traces, so from strangers. Composing elements here, instead of formatting
strings,
leaves no place where a model name could become a tag.
"""

from __future__ import annotations

import html
from collections.abc import Iterable


class Markup(str):
    """Text that is HTML already and is not escaped again. Only this module's functions should make one."""

    __slots__ = ()


class Section(Markup):
    """A section of a page, of which the page's list of contents knows where it is and what it is called."""

    identity: str
    link: str


Node = str | Markup | None
#: A value of more characters would be a column of its own height beside short ones.
LONG_FACT = 120


def escape(text: object) -> Markup:
    """Return `text` as HTML, safe within elements and within quoted attributes."""
    return text if isinstance(text, Markup) else Markup(html.escape(str(text), quote=True))


def join(*children: Node, separator: str = "") -> Markup:
    """Return the children one after another; None is left out."""
    return Markup(separator.join(escape(child) for child in children if child is not None))


def tag(name: str, /, *children: Node, **attributes: str | bool | None) -> Markup:
    """Return an element.

    Parameters
    ----------
    name
        The element's name.
    children
        Text (escaped) or Markup; None is left out.
    attributes
        A trailing underscore is dropped (`class_`) and inner ones become hyphens (`data_plot`). None and
        False leave the
        attribute out; True writes it without a value.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        written.append(f" {key}" if value is True else f' {key}="{escape(value)}"')
    opening = f"<{name}{''.join(written)}>"
    if name in {"br", "hr", "input", "col", "meta", "img"}:
        return Markup(opening)
    return Markup(f"{opening}{join(*children)}</{name}>")


#: From how many characters on a cell is a sentence, which has lines of its own, and no figure.
_SENTENCE_CHARACTERS = 30


def table(head: Iterable[Node], rows: Iterable[Iterable[Node]], *, caption: str, class_: str = "") -> Markup:
    """Return a table in a box that scrolls sideways on narrow screens; the first cell of a row is its
    header. A column with sentences in it is set as text, others as figures.
    """
    lines = [list(row) for row in rows]
    said = {at for line in lines for at, cell in enumerate(line) if at and _is_sentence(cell)}

    def cell(name: str, at: int, content: Node, scope: str | None = None) -> Markup:
        return tag(name, content, scope=scope, class_="said" if at in said else None)

    body = []
    for first, *rest in lines:
        body.append(
            tag("tr", cell("th", 0, first, "row"), *(cell("td", at, one) for at, one in enumerate(rest, 1)))
        )
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", *(cell("th", at, one, "col") for at, one in enumerate(head)))),
            tag("tbody", *body),
            class_=class_ or None,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def _is_sentence(cell: Node) -> bool:
    # Markup has a form of its own.
    return isinstance(cell, str) and not isinstance(cell, Markup) and len(cell) > _SENTENCE_CHARACTERS


def facts(pairs: Iterable[tuple[str, Node]]) -> Markup:
    """Return a list of terms and their values, several in a row, and a long value across the whole width."""
    return tag(
        "dl",
        *(
            tag(
                "div",
                tag("dt", term),
                tag("dd", value),
                class_="wide" if len(value or "") > LONG_FACT else None,
            )
            for term, value in pairs
        ),
        class_="facts",
    )


def details(summary: Node, *children: Node, open_: bool = False) -> Markup:
    """Return a part that is folded until it is opened."""
    return tag("details", tag("summary", summary), *children, open_=open_)


def section(identity: str, title: str, *children: Node, link: str | None = None) -> Section:
    """Return a section with its heading, reachable as `#identity`; a page's list of contents calls it `link`,
    or by its heading.
    """
    made = Section(tag("section", tag("h2", title), *children, id=identity))
    made.identity, made.link = identity, link or title
    return made
