"""A container without a container engine: namespaces, and a root made of the host's system directories.

The task sees its mounts at the same paths as under docker; bind mounts keep the inode numbers of the sources.
Standard library only: part of the supervisor (`supervise`).
"""

import contextlib
import fcntl
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from investigator.engine import linux

_SYSTEM = frozenset({"bin", "sbin", "usr", "etc", "opt", "nix", "gnu"})
"""Top-level directories of the host that a task sees, beside all whose name starts with ``lib``."""
_DEVICES = ("null", "zero", "full", "random", "urandom")
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1


class CagedMount(TypedDict):
    """`interface.Mount` in JSON."""

    source: str
    target: str
    writable: bool


class Cage(TypedDict):
    """Namespaces and the root that a task sees in them."""

    root: str
    """An empty directory; the root is mounted on it, visible in the cage only."""
    user_namespace: bool
    """Needed to do all this without being root."""
    mounts: list[CagedMount]
    scratch: str
    """Where the task sees its scratch directory."""
    scratch_bytes: int
    """Size of a tmpfs for it; 0 where it is one of the mounts."""
    tmp_bytes: int


def enter_namespaces(user_namespace: bool) -> None:
    """Leave the host's mounts, network and IPC; the next child is the first process of a new pid namespace.

    Raises:
        OSError: the kernel refuses.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = linux.NEWNS | linux.NEWPID | linux.NEWIPC | linux.NEWNET
    linux.unshare(flags | (linux.NEWUSER if user_namespace else 0))
    if user_namespace:
        # Everybody keeps the own id: what the task writes belongs to the user. Groups cannot be changed any
        # more, which is the condition for mapping one without privilege; see user_namespaces(7).
        Path("/proc/self/setgroups").write_text("deny", "ascii")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", "ascii")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", "ascii")


def build_root(cage: Cage) -> None:
    """Mount the new root on ``cage["root"]``; to be called in the namespaces, before chroot.

    Raises:
        OSError: the kernel refuses a mount, or a source is missing.
    """
    _loopback_up()
    root = Path(cage["root"])
    linux.mount(None, Path("/"), None, linux.REC | linux.PRIVATE)
    linux.mount("tmpfs", root, "tmpfs", linux.NOSUID | linux.NODEV, "mode=755,size=4m")
    for entry in _system_entries():
        if entry.is_symlink():
            (root / entry.name).symlink_to(entry.readlink())
        else:
            linux.bind(entry, root / entry.name, writable=False)
    _devices(root)
    linux.bind(Path("/sys"), root / "sys", writable=False)
    _proc(root / "proc")
    _tmpfs(root / "tmp", cage["tmp_bytes"])
    if cage["scratch_bytes"]:
        _tmpfs(_below(root, cage["scratch"]), cage["scratch_bytes"])
    for mount in cage["mounts"]:
        linux.bind(Path(mount["source"]), _below(root, mount["target"]), writable=mount["writable"])
    flags = linux.RDONLY | linux.NOSUID | linux.NODEV
    linux.mount(None, root, None, linux.REMOUNT | linux.BIND | flags)


def _loopback_up() -> None:
    """As in a container without network: programs may talk to themselves."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        fcntl.ioctl(link, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _system_entries() -> Iterable[Path]:
    for entry in sorted(Path("/").iterdir()):
        if (entry.name in _SYSTEM or entry.name.startswith("lib")) and entry.is_dir():
            yield entry


def _devices(root: Path) -> None:
    for name in _DEVICES:
        linux.bind(Path("/dev", name), root / "dev" / name, writable=True)
    for name, descriptor in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (root / "dev" / name).symlink_to(f"/proc/self/fd{descriptor}")
    _tmpfs(root / "dev/shm", 64 << 20)


def _proc(target: Path) -> None:
    target.mkdir()
    try:
        linux.mount("proc", target, "proc", linux.NOSUID | linux.NODEV | linux.NOEXEC)
    except OSError:
        # Refused inside some containers. The outer one serves: /proc/self is right in it too.
        linux.mount("/proc", target, None, linux.BIND | linux.REC)


def _tmpfs(target: Path, size_bytes: int) -> None:
    target.mkdir(parents=True, exist_ok=True)
    linux.mount("tmpfs", target, "tmpfs", linux.NOSUID | linux.NODEV, f"mode=1777,size={size_bytes}")


def _below(root: Path, absolute: str) -> Path:
    return root / absolute.lstrip("/")
