"""Facts of the host: always there, and nothing in them that names the machine or a place on it."""

import getpass
import platform
from pathlib import Path

import msgspec
import pytest

from investigator import host
from investigator.host import HostFacts, host_facts, usable_cpus


def test_facts_of_this_machine() -> None:
    facts = host_facts()
    assert facts.cores >= 1
    assert 1 <= facts.cores_usable == len(usable_cpus()) <= facts.cores
    assert facts.memory_bytes > facts.memory_available_bytes > 0
    assert facts.cpu_model
    assert msgspec.json.decode(msgspec.json.encode(facts), type=HostFacts) == facts


def test_they_name_no_place_and_no_machine() -> None:
    text = msgspec.json.encode(host_facts()).decode()
    assert str(Path.home()) not in text
    assert f'"{platform.node()}"' not in text
    assert f'"{getpass.getuser()}"' not in text


def test_a_system_that_tells_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host, "_text", lambda path: "")
    monkeypatch.setattr(host, "_CPU", tmp_path / "none")
    monkeypatch.setattr(host, "_EVENT_SOURCES", tmp_path / "none")
    facts = host_facts()
    assert (facts.governor, facts.turbo, facts.smt) == ("unknown",) * 3
    assert facts.perf_event_paranoid is None
    assert facts.perf.startswith("not available")


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC 7763\nflags\t: fpu\n", "AMD EPYC 7763"),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "implementer 0x41 part 0xd0c"),
        ("processor\t: 0\nModel\t\t: Raspberry Pi 5\n", "Raspberry Pi 5"),
    ],
)
def test_processors(cpuinfo: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_text", lambda path: cpuinfo if path == Path("/proc/cpuinfo") else "")
    assert host._cpu_model() == model


@pytest.mark.parametrize(
    ("uid", "paranoid", "units", "expected"),
    [
        (1000, 3, (), "not permitted to you (kernel.perf_event_paranoid is 3; 2 or less allows it)"),
        (1000, 2, ("software",), "user code only, cpu-clock only (no hardware counters)"),
        (1000, 1, ("cpu",), "user and kernel, hardware cycles"),
        (0, 4, ("cpu_core",), "user and kernel, hardware cycles"),
        (0, None, (), "not available: this system has no perf events"),
    ],
)
def test_perf(
    uid: int,
    paranoid: int | None,
    units: tuple[str, ...],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for unit in units:
        (tmp_path / unit).mkdir()
    monkeypatch.setattr(host, "_EVENT_SOURCES", tmp_path)
    monkeypatch.setattr(host.os, "geteuid", lambda: uid)  # type: ignore[attr-defined]
    monkeypatch.setattr(host.shutil, "which", lambda name: "/usr/bin/perf")  # type: ignore[attr-defined]
    assert host._perf(paranoid) == expected
