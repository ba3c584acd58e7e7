"""A Quarch module: a server that speaks its protocol over TCP, and quarchpy in front of it where it is
installed.

quarchpy is no part of the tests' requirements: with what it brings it has some hundred MB. Without it a
client of a few lines takes its place, with the same names and the same bytes on the wire.
"""

from __future__ import annotations

import fcntl
import importlib.util
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support import missing

from testdrive.errors import UsageError
from testdrive.power import parse
from testdrive.power.choice import open_meter
from testdrive.power.quarch import power_uw

#: quarchpy asks at this port, always.
PORT = 9760
HOST = "127.0.0.1"
OUTPUTS = "3V3 Voltage = 3300 mV\r\n3V3 Current = 500000 uA\r\n12V Voltage = 12000 mV\r\n12V Current = 250 mA"


class Module(threading.Thread):
    """Answers commands as a module does: two bytes of length, the text, and a cursor at its end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.outputs = OUTPUTS
        self.asked: list[str] = []
        self.hanging_up = False
        self._listener = socket.create_server((HOST, PORT))

    def run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                while head := connection.recv(2):
                    text = connection.recv(head[0] + 256 * head[1]).decode().strip()
                    self.asked.append(text)
                    if self.hanging_up:
                        break
                    answer = (self._answer(text) + "\r\n>").encode()
                    # In two packets, as longer answers come.
                    for part in (answer[:9], answer[9:]):
                        connection.sendall(len(part).to_bytes(2, "little") + part)
                        threading.Event().wait(0.01)

    def _answer(self, text: str) -> str:
        if text == "*tst?":
            return "OK"
        if text == "*idn?":
            return "Family: Quarch\r\nName: Power Module\r\nPart#: QTL1999-01"
        return self.outputs if text == "measure:outputs?" else "FAIL: 0x02 -Command not recognised"

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class Client:
    """What quarchpy's device is to us."""

    def __init__(self, target: str, connection_type: str, timeout: str) -> None:
        assert connection_type == "PY"
        self._socket = socket.create_connection((target.partition(":")[2], PORT), float(timeout))

    def send_command(self, command: str) -> str:
        content = (command + "\r\n").encode()
        self._socket.sendall(len(content).to_bytes(2, "little") + content)
        text = b""
        while not text.endswith(b"\r\n>"):
            head = self._socket.recv(2)
            if not head:
                raise ConnectionError("the module hung up")
            text += self._socket.recv(int.from_bytes(head, "little"))
        return text[:-3].decode()

    def close_connection(self) -> None:
        self._socket.close()


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[Module]:
    if importlib.util.find_spec("quarchpy") is None:
        monkeypatch.setitem(sys.modules, "quarchpy", SimpleNamespace(get_quarch_device=Client))
    else:
        # It writes its log into the home directory.
        monkeypatch.setenv("HOME", str(tmp_path))
    # There is one such port, and other tests of this module may run at the same time.
    with Path(__file__).open() as own:
        fcntl.flock(own, fcntl.LOCK_EX)
        try:
            made = Module()
        except OSError as error:
            missing(f"port {PORT} of {HOST}, at which quarchpy asks and which is taken ({error}),")
        made.start()
        yield made
        made.close()


def test_a_module_tells_the_power_of_all_its_rails(module: Module) -> None:
    meter = open_meter(parse([f"quarch:TCP:{HOST}"])[0])
    assert meter.read() == {"power_uw": 1_650_000 + 3_000_000}
    module.outputs = OUTPUTS.replace("250 mA", "500 mA")
    assert meter.read() == {"power_uw": 1_650_000 + 6_000_000}
    assert "QTL1999-01" in meter.source.title
    assert (meter.source.of, meter.source.interval_ns) == ("drive", 100_000_000)
    meter.close()
    meter.close()
    # It is asked, and nothing of it is changed.
    assert {text for text in module.asked if text.lower() != "*tst?"} == {"*idn?", "measure:outputs?"}


def test_a_module_that_hung_up_is_connected_to_again(module: Module) -> None:
    meter = open_meter(parse([f"quarch:TCP:{HOST}"])[0])
    module.hanging_up = True
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever quarchpy raises; the sampler takes anything
        meter.read()
    module.hanging_up = False
    assert meter.read()["power_uw"] > 0
    meter.close()


def test_a_module_that_tells_no_power_is_an_error_at_once(module: Module) -> None:
    module.outputs = "FAIL: no fixture"
    with pytest.raises(UsageError, match="cannot be read: the module told no power: 'FAIL: no fixture'"):
        open_meter(parse([f"quarch:TCP:{HOST}"])[0])


def test_where_no_module_answers_is_told(module: Module) -> None:
    with pytest.raises(UsageError, match=r"no module answers at TCP:127\.0\.0\.9"):
        open_meter(parse(["quarch:TCP:127.0.0.9"])[0])


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(UsageError, match=r"is no address of a module; give quarch:TCP:192\.168\.1\.4"):
        open_meter(parse(["quarch:192.168.1.4"])[0])


def test_without_quarchpy_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quarchpy", None)
    with pytest.raises(UsageError, match=r"pip install 'testdrive\[quarch\]'"):
        open_meter(parse([f"quarch:TCP:{HOST}"])[0])


@pytest.mark.parametrize(
    ("answer", "expected_uw"),
    [
        ("5V Voltage = 5000 mV\n5V Current = 1000000 uA", 5_000_000),
        ("5V_V: 5.0 V\n5V_I: 1.5 A\n", 7_500_000),
        ("12V Power = 2500 mW\n12V Voltage = 12000 mV\n12V Current = 1 uA", 2_500_000),
        ("5V Voltage = 5000 mV\n5V Current = -20 mA", -100_000),
        ("Digital 1 = 0\n5V Voltage = 5000 mV\n5V Current = 0 uA", 0),
    ],
)
def test_power_is_voltage_times_current_of_each_rail(answer: str, expected_uw: int) -> None:
    assert power_uw(answer) == expected_uw


@pytest.mark.parametrize(
    "answer", ["", "FAIL", "5V Voltage = 5000 mV", "5V Current = 5 uA\n12V Voltage = 3 mV"]
)
def test_an_answer_without_power_is_an_error(answer: str) -> None:
    with pytest.raises(OSError, match="the module told"):
        power_uw(answer)
