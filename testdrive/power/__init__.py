"""Power and telemetry beside a run: meters, the sampler, and what a phase drew (docs/power.md).

What other parts call::

    parse(texts)                 # what --power says, as choices
    Sampler(choices)             # opens the meters, and samples beside a run
    power_of(recording)          # the power of a recording's phases, from whichever source, or None
    attach(recording, ...)       # bring in what another meter logged, after the run
    found()                      # which meters this host has
"""

from __future__ import annotations

from testdrive.power.attaching import Attached, Attachment, attach
from testdrive.power.choice import Choice, parse
from testdrive.power.found import found
from testdrive.power.phases import PhasePower, Power, power_of
from testdrive.power.sampler import Sampler

__all__ = [
    "Attached",
    "Attachment",
    "Choice",
    "PhasePower",
    "Power",
    "Sampler",
    "attach",
    "found",
    "parse",
    "power_of",
]
