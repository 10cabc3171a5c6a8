"""The spec: everything that defines an investigation. Command-line options make one; so does a TOML file."""

import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
import tomli_w

from investigator.errors import StoredFileError, UsageError
from investigator.paths import user_path
from sqlcipher_bench.profiles import CIPHERS, NO_CIPHER

SPEC_SCHEMA = 1
MAX_BYTES = 1 << 20
"""Of a spec file; one of this tool's own has less than a thousand."""

CIPHER_ADDON: Final = "better-sqlite3-multiple-ciphers"
"""The addon under test where none is named."""
Command = Literal["sqlite", "js"]
Axis = Literal["node", "addon"]
"""What differs between the environments: Node versions under one addon, or addons on one Node version."""
EngineChoice = Literal["auto", "docker", "local"]
Storage = Literal["tmpfs", "disk"]
Flavor = Literal["source", "prebuilt"]
FailOn = Literal["slower", "none"]
FixKind = Literal["node", "addon", "patch"]
FIX_BUDGET_MIN = 8.0
"""Minutes of measuring of `investigate validate`: enough for all 16 rounds of the usual operations."""
ARMS = ("baseline", "regressed", "fix")
"""Labels of the environments of `investigate validate`, in their order."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_PARAM_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_EXPLAIN = re.compile(r"all|none|[1-9][0-9]{0,2}")
_CPUS = re.compile(r"[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?){0,63}")
_NODE_FLAG = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_-]*(=[A-Za-z0-9_.,:/+-]*)?")
_OTHER_PROGRAM = re.compile(
    r"-[ecpvhi]|-pe|--(eval|check|print|version|help|interactive|test|run|watch|v8-options|completion-bash"
    r"|prof-process|build-snapshot|build-sea|experimental-sea-config|entry-url|input-type)"
)
"""Flags with which node does something else than running the worker."""
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
_PATH_ITEM = re.compile(r"(\s*(?:[^=<>~^|*:]+=\s*)?path:\s*)(.*\S)\s*", re.DOTALL)


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--quick`` and ``--thorough`` stand for; options given beside them win."""

    option: str | None = None
    rounds: int = 8
    passes: int = 4
    """More rounds buy more than more passes: most of the noise lies between processes (A/A on two cores: a
    pair of processes differs by 3.3 % with 6 passes, 3.5 % with 4, 4.1 % with 3, at 1.27 : 1 : 0.86 of the
    time)."""
    pass_ms: int = 41
    """A little above the 40 ms that design.md section 6 asks for."""
    budget_min: float = 4.5
    pair_budget_min: float | None = None
    """Budget where only two versions are compared: enough for all 16 rounds. With three, the first 8 rounds
    take the usual budget already, and a default run is to end within five minutes."""
    single_look: bool = False
    explain: str = "3"
    """Findings to explain: a layer costs about two minutes each."""
    at_most: int = 0
    """Rounds that undecided cells may get in all, where that is more than twice the first look."""

    def budget_for(self, versions: Sequence[str]) -> float:
        """Minutes of measuring for so many versions."""
        return self.pair_budget_min if self.pair_budget_min and len(versions) <= 2 else self.budget_min

    def max_rounds(self, rounds: int) -> int:
        """Rounds in all, with `rounds` before the first verdict."""
        return rounds if self.single_look else max(rounds * 2, self.at_most)


USUAL = Preset(pair_budget_min=8.0)
QUICK = Preset(
    option="--quick", rounds=6, passes=2, pass_ms=30, budget_min=2.0, single_look=True, explain="none"
)
THOROUGH = Preset(option="--thorough", budget_min=20.0, at_most=32)


class Fix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `investigate validate` judges: the environment labelled ``fix`` beside those of `ARMS`."""

    kind: FixKind
    build: str = ""
    """Of an addon: an item as in ``--addon``; of a patch: its file. Empty where `Spec.compared` has it."""
    name: str = ""
    """Of a patch: the file name that the user gave, for people."""
    ops: tuple[str, ...] = ()
    """Operations whose loss must come back; empty: those that are slower by a finding."""
    restore_pct: float = 80.0
    """Share of the loss that must come back at least, percent: the lower end of its interval."""
    equal: bool = False
    """Instead of a share: no slower than the baseline, by the rule of ``no_change``."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One investigation. Percentages are in percent, `budget_min` in minutes."""

    schema: int = SPEC_SCHEMA
    command: Command = "sqlite"
    axis: Axis = "node"
    versions: tuple[str, ...]
    """Items of ``--versions`` as the user wrote them; exactly one where the axis is the addon."""
    baseline: str | None = None
    """The version or label everything is compared with; None takes the first."""
    addon: str = CIPHER_ADDON
    """The addon under test; not used where the axis is the addon."""
    addons: tuple[str, ...] = ()
    """Where the axis is the addon: items of ``--addon`` as the user wrote them, else empty."""
    prebuilt: bool = False
    patch: str | None = None
    node_flags: tuple[str, ...] = ()
    ops: tuple[str, ...] = ("essential",)
    workloads: tuple[str, ...] = ()
    """Files of the user's own operations; relative paths count from the spec's folder."""
    params: dict[str, str] = {}
    cipher: str = "chacha20"
    engine: EngineChoice = "auto"
    base_image: str | None = None
    cpus: str | None = None
    storage: Storage = "tmpfs"
    rounds: int = USUAL.rounds
    max_rounds: int = USUAL.max_rounds(USUAL.rounds)
    """Rounds in all after extension for undecided cells; equal to `rounds` for a single look."""
    passes: int = USUAL.passes
    """Timed passes of every operation in one invocation."""
    pass_ms: int = USUAL.pass_ms
    """Aim of the length of a pass on the fastest environment, in milliseconds."""
    margin_pct: float = 2.0
    equivalence_pct: float = 3.0
    finding_pct: float = 5.0
    layout_pct: float = 4.0
    """What code placement alone does between builds of different releases (1 to 4 %, seen where the object
    code is identical): the interval of a finding must lie wholly beyond it. An estimate of 5 % is not enough:
    addon 11.10.0 on Node 20 against 22 gave +4.9 % [+2.0, +6.3]; every other run would have filed it."""
    budget_min: float = USUAL.budget_min
    """Measuring time; extension rounds start only while it lasts, the first `rounds` always run."""
    seed: int = 1
    explain: str = USUAL.explain
    """Findings whose layer is looked for, largest first: a number, ``all`` or ``none``."""
    fail_on: FailOn = "none"
    fix: Fix | None = None
    """Set for `investigate validate`: the run compares `ARMS` and judges the last of them."""

    @property
    def compared(self) -> tuple[str, ...]:
        """Items that are compared with each other: Node versions, or addons."""
        return self.addons if self.axis == "addon" else self.versions

    @property
    def items(self) -> tuple[str, ...]:
        """The same one by one: an entry of a file may hold several versions with commas between them."""
        if self.axis == "addon":
            return self.addons
        return tuple(item.strip() for text in self.versions for item in text.split(","))

    @property
    def addon_items(self) -> tuple[str, ...]:
        """Every addon that takes part, as the user wrote it; in ``js`` runs none is taken."""
        return self.addons if self.axis == "addon" else (self.addon,)

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of rounds at which verdicts are taken: 8 and 16, with ``--thorough`` also 32."""
        looks = [self.rounds]
        while looks[-1] * 2 <= self.max_rounds:
            looks.append(looks[-1] * 2)
        if looks[-1] < self.max_rounds:
            looks.append(self.max_rounds)
        return tuple(looks)


def checked(spec: Spec) -> Spec:
    """Return `spec` if every field is in range.

    Raises:
        UsageError: naming the field, the value and what is allowed.
    """
    _check_numbers(spec)
    _check_words(spec)
    _check_paths(spec)
    if spec.schema != SPEC_SCHEMA:
        raise UsageError(
            f"the spec has schema {spec.schema}, this tool reads schema {SPEC_SCHEMA}; "
            "use the matching version of investigate."
        )
    if not spec.versions:
        raise UsageError("no Node version is given; name at least one, for instance --versions 20,22,24.")
    _check_axis(spec)
    _check_addon_options(spec)
    if spec.fix is not None:
        _check_fix(spec, spec.fix)
    return spec


def _check_fix(spec: Spec, fix: Fix) -> None:
    labels = tuple(item.partition("=")[0].strip() for item in spec.compared)
    if labels != ARMS or spec.baseline != "regressed":
        raise UsageError(
            f"a spec with [fix] compares exactly {', '.join(f'{label}=...' for label in ARMS)}, in this "
            'order, and has baseline = "regressed"; `investigate validate` makes one.'
        )
    if spec.command == "js" and fix.kind != "node":
        raise UsageError(
            f"--fix names {_A_FIX[fix.kind]}, but with --js no addon is measured; leave out --js."
        )
    if spec.axis == "addon" and fix.kind == "node":
        raise UsageError(
            "--baseline and --regressed name addons, but --fix a Node build; all three differ in the same "
            "thing: give an addon or a patch."
        )
    if spec.prebuilt and fix.kind == "patch":
        raise UsageError(
            "a patch changes sources, which --prebuilt does not compile; leave out one of the two."
        )
    if not 1.0 <= fix.restore_pct <= 100.0:
        raise UsageError(f"--restore is {fix.restore_pct:g} %; it must be between 1 % and 100 %, or equal.")
    for name in fix.ops:
        if not _NAME.fullmatch(name):
            raise UsageError(f"--op {name[:80]!r} is not the name of an operation.")


_A_FIX = {"node": "a Node build", "addon": "an addon", "patch": "a patch of the addon"}


def _check_axis(spec: Spec) -> None:
    if spec.axis == "node":
        if spec.addons:
            raise UsageError('the spec lists addons, which are compared with axis = "addon" only.')
        return
    if spec.command == "js":
        raise UsageError("--axis addon compares addons; `investigate js` measures none.")
    versions = ",".join(spec.versions)
    if "," in versions:
        raise UsageError(
            f"--axis addon compares addons on one Node version, but --versions names "
            f"{versions.count(',') + 1} ({versions[:80]}); give one, such as --versions 24."
        )
    if len(spec.addons) < 2:
        raise UsageError(
            "--axis addon compares at least two addons; name them with --addon, for instance "
            "--addon better-sqlite3-multiple-ciphers@12.11.1,13.0.3."
        )


def _check_addon_options(spec: Spec) -> None:
    if spec.command == "js" and (spec.patch is not None or spec.prebuilt):
        raise UsageError("--patch and --prebuilt belong to an addon; `investigate js` measures none.")
    if spec.prebuilt and spec.patch is not None:
        raise UsageError(
            "--patch changes sources, which --prebuilt does not compile; leave out one of the two."
        )
    if spec.prebuilt and all(item.strip() == "node:sqlite" for item in spec.addon_items):
        raise UsageError("--prebuilt does not go with node:sqlite, which is part of Node; leave it out.")


def _check_numbers(spec: Spec) -> None:
    bounds = (
        ("--rounds", spec.rounds, 1, 64),
        ("max_rounds", spec.max_rounds, spec.rounds, 256),
        ("passes", spec.passes, 1, 100),
        ("pass_ms", spec.pass_ms, 1, 10_000),
        ("--margin", spec.margin_pct, 0.1, 50),
        ("equivalence_pct", spec.equivalence_pct, 0.1, 50),
        ("layout_pct", spec.layout_pct, 0.0, spec.finding_pct),
        ("finding_pct", spec.finding_pct, spec.margin_pct, 100),
        ("--budget", spec.budget_min, 0.1, 24 * 60),
        ("--seed", spec.seed, 0, 2**32 - 1),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise UsageError(f"{name} is {value}; it must be between {low} and {high}.")


def _check_paths(spec: Spec) -> None:
    for name in spec.workloads:
        user_path(name, "--workload")
    if spec.patch is not None:
        user_path(spec.patch, "--patch")
    for option, items in (("--versions", spec.items), ("--addon", spec.addon_items)):
        for item in items:
            if (found := _PATH_ITEM.fullmatch(item)) is not None:
                user_path(found.group(2), f"path: in {option}")


def _check_words(spec: Spec) -> None:
    _check_params(spec)
    if not _EXPLAIN.fullmatch(spec.explain):
        raise UsageError(f"--explain is {spec.explain[:80]!r}; it takes a number of findings, all, or none.")
    for flag in spec.node_flags:
        if not _NODE_FLAG.fullmatch(flag):
            raise UsageError(
                f"--node-flags holds {flag[:80]!r}, which is not a V8 or Node flag such as --no-maglev."
            )
        if _OTHER_PROGRAM.fullmatch(flag.partition("=")[0]):
            raise UsageError(
                f"--node-flags holds {flag[:80]!r}, with which node runs no operation; leave it out."
            )
    for name in spec.ops:
        if not _NAME.fullmatch(name):
            raise UsageError(f"--ops holds {name[:80]!r}, which is not the name of an operation.")
    if spec.cipher not in {*CIPHERS, NO_CIPHER}:
        raise UsageError(f"--cipher {spec.cipher[:80]!r} is no scheme; take {', '.join(CIPHERS)}, or none.")
    if spec.cpus is not None:
        cpu_numbers(spec.cpus)
    if spec.base_image is not None and not _IMAGE.fullmatch(spec.base_image):
        raise UsageError(f"--base-image {spec.base_image[:80]!r} is not the name of an image.")


def _check_params(spec: Spec) -> None:
    for key, value in spec.params.items():
        if not _PARAM_KEY.fullmatch(key):
            raise UsageError(f"--param name {key[:80]!r} is not a plain word (letters, digits, underscore).")
        if len(value) > 4096 or "\0" in value:
            raise UsageError(f"--param {key} is longer than 4,096 characters or holds a NUL.")


def cpu_numbers(text: str) -> tuple[int, ...]:
    """Read ``0,2-3`` as ``--cpus`` takes it: the numbers in order, each once.

    Raises:
        UsageError: it is no such list, or a range in it goes down.
    """
    if not _CPUS.fullmatch(text):
        raise UsageError(f"--cpus {text[:80]!r} is not a list of CPUs such as 0,1 or 0-3.")
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) < int(first):
            raise UsageError(f"--cpus holds {part}, a range that goes down; write {last}-{first}.")
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def load_spec(path: Path) -> Spec:
    """Read and check a spec file; relative workload, patch and ``path:`` entries count from its folder.

    Raises:
        UsageError: the file cannot be read, is not TOML, or holds an unknown or wrong field.
        StoredFileError: a newer version of this tool wrote it.
    """
    try:
        data = tomllib.loads(_bounded(path).decode())
        _refuse_newer(data.get("schema"), path)
        spec = msgspec.convert(data, Spec, strict=True)
    except OSError as error:
        raise UsageError(f"the spec {path} cannot be read: {error.strerror}.") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"the spec {path} is wrong: {error}.") from error
    except (ValueError, RecursionError) as error:
        # Beside bad syntax: numbers of thousands of digits, and brackets within brackets without end.
        raise UsageError(f"the spec {path} is not valid TOML: {str(error)[:200]}.") from error
    folder = path.parent
    located = with_patch(with_paths(spec, lambda name: _beside(folder, name)), lambda n: _beside(folder, n))
    return checked(
        msgspec.structs.replace(located, workloads=tuple(_beside(folder, name) for name in spec.workloads))
    )


def _bounded(path: Path) -> bytes:
    """Content of a regular file that is not too large: a device may never end."""
    if path.exists() and not path.is_file():
        raise UsageError(f"the spec {path} cannot be read: it is no file.")
    with path.open("rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise UsageError(f"the spec {path} cannot be read: it is larger than {MAX_BYTES >> 20} MiB.")
    return text


def with_paths(spec: Spec, change: Callable[[str], str]) -> Spec:
    """`spec` with every path of a ``path:`` entry in versions, addons and baseline put through `change`."""

    def item(text: str) -> str:
        found = _PATH_ITEM.fullmatch(text)
        return text if found is None else found.group(1) + change(found.group(2))

    fix = spec.fix
    if fix is not None and fix.kind == "addon":
        fix = msgspec.structs.replace(fix, build=item(fix.build))
    return msgspec.structs.replace(
        spec,
        versions=tuple(item(text) for text in spec.versions),
        baseline=None if spec.baseline is None else item(spec.baseline),
        addon=item(spec.addon),
        addons=tuple(item(text) for text in spec.addons),
        fix=fix,
    )


def with_patch(spec: Spec, change: Callable[[str], str]) -> Spec:
    """`spec` with the files of its patches, of all environments and of the fix, put through `change`."""
    fix = spec.fix
    if fix is not None and fix.kind == "patch":
        fix = msgspec.structs.replace(fix, build=change(fix.build))
    return msgspec.structs.replace(spec, patch=None if spec.patch is None else change(spec.patch), fix=fix)


def _refuse_newer(schema: object, path: Path) -> None:
    """Look at the schema before all else: a newer file may have fields that this tool does not know."""
    if isinstance(schema, int) and schema > SPEC_SCHEMA:
        raise StoredFileError(
            f"the spec {path} has schema {schema}, this tool reads up to {SPEC_SCHEMA}; "
            "use the version of investigate that wrote it, or a newer one."
        )


def _beside(folder: Path, name: str) -> str:
    return str(folder / user_path(name, "the path"))


def dump_spec(spec: Spec) -> bytes:
    """TOML text of a spec; fields that are None are left out, since TOML has no null.

    Of `addon` and `addons` only the one that counts is written.
    """
    unused = "addon" if spec.axis == "addon" else "addons"
    data = {
        key: value for key, value in msgspec.to_builtins(spec).items() if value is not None and key != unused
    }
    return tomli_w.dumps(data).encode()
