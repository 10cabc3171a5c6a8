"""Who started a container or a scratch directory, and whether that process still lives.

A killed harness (``kill -9``, power, the kernel out of memory) cannot tidy up. Everything it leaves carries
the name of its owner: the next run and ``investigate clean`` tell leftovers from what another run still uses.
"""

import os
import platform
import re
from pathlib import Path

import msgspec
import psutil

_NOT_DIGITS = re.compile(r"[^0-9]")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9.-]")


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A process, named so that a reused pid or another machine on the same daemon is not taken for it."""

    pid: int
    start: str
    """Start of the process: clock ticks since boot on Linux, seconds since 1970 elsewhere."""
    boot: str
    """Boot id on Linux; empty elsewhere (there `start` is absolute already)."""
    host: str
    """Host name and pid namespace: a pid means nothing outside of them."""

    def __str__(self) -> str:
        return f"{self.pid}:{self.start}:{self.boot}:{self.host}"


def current_owner() -> Owner:
    """Name of the calling process."""
    pid = os.getpid()
    return Owner(pid=pid, start=_start_of(pid) or "0", boot=_boot(), host=_host())


def parse_owner(text: str) -> Owner | None:
    """Read ``str(owner)`` back; None for anything else (labels can be written by everybody)."""
    fields = text.split(":")
    if len(fields) != 4 or not fields[0].isdecimal() or not fields[0].isascii() or len(fields[0]) > 10:
        return None
    return Owner(pid=int(fields[0]), start=fields[1], boot=fields[2], host=fields[3])


def is_dead(owner: Owner) -> bool:
    """Whether `owner` surely lives no more. An owner on another machine cannot be judged: False."""
    if owner.host != _host():
        return False
    return owner.boot != _boot() or _start_of(owner.pid) != owner.start


def _start_of(pid: int) -> str | None:
    stat = Path(f"/proc/{pid}/stat")
    try:
        # The command's name (field 2) may contain blanks and parentheses; after the last one all is regular.
        fields = stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        fields = []
    if fields:
        return None if fields[0] in {"Z", "X"} else fields[19]
    try:
        return str(int(psutil.Process(pid).create_time()))
    except (psutil.Error, OverflowError, ValueError):
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _host() -> str:
    try:
        namespace = _NOT_DIGITS.sub("", Path("/proc/self/ns/pid").readlink().name)
    except OSError:
        namespace = ""
    return f"{_NOT_PLAIN.sub('-', platform.node())}/{namespace}"
