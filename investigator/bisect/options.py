"""Options of `investigate bisect`, and their way into a request."""

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from investigator.options import Choices, make_spec
from investigator.spec import Axis, Spec

_WHAT = "What is bisected"
_HOW = "How"

Good = Annotated[
    str,
    typer.Option(
        help="Release that is as it should be: 23.11.1 · 22 (newest of the line) · dist:URL@23.11.1.",
        rich_help_panel=_WHAT,
    ),
]
Bad = Annotated[str, typer.Option(help="Release that is too slow.", rich_help_panel=_WHAT)]
Op = Annotated[
    str | None,
    typer.Option(
        "--op", help="Operation that is followed, as in --ops; or that of a workload.", rich_help_panel=_WHAT
    ),
]
FindOption = Annotated[
    Literal["regression", "fixed"],
    typer.Option(
        "--find", help="The first bad release, or (good is newer) the first fixed one.", rich_help_panel=_WHAT
    ),
]
AxisOption = Annotated[
    Axis,
    typer.Option(help="Node releases, or addon releases on one Node (--node).", rich_help_panel=_WHAT),
]
Node = Annotated[
    str | None,
    typer.Option(
        "--node", "--versions", help="With --axis addon: the one Node version.", rich_help_panel=_WHAT
    ),
]
Lines = Annotated[
    str,
    typer.Option(
        "--lines", "--line", help="Majors whose releases are asked: all, 24, or 22,24.", rich_help_panel=_WHAT
    ),
]
AddonOption = Annotated[
    str,
    typer.Option(
        help="Addon under test, as elsewhere; with --axis addon its name alone; none for no addon.",
        rich_help_panel=_WHAT,
    ),
]
Git = Annotated[
    str | None,
    typer.Option(
        "--git",
        help="Your clone of node (or of the addon): lists the commits between.",
        rich_help_panel=_WHAT,
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option("--max-steps", help="Steps after which it ends with what it knows.", rich_help_panel=_HOW),
]
OwnBuilds = Annotated[
    bool,
    typer.Option(
        "--own-builds",
        help="Compile the addon for every release; else those of one ABI share a build until verified.",
        rich_help_panel=_HOW,
    ),
]


def base_spec(
    *,
    prebuilt: bool,
    patch: str | None,
    node_flags: str,
    workload: Sequence[str] | None,
    param: Sequence[str] | None,
    cipher: str,
    seed: int,
    engine: Literal["auto", "docker", "local"],
    base_image: str | None,
    cpus: str | None,
    storage: Literal["tmpfs", "disk"],
) -> Spec:
    """What the options say beside the ends.

    Raises:
        UsageError: naming the option and what it takes.
    """
    return make_spec(
        "sqlite",
        Choices(
            versions="lts",
            prebuilt=prebuilt,
            patch=patch,
            node_flags=node_flags,
            ops="none",
            workload=list(workload or ()),
            param=list(param or ()),
            no_explain=True,
            cipher=cipher,
            seed=seed,
            engine=engine,
            base_image=base_image,
            cpus=cpus,
            storage=storage,
        ),
    )
