"""The kernel's doors that a cage needs and that `os` does not have before Python 3.12, through the C library.

Numbers from <linux/sched.h>, <linux/mount.h>, <linux/prctl.h> and <linux/capability.h>.
"""

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT = 0x1, 0x2, 0x4, 0x8, 0x20
NOATIME, NODIRATIME, BIND, REC, PRIVATE, RELATIME = 0x400, 0x800, 0x1000, 0x4000, 0x40000, 0x200000
_SET_PDEATHSIG, _CAPBSET_DROP, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS, _CAP_AMBIENT = 1, 24, 36, 38, 47
_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522


def unshare(flags: int) -> None:
    """Move the calling process (its coming children, for the pid namespace) into new namespaces.

    Raises:
        OSError: the kernel or a container's filter refuses.
    """
    _check(_libc().unshare(flags), "namespaces")


def mount(source: str | None, target: Path, kind: str | None, flags: int, options: str = "") -> None:
    """Attach a file system or directory to `target`; None stands for the null pointers of the system call.

    Raises:
        OSError: naming the source.
    """
    done = _libc().mount(
        None if source is None else os.fsencode(source),
        os.fsencode(target),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(done, source or str(target))


def bind(source: Path, target: Path, *, writable: bool) -> None:
    """Show `source`, a file or a directory with all that is mounted below it, at `target`, which is made.

    Raises:
        OSError: the source is missing, or the kernel refuses.
    """
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(str(source), target, None, BIND | REC)
    if not writable:
        mount(None, target, None, REMOUNT | BIND | RDONLY | _flags(target))


def _flags(target: Path) -> int:
    """Flags in force on a mount: in a user namespace a remount may not drop any of them."""
    have = os.statvfs(target).f_flag
    pairs = (
        (os.ST_NOSUID, NOSUID), (os.ST_NODEV, NODEV), (os.ST_NOEXEC, NOEXEC),
        (os.ST_NOATIME, NOATIME), (os.ST_NODIRATIME, NODIRATIME), (os.ST_RELATIME, RELATIME),
    )  # fmt: skip
    return sum(flag for seen, flag in pairs if have & seen)


def die_with_parent(signal_number: int) -> None:
    """Get `signal_number` when the parent ends."""
    _check(_prctl(_SET_PDEATHSIG, signal_number), "prctl")


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends; without effect outside Linux."""
    if sys.platform == "linux":
        _prctl(_SET_CHILD_SUBREAPER, 1)


def drop_privileges(uid: int, gid: int) -> None:
    """Become `uid` for good, without any capability, now or after an exec. As far as the system knows these.

    Raises:
        OSError: the ids cannot be taken.
    """
    if sys.platform == "linux":
        for capability in range(64):
            if _prctl(_CAPBSET_DROP, capability) != 0:
                break
        _prctl(_CAP_AMBIENT, _CAP_AMBIENT_CLEAR_ALL)
    if (uid, gid) != (os.getuid(), os.getgid()):
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        if uid != 0:
            # Effective, permitted and inheritable set: 3 x 64 bits.
            header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
            _check(_libc().capset(header, (ctypes.c_uint32 * 6)()), "capabilities")
        _prctl(_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, argument: int) -> int:
    zero = ctypes.c_ulong(0)
    done: int = _libc().prctl(option, ctypes.c_ulong(argument), zero, zero, zero)
    return done


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _check(done: int, what: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
