"""Facts of the machine that a reader needs to judge a run; they name no path, no user and no host name."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import psutil

UNKNOWN = "unknown"
_CPU = Path("/sys/devices/system/cpu")
_EVENT_SOURCES = Path("/sys/bus/event_source/devices")


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The machine as it is now. Texts are ``unknown`` where the system does not tell."""

    cpu_model: str
    architecture: str
    cores: int
    """Logical CPUs of the machine."""
    cores_physical: int | None
    cores_usable: int
    """Logical CPUs that this process may use (affinity); fewer in a restricted container."""
    memory_bytes: int
    memory_available_bytes: int
    swap_bytes: int
    kernel: str
    """System and release, e.g. ``Linux 6.1.0-26-amd64``."""
    libc: str
    distribution: str
    virtualisation: str
    """``none``, ``virtual machine (VENDOR)``, ``container``, or both."""
    governor: str
    """Frequency governors in use, e.g. ``performance``; ``none`` where the kernel scales no frequency."""
    turbo: str
    """``on``, ``off`` or ``unknown``."""
    smt: str
    """Hyper-threading: ``on``, ``off`` or ``unknown``."""
    load_average_1min: float | None
    perf: str
    """What of Linux ``perf`` is installed and permitted."""
    perf_event_paranoid: int | None


def host_facts() -> HostFacts:
    """Look at the machine; takes milliseconds, needs no privilege, never fails."""
    memory = psutil.virtual_memory()
    paranoid = _number(Path("/proc/sys/kernel/perf_event_paranoid"))
    return HostFacts(
        cpu_model=_cpu_model(),
        architecture=platform.machine() or UNKNOWN,
        cores=os.cpu_count() or 1,
        cores_physical=psutil.cpu_count(logical=False),
        cores_usable=len(usable_cpus()),
        memory_bytes=memory.total,
        memory_available_bytes=memory.available,
        swap_bytes=_swap_bytes(),
        kernel=f"{platform.system()} {platform.release()}",
        libc=_libc(),
        distribution=_distribution(),
        virtualisation=_virtualisation(),
        governor=_governor(),
        turbo=_turbo(),
        smt=_switch(_text(_CPU / "smt/active")),
        load_average_1min=_load(),
        perf=_perf(paranoid),
        perf_event_paranoid=paranoid,
    )


def usable_cpus() -> tuple[int, ...]:
    """Numbers of the logical CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def _cpu_model() -> str:
    fields = dict(_pairs(_text(Path("/proc/cpuinfo"))))
    if model := fields.get("model name") or fields.get("Model") or fields.get("cpu model"):
        return model
    if "CPU part" in fields:
        return f"implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    if sys.platform == "darwin":
        return _answer("sysctl", "-n", "machdep.cpu.brand_string") or UNKNOWN
    return platform.processor() or UNKNOWN


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()


def _swap_bytes() -> int:
    try:
        return psutil.swap_memory().total
    except (OSError, RuntimeError, psutil.Error):
        return 0


def _libc() -> str:
    name, version = platform.libc_ver()
    if name:
        return f"{name} {version}".strip()
    if any(Path("/lib").glob("ld-musl-*")):
        return "musl"
    return UNKNOWN


def _distribution() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        version = platform.mac_ver()[0]
        return f"macOS {version}" if version else UNKNOWN
    return release.get("PRETTY_NAME") or release.get("NAME") or UNKNOWN


def _virtualisation() -> str:
    found = []
    if " hypervisor" in f" {dict(_pairs(_text(Path('/proc/cpuinfo')))).get('flags', '')}":
        vendor = _text(Path("/sys/class/dmi/id/sys_vendor"))
        found.append(f"virtual machine ({vendor})" if vendor else "virtual machine")
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists():
        found.append("container")
    if found:
        return " and ".join(found)
    return "none seen" if sys.platform == "linux" else UNKNOWN


def _governor() -> str:
    governors = {_text(file) for file in _CPU.glob("cpu[0-9]*/cpufreq/scaling_governor")} - {""}
    if governors:
        return ", ".join(sorted(governors))
    return "none" if _CPU.is_dir() else UNKNOWN


def _turbo() -> str:
    if no_turbo := _text(_CPU / "intel_pstate/no_turbo"):
        return _switch({"0": "1", "1": "0"}.get(no_turbo, ""))
    return _switch(_text(_CPU / "cpufreq/boost"))


def _switch(text: str) -> str:
    return {"1": "on", "0": "off"}.get(text, UNKNOWN)


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None


def _perf(paranoid: int | None) -> str:
    if paranoid is None:
        return "not available: this system has no perf events"
    if shutil.which("perf") is None:
        return "not installed (Debian: package linux-perf)"
    if os.geteuid() != 0 and paranoid > 2:
        return f"not permitted to you (kernel.perf_event_paranoid is {paranoid}; 2 or less allows it)"
    scope = "user and kernel" if os.geteuid() == 0 or paranoid <= 1 else "user code only"
    # Names of the processor's own counting unit: x86, hybrid x86, ARM.
    hardware = any(
        unit.name == "cpu" or unit.name.startswith(("cpu_core", "armv8_", "apple_"))
        for unit in (_EVENT_SOURCES.iterdir() if _EVENT_SOURCES.is_dir() else ())
    )
    return f"{scope}, {'hardware cycles' if hardware else 'cpu-clock only (no hardware counters)'}"


def _number(path: Path) -> int | None:
    try:
        return int(_text(path))
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _answer(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=10, text=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
