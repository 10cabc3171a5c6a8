"""Command-line options, declared once for every command that takes them, and their way into a spec."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer

from investigator.errors import UsageError
from investigator.spec import Command, Spec, checked
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
Baseline = Annotated[
    str | None,
    typer.Option(
        help="Version or label everything is compared with; default the first.", rich_help_panel=_WHAT
    ),
]
Addon = Annotated[
    str,
    typer.Option(
        help="Addon under test: better-sqlite3-multiple-ciphers[@VERSION], better-sqlite3, node:sqlite, or "
        "path:DIR|TARBALL. Without a version: the newest release that every chosen Node loads.",
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
Cipher = Annotated[str, typer.Option(help="Cipher scheme of the database, or none.", rich_help_panel=_WHAT)]
Rounds = Annotated[
    int | None, typer.Option(help="Rounds before the first verdict; default 8.", rich_help_panel=_HOW)
]
Budget = Annotated[
    float | None,
    typer.Option(
        help="Minutes of measuring; extension rounds for undecided cells stop there.", rich_help_panel=_HOW
    ),
]
Quick = Annotated[
    bool, typer.Option("--quick", help="Half the time: fewer passes, one look.", rich_help_panel=_HOW)
]
Thorough = Annotated[
    bool, typer.Option("--thorough", help="Up to 32 rounds for undecided cells.", rich_help_panel=_HOW)
]
Margin = Annotated[
    float,
    typer.Option(help="Percent a change must exceed to count as slower or faster.", rich_help_panel=_HOW),
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

QUICK_ROUNDS, QUICK_PASSES, QUICK_BUDGET_MIN = 6, 2, 2.0
THOROUGH_MAX_ROUNDS, THOROUGH_BUDGET_MIN = 32, 20.0


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
    first = rounds if rounds is not None else (QUICK_ROUNDS if quick else 8)
    most = first if quick else max(first * 2, THOROUGH_MAX_ROUNDS if thorough else 0)
    minutes = QUICK_BUDGET_MIN if quick else (THOROUGH_BUDGET_MIN if thorough else 4.5)
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
            cipher=checked_cipher(cipher),
            engine=engine,
            base_image=base_image,
            cpus=cpus,
            storage=storage,
            rounds=first,
            max_rounds=most,
            passes=QUICK_PASSES if quick else 4,
            margin_pct=margin,
            budget_min=budget if budget is not None else minutes,
            seed=seed,
            fail_on=fail_on,
        )
    )


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


def native_profiles(name: str, cipher: str) -> tuple[Profile, ...]:
    """The PRAGMA profiles that ``--profile`` names, with the wanted cipher.

    Raises:
        UsageError: there is no such profile, or the cipher scheme is unknown.
    """
    known = {profile.name: profile for profile in (PRODUCTION, *VARIATIONS)}
    if name != "all" and name not in known:
        raise UsageError(f"there is no profile {name[:80]!r}; take all, {', '.join(known)}.")
    chosen = known.values() if name == "all" else (known[name],)
    return tuple(
        profile
        if profile.cipher == NO_CIPHER
        else msgspec.structs.replace(profile, cipher=checked_cipher(cipher))
        for profile in chosen
    )


def checked_cipher(name: str) -> str:
    """`name` if it is a scheme of the addon, or ``none``.

    Raises:
        UsageError: naming the schemes.
    """
    if name not in {*CIPHERS, NO_CIPHER}:
        raise UsageError(f"--cipher {name[:80]!r} is no scheme; take {', '.join(CIPHERS)}, or none.")
    return name
