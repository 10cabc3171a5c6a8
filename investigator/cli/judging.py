"""Commands that answer one question about releases and builds: `validate` and `bisect`."""

from investigator import options, validating, workflow
from investigator.bisect import options as bisecting
from investigator.bisect import run as bisection
from investigator.bisect.request import Wanted
from investigator.cli.program import app, program
from investigator.cli.shared import finish, finish_bisection, print_plan
from investigator.options import Choices, takes_choices
from investigator.spec import CIPHER_ADDON


@app.command(rich_help_panel="Judge")
@takes_choices("sqlite", without=validating.NOT_TAKEN)
def validate(
    choices: Choices,
    baseline: validating.Baseline,
    regressed: validating.Regressed,
    fix: validating.FixBuild,
    op: validating.Op = None,
    restore: validating.Restore = "80%",
    node: validating.Node = None,
    js: validating.Js = False,
    keep: options.Keep = None,
    out: options.Out = None,
    json: options.Json = False,
    dry_run: options.DryRun = False,
) -> None:
    """Judge a fix: does the loss come back, and does nothing else get slower?

    Baseline, regressed and fix are measured interleaved, the regressed side twice. Exit 0: the lower end of
    the recovered share reaches --restore and no other operation is slower than on the regressed side by a
    finding; 1: it does not, or the fix computes something else, or an operation fails with it alone; 3: it
    cannot be told.
    """
    with program(quiet=json) as console:
        bound = options.keep_bytes(keep)
        spec = validating.validation_spec(
            choices,
            baseline=baseline,
            regressed=regressed,
            fix=fix,
            ops=op or (),
            restore=restore,
            node=node,
            js=js,
        )
        if dry_run:
            print_plan(console, spec, json=json)
            return
        with validating.within(bound, console):
            finished = workflow.investigate(spec, out, console)
        finish(console, finished, json=json)


@app.command(rich_help_panel="Judge")
def bisect(
    good: bisecting.Good,
    bad: bisecting.Bad,
    op: bisecting.Op = None,
    find: bisecting.FindOption = "regression",
    axis: bisecting.AxisOption = "node",
    node: bisecting.Node = None,
    lines: bisecting.Lines = "all",
    addon: bisecting.AddonOption = CIPHER_ADDON,
    prebuilt: options.Prebuilt = False,
    patch: options.Patch = None,
    node_flags: options.NodeFlags = "",
    workload: options.Workload = None,
    param: options.Param = None,
    cipher: options.Cipher = "chacha20",
    git: bisecting.Git = None,
    max_steps: bisecting.MaxSteps = None,
    own_builds: bisecting.OwnBuilds = False,
    seed: options.Seed = 1,
    engine: options.EngineOption = "auto",
    base_image: options.BaseImage = None,
    cpus: options.Cpus = None,
    storage: options.Storage = "tmpfs",
    keep: options.Keep = None,
    out: options.Out = None,
    json: options.Json = False,
) -> None:
    """Find the release that changed the time of one operation, or the one that repaired it.

    Exit code 3: it cannot be narrowed to one release. The same command goes on with a folder of --out.
    """
    with program(quiet=json) as console:
        base = bisecting.base_spec(
            prebuilt=prebuilt,
            patch=patch,
            node_flags=node_flags,
            workload=workload,
            param=param,
            cipher=cipher,
            seed=seed,
            engine=engine,
            base_image=base_image,
            cpus=cpus,
            storage=storage,
        )
        wanted = Wanted(
            good=good,
            bad=bad,
            op=op,
            find=find,
            axis=axis,
            node=node,
            lines=lines,
            addon=addon,
            git=git,
            most_steps=max_steps,
            share_builds=not own_builds,
        )
        bound = options.keep_bytes(keep)
        with validating.within(bound, console):
            folder, result = bisection.start(wanted, base, out, console, bound)
        finish_bisection(console, folder, result, json=json)
