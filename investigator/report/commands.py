"""The command line that gives a spec again, for people to copy."""

import shlex
from collections.abc import Iterator, Sequence

from investigator.spec import FIX_BUDGET_MIN, QUICK, THOROUGH, USUAL, Fix, Preset, Spec
from investigator.text import clean_text


def command_line(
    spec: Spec, *, ops: Sequence[str] | None = None, seed: int | None = None, thorough: bool = False
) -> str:
    """Write `spec` as one shell line, options that have their default left out.

    Args:
        spec: the investigation.
        ops: operations to name instead of the spec's own.
        seed: seed to use instead of the spec's own.
        thorough: let ``--thorough`` decide the rounds.
    """
    words = ["investigate", spec.command, "--versions", ",".join(spec.versions)]
    if spec.fix is not None:
        words = ["investigate", "validate", *_sides(spec, spec.fix)]
    for option, value in _options(spec, ops=ops, seed=seed, thorough=thorough):
        words += [option] if value is None else [option, value]
    return shlex.join(clean_text(word, 2000) for word in words)


def _sides(spec: Spec, fix: Fix) -> Iterator[str]:
    """What `investigate validate` compares, and how it judges."""
    items = [item.partition("=")[2].strip() for item in spec.compared]
    own = fix.build or items[-1]
    kind = "" if own.startswith(("path:", "dist:", "image:")) and fix.kind == "node" else f"{fix.kind}:"
    builds = (*items[:2], f"{kind}{own}")
    for option, value in zip(("--baseline", "--regressed", "--fix"), builds, strict=True):
        yield from (option, value)
    if spec.axis == "addon":
        yield from ("--node", *spec.versions)
    for name in fix.ops:
        yield from ("--op", name)
    if fix.equal or fix.restore_pct != Fix(kind="node").restore_pct:
        yield from ("--restore", "equal" if fix.equal else f"{fix.restore_pct:g}%")
    if spec.command == "js":
        yield "--js"


def _options(
    spec: Spec, *, ops: Sequence[str] | None, seed: int | None, thorough: bool
) -> Iterator[tuple[str, str | None]]:
    default = Spec(versions=())
    preset = THOROUGH if thorough else preset_of(spec)
    texts = {
        "--baseline": (spec.baseline, "regressed" if spec.fix else default.baseline),
        "--axis": (spec.axis, spec.axis if spec.fix else default.axis),
        "--addon": (None if spec.fix and spec.addons else ",".join(spec.addon_items), default.addon),
        "--patch": (spec.patch, default.patch),
        "--ops": (",".join(_listed(spec) if ops is None else ops), ",".join(default.ops)),
        "--cipher": (spec.cipher, default.cipher),
        "--engine": (spec.engine, default.engine),
        "--base-image": (spec.base_image, default.base_image),
        "--cpus": (spec.cpus, default.cpus),
        "--storage": (spec.storage, default.storage),
        "--margin": (f"{spec.margin_pct:g}", f"{default.margin_pct:g}"),
        "--explain": (spec.explain, "none" if spec.fix else preset.explain),
        "--seed": (str(spec.seed if seed is None else seed), str(default.seed)),
    }
    if not thorough:
        texts["--rounds"] = (str(spec.rounds), str(preset.rounds))
        usual_min = FIX_BUDGET_MIN if spec.fix and preset is USUAL else preset.budget_for(spec.compared)
        texts["--budget"] = (f"{spec.budget_min:g}", f"{usual_min:g}")
    yield from (
        (option, value) for option, (value, usual) in texts.items() if value is not None and value != usual
    )
    yield from (("--workload", workload) for workload in spec.workloads)
    yield from (("--param", f"{key}={value}") for key, value in sorted(spec.params.items()))
    if spec.node_flags:
        # With an equals sign, because the value itself begins with dashes.
        yield f"--node-flags={' '.join(spec.node_flags)}", None
    if spec.prebuilt:
        yield "--prebuilt", None
    if preset.option is not None:
        yield preset.option, None


def _listed(spec: Spec) -> tuple[str, ...]:
    """What ``--ops`` names; operations of ``--op`` are measured anyway."""
    own = spec.fix.ops if spec.fix is not None else ()
    return tuple(name for name in spec.ops if name not in own) or ("none",)


def preset_of(spec: Spec) -> Preset:
    """The preset that gives the passes and the extension of `spec`, best one with its budget as well."""
    fitting = [
        preset
        for preset in (USUAL, QUICK, THOROUGH)
        if (preset.passes, preset.max_rounds(spec.rounds)) == (spec.passes, spec.max_rounds)
    ]
    return next(
        (preset for preset in fitting if preset.budget_for(spec.compared) == spec.budget_min),
        (*fitting, USUAL)[0],
    )
