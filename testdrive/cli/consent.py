"""Which consent belongs to which drive, where one command runs on several."""

from __future__ import annotations

from collections.abc import Sequence

from testdrive.errors import UsageError


def consents(uris: Sequence[str], erase: Sequence[str]) -> list[str | None]:
    """The ``--erase`` for each drive.

    Every consent is handed on as it was given: whether it is the right one is for the engine to say, last.
    Only where there are several drives must it be told which one a serial means, and a serial that means none
    of them is an error, since whoever wrote it expects that drive to be written to.

    Raises
    ------
    UsageError
        A consent names none of the drives.
    """
    if not erase:
        return [None] * len(uris)
    if len(uris) == 1 and len(erase) == 1:
        return [erase[0]]
    names = _erase_names(uris)
    for name in erase:
        if name not in names:
            known = ", ".join(f"{uri} is {known!r}" for uri, known in zip(uris, names, strict=True) if known)
            raise UsageError(
                f"--erase {name} names none of the drives ({known or 'none of them is a block device'});"
                " nothing was started"
            )
    return [name if name in erase else None for name in names]


def _erase_names(uris: Sequence[str]) -> list[str | None]:
    from testdrive.engine import list_drives

    by_path = {entry.get("uri"): entry.get("erase_name") for entry in list_drives()}
    return [by_path.get(uri.partition("?")[0]) for uri in uris]
