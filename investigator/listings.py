"""Texts of the commands that measure nothing: plan, versions, native, doctor, clean."""

from collections.abc import Iterable, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from investigator import addons, housekeeping, units
from investigator.causes.ablation import AblationReport
from investigator.doctor import Check, examine
from investigator.errors import UsageError
from investigator.native import NativeFailure, NativeReading
from investigator.nodes import releases, sources
from investigator.observer import Observer
from investigator.outline import Outline
from investigator.repro.manifest import COMMAND, Manifest, folder_name
from investigator.store import encode_json
from investigator.text import clean_text

_EACH = ", about two minutes each, five where V8 flags are tried"
_EXPLAINING = {"none": "no finding", "all": f"every finding{_EACH}"}
_MARKS = {"good": "ok", "advice": "!", "bad": "!!"}


def _json(kind: str, value: object) -> str:
    body = msgspec.to_builtins(value)
    return encode_json(
        {"schema": 1, "kind": kind, **(body if isinstance(body, dict) else {"rows": body})}
    ).decode()


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean_text(cell, 400)) for cell in row))
    return table


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def plan(outline: Outline, *, json: bool) -> RenderableType:
    """What would run."""
    if json:
        return _json("outline", outline)
    extension = (
        f"; undecided operations go on up to {outline.max_rounds} rounds within {outline.budget_min:g} min"
        if outline.max_rounds > outline.rounds
        else ""
    )
    minutes = units.format_minutes(outline.measuring_min)
    about = "" if minutes.startswith("less") else "about "
    processes = f"{outline.rounds}, each of {_counted(outline.invocations_per_round, 'process', 'processes')}"
    facts = [
        ("Node", ", ".join(outline.nodes)),
        ("baseline", f"{outline.baseline} (measured twice a round: the A/A twin)"),
        *([("addon", outline.addon)] if outline.addon else []),
        *([("addons", ", ".join(outline.addons))] if outline.addons else []),
        *([("fix", f"{outline.fix}, on the regressed Node")] if outline.fix else []),
        ("operations", f"{len(outline.operations)}: {' '.join(outline.operations)}"),
        ("rounds", f"{processes} with {_counted(outline.passes, 'pass', 'passes')}{extension}"),
        (
            "measuring",
            f"{about}{minutes}, plus downloads and builds the first time",
        ),
        ("explaining", _EXPLAINING.get(outline.explain, f"at most {outline.explain} findings{_EACH}")),
    ]
    order = [Text(clean_text(line, 400)) for line in outline.first_round]
    return Group(
        _table(("", ""), facts), Text(""), Text("order of round 1, from the seed:", style="bold"), *order
    )


def versions(lines: str | None, addon: str, *, json: bool, observer: Observer) -> RenderableType:
    """Node releases and which addon release accepts which."""
    wanted = _lines(lines)
    platform = sources.platform_for("docker")
    nodes = releases.available_nodes(platform, wanted)
    if not nodes:
        raise UsageError(f"there are no releases of Node {lines}.")
    newest = list({row.version.partition(".")[0]: row.version for row in reversed(nodes)}.values())[-6:]
    request = addons.parse_addon(addon)
    rows: Sequence[addons.CompatibilityRow] = ()
    if request.name not in {"node:sqlite", "path:"}:
        observer.activity(f"asking for releases of {request.name}")
        rows = addons.addon_compatibility(request.name, newest)
    if json:
        return _json("versions", {"nodes": nodes, "addon": request.name, "releases": rows})
    shown = nodes if wanted else _newest_of_each_line(nodes)
    known = _table(
        ("Node", "V8", "ABI", "Node-API", "published", "here"),
        [(r.version, r.v8, r.abi, r.napi, r.published, "yes" if r.cached else "") for r in shown],
    )
    accepts = _table(
        (request.name, "published", "engines", *newest),
        [
            (r.release, r.published, r.engines, *("yes" if r.accepts.get(v) else "-" for v in newest))
            for r in rows[:25]
        ],
    )
    tail = "" if wanted else "the newest five of each line; `investigate versions 24` lists all of one"
    note = "engines is what a release says of itself; whether it loads is tested before anything is measured"
    return Group(known, Text(tail, style="dim"), Text(""), accepts, Text(note, style="dim"))


def _lines(text: str | None) -> tuple[int, ...]:
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    if any(not part.isdecimal() or len(part) > 3 for part in parts):
        raise UsageError(f"{clean_text(text or '', 60)!r} is not a list of major versions such as 20,22,24.")
    return tuple(int(part) for part in parts)


def _newest_of_each_line(nodes: Sequence[releases.NodeRow]) -> list[releases.NodeRow]:
    counts: dict[str, int] = {}
    shown = []
    for row in nodes:
        major = row.version.partition(".")[0]
        counts[major] = counts.get(major, 0) + 1
        if counts[major] <= 5 and int(major) >= 18:
            shown.append(row)
    return shown


def native(readings: Sequence[NativeReading | NativeFailure], *, json: bool) -> RenderableType:
    """What the C program measured: operations per second of the best pass, sizes, VACUUM."""
    if json:
        return _json("native", readings)
    rows = [_native_row(r) for r in readings if isinstance(r, NativeReading)]
    failed = [Text(clean_text(r.reason, 400)) for r in readings if isinstance(r, NativeFailure)]
    ops = list(dict.fromkeys(o.op for r in readings if isinstance(r, NativeReading) for o in r.operations))
    columns = ("profile", "cipher", *(f"{op}/s" for op in ops), "VACUUM", "database", "WAL")
    return Group(_table(columns, rows, right=columns[2:]), *failed)


def _native_row(reading: NativeReading) -> tuple[str, ...]:
    return (
        reading.profile,
        reading.cipher,
        *(units.format_rate(1e9 / operation.ns_per_call) for operation in reading.operations),
        units.format_time(reading.vacuum_ns),
        units.format_bytes(reading.database_bytes),
        units.format_bytes(reading.wal_bytes),
    )


def doctor(*, json: bool) -> RenderableType:
    """What this machine can do."""
    checks = examine()
    if json:
        return _json("doctor", checks)
    return _table(("", "what", "found", "advice"), [_check_row(check) for check in checks])


def _check_row(check: Check) -> tuple[str, str, str, str]:
    return _MARKS[check.state], check.name, check.found, check.advice


def clean(*, cache: bool, dry_run: bool, keep_bytes: int | None = None) -> RenderableType:
    """What was, or would be, removed."""
    removed = housekeeping.clean(cache=cache, dry_run=dry_run, keep_bytes=keep_bytes)
    word = "would remove" if dry_run else "removed"
    lines = [Text(clean_text(f"{word} {line}", 400)) for line in removed]
    return Group(*lines) if lines else Text("nothing was left behind.")


def ablation(report: AblationReport, *, json: bool) -> RenderableType:
    """Which V8 flags close the gap of a pair."""
    if json:
        return _json("ablation-result", report)
    head = Text(
        f"{report.op}, {report.candidate} against {report.baseline}: {report.rounds} rounds under V8 flags, "
        f"{units.format_clock(report.elapsed_s)}",
        style="bold",
    )
    if report.failure is not None:
        return Group(head, Text(f"no result: {clean_text(report.failure, 400)}"))
    rows = (
        (
            result.ablation.name,
            "-" if result.closed is None else result.closed.text,
            "closes the gap" if result.closes else "first rounds only" if not result.final else "",
            result.ablation.subsystem,
            result.ablation.note or ("one side only" if result.ablation.one_sided else ""),
        )
        for result in report.results
    )
    table = _table(("flag", "closes", "", "what it is", "note"), rows)
    left = f"; {report.left_out} more flags were not tried" if report.left_out else ""
    return Group(head, Text(""), table, Text(""), Text(f"Raw records: {report.folder}{left}", style="dim"))


def reproductions(manifests: Sequence[Manifest], *, json: bool) -> RenderableType:
    """What came of `investigate repro`."""
    if json:
        return _json("reproductions", [msgspec.to_builtins(manifest) for manifest in manifests])
    parts: list[RenderableType] = []
    for manifest in manifests:
        sides = f"{manifest.baseline_name} against {manifest.candidate_name}"
        change = units.format_percent(manifest.change_pct)
        parts.append(Text(clean_text(f"{manifest.op}, {sides}: {change}", 300), style="bold"))
        rows = ((p.name, "shipped" if p.shipped else "not shipped", p.reason) for p in manifest.programs)
        parts.append(_table(("program", "", "because"), rows))
        parts += [Text(clean_text(note, 400)) for note in (*manifest.needs, *manifest.notes)]
        todo = f"copy it anywhere and run {COMMAND}" if manifest.shipped else "RESULT.txt only"
        place = f"repro/{folder_name(manifest.op, manifest.candidate)} of the run: {todo}"
        parts += [Text(place, style="dim"), Text("")]
    return Group(*parts)
