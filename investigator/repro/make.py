"""Findings of a run to folders that show them elsewhere: written, run, and kept only where they do."""

import contextlib
import itertools
import shutil
from collections.abc import Sequence

import msgspec

from investigator import npm_client, units
from investigator.analysis import Comparison
from investigator.engine.interface import Engine
from investigator.errors import HostUnfitError
from investigator.measure import CALIBRATION_SCHEMA, Calibration
from investigator.naming import full_names
from investigator.nodes.sources import platform_for
from investigator.observer import Observer
from investigator.plan import Environment, Pace, Plan
from investigator.repro import package, verify
from investigator.repro.manifest import KIND, REPRO_SCHEMA, Manifest, Program, folder_of
from investigator.repro.scripts import drafts
from investigator.repro.shapes import Draft, Question
from investigator.store import RunFolder
from investigator.text import clean_block, clean_text

_PROBES = "The operation belongs to this tool's own probes: nothing outside of it makes just these calls."
_ADDONS = (
    "There is no program without the addon: the addon is what differs between the sides, so only the real "
    "one can show it."
)


def reproduce(
    run: RunFolder, plan: Plan, findings: Sequence[Comparison], engine: Engine, observer: Observer
) -> tuple[Manifest, ...]:
    """Write, run and keep the reproductions of `findings`, one folder each; replaces what was there.

    Raises:
        UsageError: a release that the registry does not have.
        HostUnfitError: the registry does not answer, or the disk is full.
        EngineMissingError: the engine, or npm, does not answer.
        StoredFileError: the run's calibration is damaged.
    """
    made: list[Manifest] = []
    questions = {id(finding): _question(run, plan, finding) for finding in findings}
    programs = {key: drafts(question) for key, question in questions.items()}
    observer.stage_started("reproduce", sum(map(len, programs.values())))
    released = _released(observer)
    for _, group in itertools.groupby(sorted(findings, key=_pair), key=_pair):
        own = list(group)
        titles = full_names(plan.environments, plan.spec.axis)
        environments = [plan.environment(own[0].baseline), plan.environment(own[0].candidate)]
        wanted = [draft for finding in own for draft in programs[id(finding)]]
        sides = [
            package.side_of(e, titles[e.id], addon=any(draft.addon for draft in wanted)) for e in environments
        ]
        pinned = package.package_json(sides, environments, released)
        with verify.workshop(engine, environments, sides, plan.spec.cpus) as shop:
            observer.activity("install the pinned packages")
            lock_file = b""
            if wanted:
                lock_file = shop.install(package.files_of((), sides, pinned), platform_for(engine.name))
            for finding in own:
                scene = _Scene(
                    run=run,
                    finding=finding,
                    environments=(environments[0], environments[1]),
                    titles=(titles[environments[0].id], titles[environments[1].id]),
                    sides=(sides[0], sides[1]),
                    pinned=pinned,
                    lock_file=lock_file,
                    disk=plan.spec.storage == "disk",
                )
                made.append(_one(scene, programs[id(finding)], plan, shop, observer))
    return tuple(made)


class _Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One finding with what its pair of sides shares."""

    run: RunFolder
    finding: Comparison
    environments: tuple[Environment, Environment]
    titles: tuple[str, str]
    sides: tuple[package.Side, package.Side]
    pinned: dict[str, object]
    lock_file: bytes
    disk: bool


def _pair(finding: Comparison) -> tuple[str, str]:
    return finding.baseline, finding.candidate


def _question(run: RunFolder, plan: Plan, finding: Comparison) -> Question:
    return Question(
        plan=plan,
        operation=plan.operation(finding.op),
        pace=_pace(run, finding),
        sides=(plan.environment(finding.baseline), plan.environment(finding.candidate)),
        workloads=run.path / "workloads",
    )


def _pace(run: RunFolder, finding: Comparison) -> Pace:
    """Calls of the explain rounds, alone in a process as here, where there were any; else of the screen."""
    places = [run.path / "explain" / f"{finding.op}--{finding.candidate}", run.path]
    for folder in places:
        if (folder / "calibration.json").is_file():
            calibration = RunFolder(folder).read_json(
                "calibration.json", "calibration", CALIBRATION_SCHEMA, Calibration
            )
            found = next((pace for pace in calibration.paces if pace.op == finding.op), None)
            if found is not None:
                return found
    raise HostUnfitError(f"{run.name} has no number of calls for {finding.op[:80]}; measure it again.")


def _released(observer: Observer) -> dict[str, tuple[str, ...]]:
    """Releases of Node by platform, as far as npm tells: a stranger may have another processor."""
    found: dict[str, tuple[str, ...]] = {}
    for platform in package.PLATFORMS:
        observer.activity(f"look up releases for {platform}")
        with contextlib.suppress(HostUnfitError):
            found[platform] = npm_client.versions(f"node-{platform}")
    return found


def _one(
    scene: _Scene, programs: Sequence[Draft], plan: Plan, shop: verify.Workshop, observer: Observer
) -> Manifest:
    tried: list[Program] = []
    shop.put(package.files_of(programs, scene.sides, scene.pinned, disk=scene.disk))
    for draft in programs:
        observer.activity(f"{scene.finding.op} against {scene.titles[1]}: {draft.title}")
        tried.append(_tried(scene, draft, shop, observer))
        observer.step("reproduce", f"{scene.finding.op} {draft.name}: {tried[-1].reason}")
    manifest = _manifest(scene, programs, tried, plan)
    _keep(scene, manifest, [d for d, p in zip(programs, tried, strict=True) if p.shipped])
    return manifest


def _tried(scene: _Scene, draft: Draft, shop: verify.Workshop, observer: Observer) -> Program:
    finding_pct = scene.finding.wall.change_pct
    result, printed = shop.run(draft)
    program = verify.program_of(draft, result, printed, finding_pct)
    if result is None or program.shipped or not verify.is_open(finding_pct, *result.interval_pct):
        return program
    observer.activity(f"{draft.name} again, {verify.MORE_ROUNDS} rounds: {program.reason}")
    result, again = shop.run(draft, verify.MORE_ROUNDS)
    printed = f"{printed}\n\nundecided, measured once more:\n{again}"
    return verify.program_of(draft, result, printed, finding_pct)


def _manifest(scene: _Scene, programs: Sequence[Draft], tried: Sequence[Program], plan: Plan) -> Manifest:
    finding = scene.finding
    notes = []
    if not programs:
        notes.append(_PROBES)
    elif plan.spec.axis == "addon" and any(draft.kind == "real" for draft in programs):
        notes.append(_ADDONS)
    for name, environment in zip(("baseline", "candidate"), scene.environments, strict=True):
        if environment.node_flags:
            notes.append(clean_text(f"Node of the {name} runs with {' '.join(environment.node_flags)}.", 300))
    if scene.disk:
        notes.append("Databases lie on the disk, as in the measurement: the folder's own file system.")
    return Manifest(
        op=finding.op,
        family=finding.family,
        baseline=finding.baseline,
        candidate=finding.candidate,
        baseline_name=clean_text(scene.titles[0], 120),
        candidate_name=clean_text(scene.titles[1], 120),
        change_pct=finding.wall.change_pct,
        ci_low_pct=finding.wall.ci_low_pct,
        ci_high_pct=finding.wall.ci_high_pct,
        programs=tuple(tried),
        needs=package.needs(scene.sides, scene.environments),
        notes=tuple(notes),
    )


def _keep(scene: _Scene, manifest: Manifest, shipped: Sequence[Draft]) -> None:
    """Write the folder anew: what showed the effect, what everything printed, the manifest."""
    folder = folder_of(scene.run, manifest.op, manifest.candidate)
    shutil.rmtree(folder, ignore_errors=True)
    if shipped:
        files = package.files_of(shipped, scene.sides, scene.pinned, disk=scene.disk)
        files["package-lock.json"] = scene.lock_file
        files["README.md"] = package.readme(manifest, shipped).encode()
        verify.write_files(folder, files)
    inside = RunFolder(folder)
    inside.write("RESULT.txt", result_text(manifest).encode())
    inside.write_json("manifest.json", KIND, REPRO_SCHEMA, manifest)


def result_text(manifest: Manifest) -> str:
    """RESULT.txt: what every program printed, those that are not shipped too, and how it was judged."""
    change = units.format_percent(manifest.change_pct)
    interval = units.format_interval(manifest.ci_low_pct, manifest.ci_high_pct)
    sides = f"{manifest.baseline_name} against {manifest.candidate_name}"
    lines = [
        clean_text(f"{manifest.op}: {sides}, finding {change} [{interval}]"),
        *(clean_text(text) for text in (*manifest.needs, *manifest.notes)),
    ]
    for program in manifest.programs:
        verdict = "shipped" if program.shipped else "not shipped"
        lines += ["", clean_text(f"== {program.name}: {verdict}, {program.reason}")]
        lines.append(clean_block(program.output, 8000))
    return "\n".join(lines) + "\n"
