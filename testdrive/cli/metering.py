"""What the commands that run a plan have of meters: which is read beside which drive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from testdrive.errors import UsageError
from testdrive.power import Choice, Sampler, parse
from testdrive.running import Target

#: How long a drive is left alone before a run beside which its power is measured.
IDLE_DEFAULT_NS = 5_000_000_000
_MODELLED = "sim:"


def beside_meters(targets: Sequence[Target], texts: Sequence[str]) -> list[Target]:
    """Open the meters for each drive; without any the targets are as they were.

    Raises
    ------
    UsageError
        A meter cannot be opened, is of no drive of this run, or could be of several drives. None is left
        open.
    """
    choices = parse(texts)
    if not choices:
        return list(targets)
    _check_drives(choices, [target.uri for target in targets])
    made: list[Target] = []
    try:
        for target in targets:
            mine = [choice for choice in choices if choice.concerns(target.uri)]
            made.append(replace(target, sampler=Sampler(mine) if mine else None))
        _check_one_drive_each(choices, made)
    except BaseException:
        for target in made:
            if target.sampler is not None:
                target.sampler.close()
        raise
    return made


def _check_drives(choices: Sequence[Choice], uris: Sequence[str]) -> None:
    for choice in choices:
        if choice.drive is not None and choice.drive not in uris:
            raise choice.error(f"drive={choice.drive} is no drive of this run; it has {', '.join(uris)}")
    for uri in uris:
        if uri.startswith(_MODELLED) and any(choice.concerns(uri) for choice in choices):
            raise UsageError(
                f"--power beside {uri}: a modelled drive runs in virtual time, which no meter follows; it"
                " keeps a ledger of its own, so leave --power out, or say ?drive=URI of the one measured"
            )


def _check_one_drive_each(choices: Sequence[Choice], targets: Sequence[Target]) -> None:
    if len(targets) < 2:
        return
    for target in targets:
        meters = target.sampler.sources if target.sampler is not None else []
        of_drive = {source.name for source in meters if source.of == "drive"}
        for choice in choices:
            if choice.drive is None and choice.name in of_drive:
                raise choice.error(
                    "with several drives nobody knows which one it measures; add ?drive=URI, or ?of=host if"
                    " it measures the host"
                )
