"""sysfs trees that tests lay out, as the kernel's documentation of hwmon and powercap has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from testdrive.power.meter import SYSFS_VARIABLE


def lay_out(root: Path, files: dict[str, object]) -> None:
    """Write files below a directory, with a newline as the kernel does."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")


def sysfs_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, object]) -> Path:
    """A sysfs with these files, which is the host's for as long as the test lasts."""
    root = tmp_path / "sys"
    (root / "class").mkdir(parents=True)
    lay_out(root / "class", files)
    monkeypatch.setenv(SYSFS_VARIABLE, str(root))
    return root / "class"


def hwmon(number: int, driver: str, **attributes: object) -> dict[str, object]:
    """The files of a chip."""
    folder = f"hwmon/hwmon{number}"
    return {f"{folder}/name": driver} | {f"{folder}/{name}": value for name, value in attributes.items()}


def rapl(number: int, energy_uj: int, range_uj: int, name: str = "") -> dict[str, object]:
    """The files of a processor's package."""
    folder = f"powercap/intel-rapl:{number}"
    return {
        f"{folder}/name": name or f"package-{number}",
        f"{folder}/energy_uj": energy_uj,
        f"{folder}/max_energy_range_uj": range_uj,
    }
