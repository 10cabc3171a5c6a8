"""The options of `investigate validate`, and their way into a spec with three labelled environments."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from investigator import cache, cache_limit, operations
from investigator.errors import UsageError
from investigator.observer import Observer
from investigator.options import Choices, make_spec
from investigator.report.validation import step_summary
from investigator.spec import ARMS, FIX_BUDGET_MIN, Fix, Spec, checked
from investigator.text import clean_text
from investigator.validate.builds import Build, parse_build
from investigator.validate.shapes import Validation

NOT_TAKEN: Final = ("versions", "baseline", "axis", "patch", "explain", "no_explain")
"""Choices of other commands that a validation decides itself."""

_PANEL = "What is judged"
_PERCENT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%?")

Baseline = Annotated[
    str,
    typer.Option(
        help="Before the loss: a Node build as in --versions (22.21.1, path:DIR), or an addon release "
        "(NAME@12.11.1) with --node.",
        rich_help_panel=_PANEL,
    ),
]
Regressed = Annotated[str, typer.Option(help="With the loss; what --baseline takes.", rich_help_panel=_PANEL)]
FixBuild = Annotated[
    str,
    typer.Option(
        "--fix",
        metavar="BUILD",
        help="What is judged: a Node release, directory or tarball, dist:URL, image:NAME; an addon release "
        "(NAME@12.12.0), directory or tarball; or a patch file of the addon. Addon and patch run on the "
        "regressed Node. node:, addon: or patch: in front where it could be two of these.",
        rich_help_panel=_PANEL,
    ),
]
Op = Annotated[
    list[str] | None,
    typer.Option(
        "--op",
        help="Operation whose loss must come back; repeatable. Default: all that turn out to be slower by a "
        "finding.",
        rich_help_panel=_PANEL,
    ),
]
Restore = Annotated[
    str,
    typer.Option(
        help="Share of the loss that must come back at least (60%), or `equal`: no slower than the baseline.",
        rich_help_panel=_PANEL,
    ),
]
Node = Annotated[
    str | None,
    typer.Option(help="The Node build, where --baseline and --regressed are addons.", rich_help_panel=_PANEL),
]
Js = Annotated[
    bool, typer.Option("--js", help="Only pure JavaScript: no addon is built.", rich_help_panel=_PANEL)
]


def validation_spec(
    choices: Choices,
    *,
    baseline: str,
    regressed: str,
    fix: str,
    ops: Sequence[str] = (),
    restore: str = "80%",
    node: str | None = None,
    js: bool = False,
) -> Spec:
    """Build the checked spec of a validation; nothing is looked up but files that are named.

    Raises:
        UsageError: naming the option and what it takes.
    """
    sides = [
        parse_build(text, option, choices.addon)
        for option, text in (("--baseline", baseline), ("--regressed", regressed))
    ]
    build = parse_build(fix, "--fix", choices.addon)
    share = _restore(restore)
    by_addon = _by_addon(sides, node, js=js)
    if sides[0].item == sides[1].item:
        raise UsageError(
            f"--baseline and --regressed are both {clean_text(sides[0].item, 80)}; between them nothing can "
            "have got lost."
        )
    judged = Fix(
        kind=build.kind,
        build="" if build.kind == "node" or (by_addon and build.kind == "addon") else build.item,
        name=clean_text(Path(build.item).name, 80) if build.kind == "patch" else "",
        ops=tuple(dict.fromkeys(name.strip() for text in ops for name in text.split(",") if name.strip())),
        restore_pct=share or Fix(kind="node").restore_pct,
        equal=share is None,
    )
    last = build.item if build.kind == ("addon" if by_addon else "node") else sides[1].item
    items = tuple(
        f"{label}={item}" for label, item in zip(ARMS, (sides[0].item, sides[1].item, last), strict=True)
    )
    plain = msgspec.structs.replace(
        choices,
        versions="24",
        explain="none",
        budget=choices.budget
        if choices.budget is not None or choices.quick or choices.thorough
        else FIX_BUDGET_MIN,
    )
    spec = make_spec("js" if js else "sqlite", plain)
    return checked(
        msgspec.structs.replace(
            spec,
            axis="addon" if by_addon else "node",
            versions=(node or "",) if by_addon else items,
            addons=items if by_addon else (),
            baseline="regressed",
            ops=_measured(spec, judged.ops),
            fix=judged,
        )
    )


def _by_addon(sides: Sequence[Build], node: str | None, *, js: bool) -> bool:
    """Whether baseline and regressed are addons on one Node."""
    kinds = {side.kind for side in sides}
    if "patch" in kinds:
        raise UsageError("--baseline and --regressed are builds; only --fix can be a patch.")
    if len(kinds) > 1:
        raise UsageError(
            "--baseline and --regressed differ in more than one thing: give two Node builds, or two addons."
        )
    if kinds == {"addon"}:
        if js:
            raise UsageError("--baseline and --regressed are addons, but with --js none is measured.")
        if not node:
            raise UsageError(
                "--baseline and --regressed are addons; say with --node on which Node they run, for instance "
                "--node 24.11.1."
            )
        return True
    if node:
        raise UsageError("--node is for addons as --baseline and --regressed; these are Node builds.")
    return False


def _restore(text: str) -> float | None:
    """The share in percent; None for ``equal``."""
    if text.strip().lower() == "equal":
        return None
    found = _PERCENT.fullmatch(text.strip())
    if found is None or not 1.0 <= float(found.group(1)) <= 100.0:
        raise UsageError(f"--restore {text[:80]!r} is neither a share from 1% to 100% nor equal.")
    return float(found.group(1))


def _measured(spec: Spec, ops: Sequence[str]) -> tuple[str, ...]:
    """The operations to measure: those of ``--ops``, and those of ``--op`` that a workload does not bring."""
    known = [name for name in ops if operations.find(name) is not None or not spec.workloads]
    listed = tuple(name for name in spec.ops if name != "none" or not known)
    return tuple(dict.fromkeys((*listed, *known)))


@contextlib.contextmanager
def within(limit_bytes: int | None, observer: Observer) -> Iterator[None]:
    """Hold the cache within a size, before the command and after it; None for no bound."""
    if limit_bytes is None:
        yield
        return
    cache_limit.keep_within(limit_bytes, observer.note)
    try:
        yield
    finally:
        cache.release()
        cache_limit.keep_within(limit_bytes, observer.note)


def tell_github(validation: Validation, observer: Observer) -> None:
    """Append the step summary where GitHub Actions wants it; elsewhere do nothing."""
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    try:
        with Path(target).open("a", encoding="utf-8") as file:
            file.write(step_summary(validation))
    except (OSError, ValueError) as error:
        observer.warning(f"the step summary cannot be written to {clean_text(target, 200)}: {error}")
