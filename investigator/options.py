"""Command-line options, declared once for every command that takes them, and their way into a spec."""

import functools
import inspect
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from investigator import spec, units
from investigator.errors import UsageError
from investigator.spec import QUICK, THOROUGH, USUAL, Axis, Command, Spec, checked
from sqlcipher_bench.profiles import CIPHERS, NO_CIPHER, PRODUCTION, VARIATIONS, Profile

_WHAT = "What is measured"
_HOW = "How it is measured"
_WHERE = "Where it runs"
_OUT = "What comes out"

Versions = Annotated[
    str,
    typer.Option(
        help="Node builds to compare, comma separated: 20,22,24 · 24.11.1 · '>=22 <24' · lts · latest · "
        "a=24.11.1,b=24.11.1 (labels) · dist:URL@24 · image:NAME · fix=path:DIR|TARBALL.",
        rich_help_panel=_WHAT,
        show_default=True,
    ),
]
PlanVersions = Annotated[
    str | None,
    typer.Option(
        "--versions", help="As in the command; default 20,22,24, with js 22,24,26.", rich_help_panel=_WHAT
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        help="Version or label everything is compared with; default the first.", rich_help_panel=_WHAT
    ),
]
AxisOption = Annotated[
    Axis,
    typer.Option(
        help="What differs: Node versions under one addon, or addon releases on one Node version.",
        rich_help_panel=_WHAT,
    ),
]
_ADDON_HELP = (
    r"Addon under test: better-sqlite3-multiple-ciphers\[@VERSION|@RANGE] (@12.11.1, '@^12'), "
    "better-sqlite3, node:sqlite, or path:DIR|TARBALL. Without a version: the newest release that "
    "every chosen Node loads."
)
Addon = Annotated[str, typer.Option(help=_ADDON_HELP, rich_help_panel=_WHAT)]
Addons = Annotated[
    str,
    typer.Option(
        "--addon",
        help=f"{_ADDON_HELP} With --axis addon several, comma separated, with labels if you like: "
        "NAME@12.11.1,13.0.3 · NAME@12.11.1,fix=path:DIR.",
        rich_help_panel=_WHAT,
    ),
]
Prebuilt = Annotated[
    bool, typer.Option("--prebuilt", help="Take the binary shipped in the package.", rich_help_panel=_WHAT)
]
Patch = Annotated[
    str | None, typer.Option(help="Unified diff applied to the addon's sources (-p1).", rich_help_panel=_WHAT)
]
NodeFlags = Annotated[
    str,
    typer.Option(
        "--node-flags", help="Flags for every node process, one string: '--no-maglev'.", rich_help_panel=_WHAT
    ),
]
Ops = Annotated[
    str,
    typer.Option(
        help="essential, all, none (only workloads), or names: select_range,...", rich_help_panel=_WHAT
    ),
]
Workload = Annotated[
    list[str] | None,
    typer.Option(
        help="Your own operation, a .mjs file with setup(ctx) and run(state, i); repeatable.",
        rich_help_panel=_WHAT,
    ),
]
Param = Annotated[
    list[str] | None,
    typer.Option(help="k=v for ctx.params; also PRAGMA names (journal_mode=DELETE).", rich_help_panel=_WHAT),
]
Cipher = Annotated[
    str,
    typer.Option(
        help=f"Cipher scheme of the database: {', '.join(CIPHERS)}; or none.", rich_help_panel=_WHAT
    ),
]
Rounds = Annotated[
    int | None,
    typer.Option(
        help=f"Rounds before the first verdict; default {USUAL.rounds}, {QUICK.rounds} with --quick.",
        rich_help_panel=_HOW,
    ),
]
Budget = Annotated[
    float | None,
    typer.Option(
        help=f"Minutes of measuring; default {USUAL.budget_min:g}, {USUAL.pair_budget_min:g} with two "
        f"versions, {QUICK.budget_min:g} with --quick, {THOROUGH.budget_min:g} with --thorough. The first "
        "rounds always run; more of them, for undecided cells, start only within it.",
        rich_help_panel=_HOW,
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help=f"Half the time: {QUICK.rounds} rounds, {QUICK.passes} passes, one look.",
        rich_help_panel=_HOW,
    ),
]
Thorough = Annotated[
    bool,
    typer.Option(
        "--thorough", help=f"Up to {THOROUGH.at_most} rounds for undecided cells.", rich_help_panel=_HOW
    ),
]
Margin = Annotated[
    float,
    typer.Option(
        help="Percent a change must exceed to count as slower or faster; above 5 also to be a finding.",
        rich_help_panel=_HOW,
    ),
]
Explain = Annotated[
    str | None,
    typer.Option(
        help=f"Findings whose layer is looked for, largest first: a number, all, or none; default "
        f"{USUAL.explain}, {QUICK.explain} with --quick. Each takes about two minutes.",
        rich_help_panel=_HOW,
    ),
]
NoExplain = Annotated[
    bool, typer.Option("--no-explain", help="Short for --explain none.", rich_help_panel=_HOW)
]
Seed = Annotated[int, typer.Option(help="Seed of the data and of the order.", rich_help_panel=_HOW)]
EngineOption = Annotated[
    spec.EngineChoice,
    typer.Option(help="Containers, or plain processes where no daemon answers.", rich_help_panel=_WHERE),
]
BaseImage = Annotated[
    str | None,
    typer.Option(
        help="Image everything runs on; default buildpack-deps:bookworm or a bootstrapped Debian.",
        rich_help_panel=_WHERE,
    ),
]
Cpus = Annotated[
    str | None, typer.Option(help="CPUs a worker may use (0,1); default all.", rich_help_panel=_WHERE)
]
Storage = Annotated[
    spec.Storage,
    typer.Option(help="Where the databases live; tmpfs hides the disk.", rich_help_panel=_WHERE),
]
Out = Annotated[
    Path | None, typer.Option(help="The run folder to make; default reports/<run id>.", rich_help_panel=_OUT)
]
Json = Annotated[
    bool, typer.Option("--json", help="Print summary.json on stdout instead of tables.", rich_help_panel=_OUT)
]
FailOn = Annotated[
    spec.FailOn,
    typer.Option(
        help="slower: exit 1 when something got slower by a finding, 3 when that cannot be told.",
        rich_help_panel=_OUT,
    ),
]
FindingOps = Annotated[
    list[str] | None, typer.Option("--op", help="Operation with a finding; repeatable, default all.")
]
Keep = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Bound for the cache of downloads and builds (10GB): least recently used out first, never what "
        "is in use.",
        rich_help_panel=_WHERE,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print the plan and stop (as `investigate plan`).", rich_help_panel=_OUT),
]
SelfProfile = Annotated[
    bool,
    typer.Option(
        "--self-profile",
        help="Record this program itself with py-spy into the run folder.",
        rich_help_panel=_OUT,
    ),
]

DEFAULT_VERSIONS: dict[Command, str] = {"sqlite": "20,22,24", "js": "22,24,26"}
PROFILES = {profile.name: profile for profile in (PRODUCTION, *VARIATIONS)}
"""What ``--profile`` takes, beside ``all``."""
ONLY_SQLITE = ("axis", "addon", "prebuilt", "patch", "cipher", "storage")
"""Choices that `investigate js` does not have."""


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """The options that describe a measurement, in the order of the help; each field is one option."""

    versions: Versions | None = None
    """None for those of the command (`DEFAULT_VERSIONS`)."""
    baseline: Baseline = None
    axis: AxisOption = "node"
    addon: Addons = spec.CIPHER_ADDON
    prebuilt: Prebuilt = False
    patch: Patch = None
    node_flags: NodeFlags = ""
    ops: Ops = "essential"
    workload: Workload = None
    param: Param = None
    cipher: Cipher = "chacha20"
    rounds: Rounds = None
    budget: Budget = None
    quick: Quick = False
    thorough: Thorough = False
    margin: Margin = 2.0
    explain: Explain = None
    no_explain: NoExplain = False
    seed: Seed = 1
    engine: EngineOption = "auto"
    base_image: BaseImage = None
    cpus: Cpus = None
    storage: Storage = "tmpfs"


def takes_choices(
    command: Command | None, without: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command of typer take `Choices` as its first argument, each field as an option of its own.

    Typer reads options from the signature of a function: the decorated function has one with the fields of
    `Choices` in the place of that argument.

    Args:
        command: whose options; None for all of them, with versions that depend on an argument.
        without: fields of `Choices` that the command does not have.
    """
    options = tuple(option for option in _parameters(command) if option.name not in without)

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(body, eval_str=True).parameters.values()

        @functools.wraps(body)
        def run(**values: Any) -> None:
            chosen = {option.name: values.pop(option.name) for option in options}
            body(Choices(**chosen), **values)

        named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        run.__signature__ = inspect.Signature([*options, *named])  # type: ignore[attr-defined]
        return run

    return decorate


def _parameters(command: Command | None) -> Iterator[inspect.Parameter]:
    for field in msgspec.structs.fields(Choices):
        if command == "js" and field.name in ONLY_SQLITE:
            continue
        default, annotation = field.default, field.type
        if field.name == "versions":
            default = None if command is None else DEFAULT_VERSIONS[command]
            annotation = PlanVersions if command is None else Versions
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )


def make_spec(command: Command, choices: Choices, *, fail_on: spec.FailOn = "none") -> Spec:
    """Build a checked spec from option values.

    Raises:
        UsageError: naming the option and what it takes.
    """
    if choices.quick and choices.thorough:
        raise UsageError("--quick and --thorough contradict each other; give one of them.")
    usual, preset = Spec(versions=()), QUICK if choices.quick else THOROUGH if choices.thorough else USUAL
    if choices.no_explain and choices.explain not in {None, "none"}:
        raise UsageError("--explain and --no-explain contradict each other; give one of them.")
    first = choices.rounds if choices.rounds is not None else preset.rounds
    wanted = choices.versions if choices.versions is not None else DEFAULT_VERSIONS[command]
    versions = items(wanted, "--versions")
    addons = items(choices.addon, "--addon") or (choices.addon,)
    if choices.axis == "node" and len(addons) > 1:
        raise UsageError(
            f"--addon names {len(addons)} addons; they are compared on one Node version with --axis addon."
        )
    return checked(
        Spec(
            command=command,
            axis=choices.axis,
            versions=versions,
            baseline=choices.baseline,
            addon=addons[0] if choices.axis == "node" else usual.addon,
            addons=addons if choices.axis == "addon" else (),
            prebuilt=choices.prebuilt,
            patch=choices.patch,
            node_flags=_words(choices.node_flags),
            ops=items(choices.ops, "--ops"),
            workloads=tuple(choices.workload or ()),
            params=_params(choices.param or ()),
            cipher=choices.cipher,
            engine=choices.engine,
            base_image=choices.base_image,
            cpus=choices.cpus,
            storage=choices.storage,
            rounds=first,
            max_rounds=preset.max_rounds(first),
            passes=preset.passes,
            pass_ms=preset.pass_ms,
            margin_pct=choices.margin,
            # A change that does not even count as slower is no finding, and rather no change than unknown.
            equivalence_pct=max(usual.equivalence_pct, choices.margin),
            finding_pct=max(usual.finding_pct, choices.margin),
            budget_min=choices.budget
            if choices.budget is not None
            else preset.budget_for(addons if choices.axis == "addon" else versions),
            seed=choices.seed,
            explain="none" if choices.no_explain else choices.explain or preset.explain,
            fail_on=fail_on,
        )
    )


def items(text: str, option: str) -> tuple[str, ...]:
    """Read a list with commas.

    Raises:
        UsageError: nothing stands beside a comma.
    """
    if not text.strip():
        return ()
    found = tuple(item.strip() for item in text.split(","))
    if not all(found):
        raise UsageError(f"{option} {text[:80]!r} has a comma with nothing beside it; leave it out.")
    return found


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--node-flags {text[:80]!r} has an open quote; close it.") from error


def _params(given: Sequence[str]) -> dict[str, str]:
    params: dict[str, str] = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"--param {item[:80]!r} is not of the form name=value.")
        key = key.strip()
        if key in params:
            raise UsageError(f"--param gives {key[:80]!r} twice; a name has one value, so leave one out.")
        params[key] = value
    return params


def native_spec(
    *,
    addon: str,
    cipher: str,
    seed: int,
    engine: spec.EngineChoice,
    base_image: str | None,
    cpus: str | None,
) -> Spec:
    """Build the checked spec of `investigate native`; Node only lends its headers to the build.

    Raises:
        UsageError: naming the option and what it takes.
    """
    return checked(
        Spec(
            versions=("lts",),
            addon=addon,
            cipher=cipher,
            seed=seed,
            engine=engine,
            base_image=base_image,
            cpus=cpus,
        )
    )


def percentages(text: str, option: str) -> tuple[float, ...]:
    """Read a list of numbers; their range is checked where it is known.

    Raises:
        UsageError: one of them is none.
    """
    try:
        return tuple(float(item) for item in items(text, option))
    except ValueError as error:
        raise UsageError(f"{option} {text[:80]!r} is no list of numbers such as 5,10,25.") from error


def keep_bytes(text: str | None) -> int | None:
    """Read ``--keep``; None where it is not given.

    Raises:
        UsageError: it is no size.
    """
    size = None if text is None else units.parse_bytes(text)
    if text is not None and size is None:
        raise UsageError(f"--keep {text[:80]!r} is no size; write it like 10GB, 500MB or 2.5GiB.")
    return size


def native_profiles(name: str, cipher: str) -> tuple[Profile, ...]:
    """The PRAGMA profiles that ``--profile`` names, with the wanted (checked) cipher.

    Raises:
        UsageError: there is no such profile.
    """
    if name != "all" and name not in PROFILES:
        raise UsageError(f"there is no profile {name[:80]!r}; take all, {', '.join(PROFILES)}.")
    chosen = PROFILES.values() if name == "all" else (PROFILES[name],)
    return tuple(
        profile if profile.cipher == NO_CIPHER else msgspec.structs.replace(profile, cipher=cipher)
        for profile in chosen
    )
