"""Runs programs of a reproduction in the engine, without network, by the shipped command; and judges them."""

import contextlib
import math
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from investigator import npm_client, resources, units
from investigator.build import shared_objects
from investigator.cache import cache_root
from investigator.engine.choose import SCRATCH_FOLDER
from investigator.engine.files import fresh_scratch
from investigator.engine.interface import Engine, Mount, Outcome, Task
from investigator.engine.settings import PATH
from investigator.exchange import UnreadableError, take
from investigator.plan import Environment
from investigator.repro.manifest import Program
from investigator.repro.package import Side
from investigator.repro.shapes import Draft
from investigator.store import disk_error
from investigator.text import clean_block, clean_text

TOLERANCE = 1 / 3
"""How far from the finding a program's change may lie, as a part of the finding: the rule of the upstream
checklist. Both are changes in time per call in percent."""
MORE_ROUNDS = 20
PROGRAM_TIMEOUT_S = 900.0
COMPILE_TIMEOUT_S = 1800.0
_RESULT_BYTES = 1 << 20
_OUTPUT_LIMIT = 6000
_NEEDED_BYTES = 1 << 30
"""Two releases of Node, an addon, and two builds of it."""


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    """What run.mjs writes for one program."""

    program: str
    ns_per_call: dict[str, float]
    change_pct: float
    interval_pct: tuple[float, float]
    range_pct: tuple[float, float]
    rounds: int


def judged(finding_pct: float, change_pct: float, low_pct: float, high_pct: float) -> tuple[bool, str]:
    """Whether a program shows a finding, with the sentence that says so or why not.

    It does where its whole interval is on the finding's side of zero, and its change differs from the finding
    by at most a third of the finding.

    Args:
        finding_pct: the finding's change in time per call, percent.
        change_pct: the program's.
        low_pct: lower end of the program's interval.
        high_pct: upper end.
    """
    shown = f"it changed by {units.format_percent(change_pct)} [{units.format_interval(low_pct, high_pct)}]"
    against = f"the finding by {units.format_percent(finding_pct)}"
    if not all(map(math.isfinite, (finding_pct, change_pct, low_pct, high_pct))):
        return False, "it gave no figure that can be compared"
    if change_pct * finding_pct <= 0:
        return False, f"{shown}, {against}: not the same direction"
    if (low_pct <= 0) if finding_pct > 0 else (high_pct >= 0):
        return False, f"{shown}: its interval does not exclude no change"
    if abs(change_pct - finding_pct) > abs(finding_pct) * TOLERANCE:
        return False, f"{shown}, {against}: not within a third of the size"
    return True, f"{shown}, {against}: the same direction, within a third of the size"


def is_open(finding_pct: float, low_pct: float, high_pct: float) -> bool:
    """Whether a program that was not accepted might be with more rounds: its interval reaches where it would.

    It is then measured once more, with `MORE_ROUNDS`, and that measurement alone counts: two looks, fixed
    before the first.
    """
    ends = sorted((finding_pct * (1 - TOLERANCE), finding_pct * (1 + TOLERANCE)))
    return low_pct <= ends[1] and high_pct >= ends[0]


class Workshop:
    """A folder with everything installed, in which programs of one pair of sides are run."""

    def __init__(
        self,
        engine: Engine,
        root: Path,
        environments: Sequence[Environment],
        sides: Sequence[Side],
        cpus: str | None,
    ) -> None:
        self._engine = engine
        self._shipped = root / "shipped"
        self._work = root / "work"
        self._environments = environments
        self._sides = sides
        self._cpus = cpus
        self._tools = root / "tools"
        for folder in (self._shipped, self._work, self._tools):
            folder.mkdir()

    def install(self, files: Mapping[str, bytes], platform: str) -> bytes:
        """Install the packages of ``package.json``, which every reproduction of the pair has; the lock file.

        Raises:
            UsageError: a package that the registry does not have.
            HostUnfitError: the registry does not answer, or the disk is full.
        """
        self.put({"package.json": files["package.json"]})
        npm_client.lock(self._shipped)
        npm_client.install_locked(self._shipped, platform)
        return (self._shipped / "package-lock.json").read_bytes()

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write files of a reproduction. Tasks see them read-only: no path here is ever theirs."""
        write_files(self._shipped, files)

    def run(self, draft: Draft, rounds: int | None = None) -> tuple[_Result | None, str]:
        """Run one program with the shipped command; its figures (None where it failed) and what it printed.

        Args:
            draft: the program, whose files were `put`.
            rounds: other than the usual number.

        Raises:
            EngineMissingError: the engine does not answer any more.
            HostUnfitError: the disk is full.
        """
        mounts = {
            "repro": Mount(source=self._shipped, target=PurePosixPath("/repro")),
            "work": Mount(source=self._work, target=PurePosixPath("/work"), writable=True),
            "tool": Mount(source=resources.node_tools(), target=PurePosixPath("/tool")),
            "tools": Mount(source=self._tools, target=PurePosixPath("/tools")),
            "recipe": Mount(
                source=resources.root() / "node_fixtures/compile", target=PurePosixPath("/recipe")
            ),
            **self._given(draft),
        }
        seen = {name: self._engine.inside(mount) for name, mount in mounts.items()}
        self._offer_npm(seen["tool"])
        name = f"result-{draft.name}.json"
        (self._work / name).unlink(missing_ok=True)
        arguments = [draft.name, "--json", str(seen["work"] / name)]
        arguments += ["--rounds", str(rounds)] if rounds is not None else []
        for option in ("baseline-node", "candidate-node", "baseline-addon", "candidate-addon"):
            if option in seen:
                arguments += [f"--{option}", str(seen[option])]
        outcome = self._engine.run(
            Task(
                command=("/bin/sh", str(seen["repro"] / "run.sh"), *arguments),
                purpose=f"run the reproduction {draft.name}",
                mounts=tuple(mounts.values()),
                environment=_environment(seen),
                working_directory=seen["repro"],
                timeout_s=COMPILE_TIMEOUT_S if draft.addon else PROGRAM_TIMEOUT_S,
                cpus=self._cpus,
            )
        )
        return self._result(name, draft, outcome), _printed(outcome)

    def _offer_npm(self, tool: PurePosixPath) -> None:
        """A program called npm: the one in the Python package relies on links that a wheel cannot hold."""
        client = shlex.quote(str(tool / "lib/node_modules/npm/bin/npm-cli.js"))
        path = self._tools / "npm"
        path.write_text(f'#!/bin/sh\nexec node {client} "$@"\n', "utf-8")
        path.chmod(0o755)

    def _given(self, draft: Draft) -> dict[str, Mount]:
        """Builds that no registry has, and the objects that spare compiling SQLite again."""
        mounts: dict[str, Mount] = {}
        for name, side, environment in zip(
            ("baseline", "candidate"), self._sides, self._environments, strict=True
        ):
            if not side.fetched:
                target = PurePosixPath(f"/given/{name}-node")
                mounts[f"{name}-node"] = Mount(source=environment.node.directory, target=target)
            package = environment.addon
            if not draft.addon or package is None or package.directory is None:
                continue
            if not side.addon_fetched:
                target = PurePosixPath(f"/given/{name}-addon")
                mounts[f"{name}-addon"] = Mount(source=package.directory, target=target)
            elif environment.flavor == "source" and "objects" not in mounts:
                folder = shared_objects(self._engine, package)
                if folder is not None:
                    mounts["objects"] = Mount(source=folder, target=PurePosixPath("/objects"), writable=True)
        return mounts

    def _result(self, name: str, draft: Draft, outcome: Outcome) -> _Result | None:
        if not outcome.ok:
            return None
        try:
            found = msgspec.json.decode(take(self._work / name, _RESULT_BYTES), type=list[_Result])
        except (UnreadableError, msgspec.MsgspecError):
            return None
        one = found[0] if len(found) == 1 and found[0].program == draft.name else None
        return one if one is not None and {"baseline", "candidate"} <= one.ns_per_call.keys() else None


def _environment(seen: Mapping[str, PurePosixPath]) -> dict[str, str]:
    variables = {
        "PATH": f"{seen['tools']}:{seen['tool'] / 'bin'}:{PATH}",
        "REPRO_WORK": str(seen["work"]),
        "LC_ALL": "C",
        "PYTHONDONTWRITEBYTECODE": "1",
        "npm_config_update_notifier": "false",
    }
    if "objects" in seen:
        # Our own build left SQLite's object file: the same compiler, flags and text give the same object.
        variables["CC"] = f"{seen['tool'] / 'bin/node'} {seen['recipe'] / 'cc.mjs'} gcc"
        variables["SHARED_OBJECTS"] = str(seen["objects"])
    return variables


def _printed(outcome: Outcome) -> str:
    text = outcome.stdout + (f"\n{outcome.stderr}" if outcome.stderr.strip() and not outcome.ok else "")
    return clean_block(text.strip(), _OUTPUT_LIMIT)


@contextlib.contextmanager
def workshop(
    engine: Engine, environments: Sequence[Environment], sides: Sequence[Side], cpus: str | None = None
) -> Iterator[Workshop]:
    """Make a `Workshop` in a folder that vanishes.

    Raises:
        HostUnfitError: the disk is full.
    """
    # Where `investigate clean` looks for what a killed process left.
    place, user, group = cache_root() / SCRATCH_FOLDER, os.geteuid(), os.getegid()
    with fresh_scratch(place, uid=user, gid=group, needed_bytes=_NEEDED_BYTES) as root:
        root.chmod(0o755)
        yield Workshop(engine, root, environments, sides, cpus)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files by relative name, readable by everybody; ``run.sh`` can be run.

    Raises:
        HostUnfitError: the disk is full.
    """
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.parent.chmod(0o755)
            path.write_bytes(content)
            path.chmod(0o755 if name == "run.sh" else 0o644)
        except OSError as error:
            raise disk_error(error, path) from error


def _complaint(printed: str) -> str:
    """The line that says what went wrong: the runner's own, else the first error of anything."""
    lines = printed.splitlines()
    own = [line for line in lines if line.startswith("error: ")]
    others = (line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE))
    return own[-1] if own else next(others, lines[-1] if lines else "")


def program_of(draft: Draft, result: _Result | None, printed: str, finding_pct: float) -> Program:
    """What came of one program."""
    if result is None:
        said = clean_text(_complaint(printed), 200) or "it printed nothing"
        return Program(
            name=draft.name,
            kind=draft.kind,
            title=draft.title,
            shipped=False,
            reason=f"it could not be run: {said}",
            output=printed,
        )
    shows, reason = judged(finding_pct, result.change_pct, *result.interval_pct)
    return Program(
        name=draft.name,
        kind=draft.kind,
        title=draft.title,
        shipped=shows,
        reason=reason,
        files=tuple(f"{draft.name}/{name}" for name in draft.files) if shows else (),
        change_pct=result.change_pct,
        ci_low_pct=result.interval_pct[0],
        ci_high_pct=result.interval_pct[1],
        min_pct=result.range_pct[0],
        max_pct=result.range_pct[1],
        baseline_ns_per_call=result.ns_per_call["baseline"],
        candidate_ns_per_call=result.ns_per_call["candidate"],
        rounds=result.rounds,
        output=printed,
    )
