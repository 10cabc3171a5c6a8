"""Command-line options, declared once for every command that takes them, and their way into a spec."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from investigator.errors import UsageError
from investigator.spec import QUICK, THOROUGH, USUAL, Command, Preset, Spec, checked
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
Addon = Annotated[
    str,
    typer.Option(
        help="Addon under test: better-sqlite3-multiple-ciphers[@VERSION|@RANGE] (@12.11.1, '@^12'), "
        "better-sqlite3, node:sqlite, or path:DIR|TARBALL. Without a version: the newest release that "
        "every chosen Node loads.",
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
Seed = Annotated[int, typer.Option(help="Seed of the data and of the order.", rich_help_panel=_HOW)]
EngineOption = Annotated[
    Literal["auto", "docker", "local"],
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
    Literal["tmpfs", "disk"],
    typer.Option(help="Where the databases live; tmpfs hides the disk.", rich_help_panel=_WHERE),
]
Out = Annotated[
    Path | None, typer.Option(help="The run folder to make; default reports/<run id>.", rich_help_panel=_OUT)
]
Json = Annotated[
    bool, typer.Option("--json", help="Print summary.json on stdout instead of tables.", rich_help_panel=_OUT)
]
FailOn = Annotated[
    Literal["slower", "none"],
    typer.Option(
        help="slower: exit 1 when something got slower by a finding, 3 when that cannot be told.",
        rich_help_panel=_OUT,
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
ONLY_SQLITE = ("addon", "prebuilt", "patch", "cipher", "storage")
"""Parameters of `make_spec` that `investigate js` does not have."""


def make_spec(
    command: Command,
    *,
    versions: str,
    baseline: str | None,
    node_flags: str,
    ops: str,
    workload: Sequence[str] | None,
    param: Sequence[str] | None,
    rounds: int | None,
    budget: float | None,
    quick: bool,
    thorough: bool,
    margin: float,
    seed: int,
    engine: Literal["auto", "docker", "local"],
    base_image: str | None,
    cpus: str | None,
    fail_on: Literal["slower", "none"],
    addon: str = "better-sqlite3-multiple-ciphers",
    prebuilt: bool = False,
    patch: str | None = None,
    cipher: str = "chacha20",
    storage: Literal["tmpfs", "disk"] = "tmpfs",
) -> Spec:
    """Build a checked spec from option values.

    Raises:
        UsageError: naming the option and what it takes.
    """
    if quick and thorough:
        raise UsageError("--quick and --thorough contradict each other; give one of them.")
    preset = QUICK if quick else THOROUGH if thorough else USUAL
    first = rounds if rounds is not None else preset.rounds
    return checked(
        Spec(
            command=command,
            versions=tuple(item.strip() for item in versions.split(",") if item.strip()),
            baseline=baseline,
            addon=addon,
            prebuilt=prebuilt,
            patch=patch,
            node_flags=_words(node_flags),
            ops=tuple(item.strip() for item in ops.split(",") if item.strip()),
            workloads=tuple(workload or ()),
            params=_params(param or ()),
            cipher=cipher,
            engine=engine,
            base_image=base_image,
            cpus=cpus,
            storage=storage,
            rounds=first,
            max_rounds=preset.max_rounds(first),
            passes=preset.passes,
            margin_pct=margin,
            # A change that does not even count as slower is no finding, and rather no change than unknown.
            equivalence_pct=max(Spec(versions=()).equivalence_pct, margin),
            finding_pct=max(Spec(versions=()).finding_pct, margin),
            budget_min=_minutes(budget, preset, versions),
            seed=seed,
            fail_on=fail_on,
        )
    )


def _minutes(budget: float | None, preset: Preset, versions: str) -> float:
    return budget if budget is not None else preset.budget_for(versions.split(","))


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--node-flags {text[:80]!r} has an open quote; close it.") from error


def _params(items: Sequence[str]) -> dict[str, str]:
    params: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"--param {item[:80]!r} is not of the form name=value.")
        params[key.strip()] = value
    return params


def native_spec(
    *,
    addon: str,
    cipher: str,
    seed: int,
    engine: Literal["auto", "docker", "local"],
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
