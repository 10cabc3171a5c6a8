"""Blocks about what ran: machine, limits, addon, binaries, ``process.versions`` and ``process.config``."""

from collections.abc import Iterator, Mapping, Sequence

from investigator import units
from investigator.build import AddonBuild
from investigator.causes.build import normal_flags
from investigator.naming import addon_name
from investigator.report.issue.material import Material, Side
from investigator.report.issue.public import code, told
from investigator.report.issue.sections import bullets
from investigator.report.issue.words import sides
from investigator.report.tables import markdown_table

MOST_VARIABLES = 40
MOST_FLAG_CHARACTERS = 16_000


def uname(material: Material) -> str:
    """Kernel and processor architecture as ``uname -srvm``, without the name of the host."""
    known = material.platform.uname if material.platform is not None else ""
    return known or f"{material.host.kernel} {material.host.architecture}"


def libc(material: Material) -> str:
    """The C library that the measured processes run on."""
    if material.platform is not None and material.platform.libc:
        return material.platform.libc
    return f"libc not recorded (the host's is {material.host.libc})"


def machine(material: Material) -> str:
    """Machine, limits and isolation, a list."""
    host = material.host
    physical = "?" if host.cores_physical is None else host.cores_physical
    load = "?" if host.load_average_1min is None else host.load_average_1min
    lines = (
        f"uname -srvm: {code(uname(material))}",
        f"libc: {told(libc(material))}; distribution of the host: {told(host.distribution)}",
        f"CPU: {told(host.cpu_model)}, {host.cores} logical, {physical} physical, {host.cores_usable} usable",
        f"frequency governor: {told(host.governor)}; turbo: {told(host.turbo)}; SMT: {told(host.smt)}",
        f"virtualisation: {told(host.virtualisation)}",
        f"memory: {units.format_bytes(host.memory_bytes)}, swap {units.format_bytes(host.swap_bytes)}",
        f"load average before the run: {load}",
        f"limits of a process: {told(limits(material))}",
        f"profiler: {told(host.perf)}",
        *_engine(material.engine),
    )
    return bullets(lines)


def _engine(facts: Mapping[str, str]) -> Iterator[str]:
    for key, text in facts.items():
        repeated = key == "image_origin" or (key == "base" and text == facts.get("image_id"))
        if text and not repeated:
            yield (
                f"engine: {told(text, 120)}"
                if key == "engine"
                else f"engine {told(key, 40)}: {told(text, 120)}"
            )


def environment(material: Material) -> str:
    """Machine, binaries, versions and configuration."""
    return "\n\n".join((machine(material), binaries(material), versions(material), configuration(material)))


def limits(material: Material) -> str:
    """Limits of the measured processes."""
    facts = material.platform
    cpus = material.plan.spec.cpus or "all"
    if facts is None:
        return f"CPUs {cpus}; those of the control group were not recorded"
    return (
        f"CPUs {cpus} (Node.js sees {facts.cpus}), CPU quota {_limit(facts.cpu_quota)}, "
        f"memory {_limit(facts.memory_limit, in_bytes=True)}, processes {_limit(facts.pids_limit)}"
    )


def _limit(text: str, *, in_bytes: bool = False) -> str:
    """A limit as the kernel writes it; cgroup v1 has huge numbers or -1 for none."""
    if not text:
        return "not told"
    if text.startswith(("max", "-1")) or (text.isdigit() and int(text) >= 1 << 60):
        return "none"
    return units.format_bytes(int(text)) if in_bytes and text.isdigit() else text


def addon(material: Material) -> str:
    """Addon, binaries and build of both sides, a list; empty in ``js`` runs."""
    package = material.candidate.addon
    if package is None or material.published.comparison.family == "js":
        return ""
    lines: list[str] = []
    names = tuple(told(name) for name in sides(material))
    for name, side in zip(names, (material.published.baseline, material.published.candidate), strict=True):
        lines += _build(name, side)
    lines += _both_flags(material, names)
    engine = ", ".join(f"{told(key)} {told(text)}" for key, text in material.addon_versions.items())
    lines.append(f"the addon answers: {engine or 'not recorded'}; cipher {told(material.plan.spec.cipher)}")
    lines.append(f"different between the builds: {_build_differences(material)}")
    return bullets(lines)


def _build(name: str, side: Side) -> Iterator[str]:
    package, build = side.environment.addon, side.build
    if package is None:
        return
    if package.kind == "node:sqlite":
        yield f"{name}: node:sqlite, a part of Node.js"
        return
    flavor = "the shipped binary" if side.environment.flavor == "prebuilt" else "compiled from source"
    patch = f", patched (sha256 {code(package.patch_sha256)})" if package.patch_sha256 else ""
    integrity = code(package.integrity, 120) or "none"
    yield f"{name}: {told(addon_name(package))}, {flavor}{patch}, integrity {integrity}"
    if package.dependencies:
        locked = ", ".join(f"{told(key)} {told(text)}" for key, text in sorted(package.dependencies.items()))
        yield f"{name}: locked dependencies {locked}"
    if build is not None:
        yield f"{name}: .node sha256 {code(build.binding_sha256, 64)}"
        sqlite = code(build.sqlite3_object_sha256 or "", 64) or "not known (shipped)"
        yield f"{name}: sqlite3.o sha256 {sqlite}"
        yield f"{name}: compiler {told(build.compiler) or 'not known (shipped)'}"


def _both_flags(material: Material, names: Sequence[str]) -> Iterator[str]:
    """Flags by source file, once where both sides have the same."""
    pair = [
        dict(_flags(side.build)) if side.build is not None else {}
        for side in (material.published.baseline, material.published.candidate)
    ]
    for file in sorted({*pair[0], *pair[1]}):
        words = [flags.get(file, "none") for flags in pair]
        if words[0] == words[1]:
            yield f"flags of {told(file, 80)} on both: {words[0]}"
        else:
            yield from (
                f"flags of {told(file, 80)} on {name}: {text}"
                for name, text in zip(names, words, strict=True)
            )


def _flags(build: AddonBuild) -> Iterator[tuple[str, str]]:
    """Options by source file, without places and names of files."""
    for file, command in sorted(build.flags.items()):
        words = " ".join(normal_flags(command[:MOST_FLAG_CHARACTERS]))
        if words and not file.endswith(".node"):
            yield file, code(words, 1500)


def same_build(material: Material) -> str:
    """Why the same time is to be expected: what is equal on both sides, in a sentence or two."""
    if material.by_addon:
        return "Both sides ran on the same Node.js build, with the same data, in alternating processes."
    same = "Same machine, same data, alternating processes; "
    package = material.candidate.addon
    if package is None or material.published.comparison.family == "js":
        return f"{same}only the Node.js build differs, and the JavaScript is the same."
    if package.kind == "node:sqlite":
        return f"{same}only the Node.js build differs, with the SQLite that it bundles."
    built = "the same release of the addon"
    if material.same_binary:
        return f"{same}both load the very same binary of {told(addon_name(package))}."
    if material.build_differences == ():
        built += ", compiled with the same compiler and flags"
    sqlite = "; its sqlite3.o is bit-identical" if material.same_sqlite else ""
    return f"{same}{told(addon_name(package))} is {built} for both{sqlite}."


def _build_differences(material: Material) -> str:
    found = material.build_differences
    if found is None:
        return "not known (no build of ours on both sides)"
    if not found:
        return "nothing: same compiler, flags and SQLite object"
    if material.same_binary:
        return "nothing that shows in the binary, which is bit-identical"
    said = (f"{d.what} of {d.subject}: {d.baseline or 'none'} -> {d.candidate or 'none'}" for d in found[:8])
    return told("; ".join(said), 800)


def versions(material: Material) -> str:
    """``process.versions`` of both sides."""
    pair = [material.baseline.node.versions, material.candidate.node.versions]
    rows = (
        (
            f"**{told(key, 40)}**" if pair[0].get(key) != pair[1].get(key) else told(key, 40),
            *(told(side.get(key, "-"), 80) for side in pair),
        )
        for key in sorted({*pair[0], *pair[1]})
    )
    return markdown_table(("process.versions", *_node_names(material)), rows)


def configuration(material: Material) -> str:
    """Variables of ``process.config`` that differ, those that decide machine code first."""
    found = material.config
    if found is None:
        return "`process.config`: not recorded by this run."
    if not found:
        return "`process.config`: no variable differs."
    telling = [d for d in found if "/" not in d.baseline + d.candidate]
    rows = (
        (code(d.subject, 80), code(d.baseline, 60) or "-", code(d.candidate, 60) or "-")
        for d in telling[:MOST_VARIABLES]
    )
    table = markdown_table(("process.config", *_node_names(material)), rows)
    left = len(found) - len(telling[:MOST_VARIABLES])
    if left <= 0:
        return table
    return f"{table}\n\n{left} more differ: lists of files, or beyond the first {MOST_VARIABLES}."


def binaries(material: Material) -> str:
    """Where the two Node builds came from, a list."""
    sources = {
        "npm": "the released build, from npm",
        "dist": "a build from a download site",
        "image": "the build of an image",
        "path": "a build of one's own",
    }
    lines = []
    for name, side in zip(_node_names(material), (material.baseline, material.candidate), strict=True):
        flags = f", flags {code(' '.join(side.node_flags))}" if side.node_flags else ""
        binary = f"sha256 of bin/node {code(side.node.node_sha256, 64)}"
        lines.append(f"{name}: {sources[side.node.source]}, {binary}{flags}")
    return bullets(lines)


def _node_names(material: Material) -> tuple[str, str]:
    """Versions of Node, also where addons are compared."""
    pair = (material.baseline, material.candidate)
    low, high = (f"v{e.node.version}{f' ({e.label})' if e.label else ''}" for e in pair)
    return told(low), told(high)
