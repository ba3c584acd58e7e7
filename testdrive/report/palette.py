"""Colours that the colour-blind can tell apart: M. Okabe and K. Ito's set, with dashes so that hue is never
alone.

Each colour is given for a light and for a dark page. Opcodes differ in lightness as well as hue, and every
plot of
opcodes lets each be shown on its own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ink:
    """A colour on a light and on a dark page, with the dash that tells its line apart without colour."""

    light: str
    dark: str
    dash: str = "solid"

    def payload(self) -> dict[str, str]:
        """Return the form that the page's script reads."""
        return {"light": self.light, "dark": self.dark, "dash": self.dash}


OPCODES = {
    "read": Ink("#0072B2", "#56B4E9"),
    "write": Ink("#E69F00", "#E69F00"),
    "trim": Ink("#A5387A", "#E78BC0"),
    "flush": Ink("#1A1A1A", "#F5F5F5"),
    "write_zeroes": Ink("#009E73", "#2BC79A"),
}
ORIGINAL = Ink("#555555", "#B8B8B8", "dot")
_DRIVES = (
    ("#0072B2", "#56B4E9"),
    ("#D55E00", "#FF8A3D"),
    ("#009E73", "#2BC79A"),
    ("#CC79A7", "#E7A3C8"),
    ("#B8860B", "#F0E442"),
    ("#7A3E00", "#C49A6C"),
)
_DASHES = ("solid", "dash", "dashdot", "longdash")

MATPLOTLIB_DASHES = {
    "solid": "-",
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (8, 3)),
}


def drive(index: int) -> Ink:
    """Return the ink of the drive at `index` (from 0): twenty-four differ by colour or dash before they
    repeat.
    """
    light, dark = _DRIVES[index % len(_DRIVES)]
    return Ink(light, dark, _DASHES[(index + index // len(_DRIVES)) % len(_DASHES)])
