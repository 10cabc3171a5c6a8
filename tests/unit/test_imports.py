"""Imports point one way: no cycle, and no stage knows a later one."""

import ast
import graphlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "investigator"

LAYERS = (
    {"errors", "text", "paths", "units", "observer", "protocol", "stats"},
    {"cache", "cache_limit", "archives", "console"},
    {"operations", "spec", "resources", "store", "host", "npm_client", "exchange"},
    {"engine", "base_image", "nodes", "addons", "patches", "build_log", "elf"},
    {"plan", "workloads"},
    {"selection"},
    {"inputs"},
    {"resolve"},
    {"build", "native", "probes", "sqlite_calls"},
    {"invoke", "prepare"},
    {"samples", "arms", "naming"},
    {"measure"},
    {"causes"},
    {"analysis"},
    {"attribution", "profiling"},
    {"records", "repro", "collector"},
    {"tested"},
    {"attributed", "validate"},
    {"report", "gate"},
    {"results"},
    {"stored_run"},
    {"exports", "compare", "slopes"},
    {"rounds"},
    {"ablate"},
    {"issues", "issue_sources"},
    {"experiments"},
    {"explain"},
    {"workflow", "outline", "doctor", "housekeeping", "profile_self"},
    {"listings", "selftest", "options", "documents", "issue_report", "validating", "bisect"},
    {"audit"},
    {"cli"},
    {"__main__"},
)
"""Bottom to top: a module may know what stands in its own layer or below it."""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports() -> dict[str, set[str]]:
    modules = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        found: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("investigator"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                found |= {full if full in modules else str(node.module) for full in names}
            elif isinstance(node, ast.Import):
                found |= {a.name for a in node.names if a.name.startswith("investigator")}
        graph[name] = found - {name}
    return graph


def layer(name: str) -> int:
    top = name.removeprefix("investigator").lstrip(".").partition(".")[0]
    if not top:
        return 0
    return next(index for index, names in enumerate(LAYERS) if top in names)


def test_every_module_has_a_layer() -> None:
    known = set().union(*LAYERS)
    tops = {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert tops - known - {"__init__", "__pycache__"} == set()


def test_no_cycle() -> None:
    assert list(graphlib.TopologicalSorter(imports()).static_order())


def test_no_module_knows_a_later_stage() -> None:
    wrong = [
        f"{name} imports {other}"
        for name, others in imports().items()
        for other in others
        if layer(other) > layer(name)
    ]
    assert wrong == []


def test_statistics_know_nothing_of_the_project() -> None:
    foreign = {
        f"{name} imports {other}"
        for name, others in imports().items()
        if name.startswith("investigator.stats")
        for other in others
        if not other.startswith("investigator.stats") and other != "investigator.errors"
    }
    assert foreign == set()


def test_only_the_console_and_the_command_line_print() -> None:
    printing = {
        module_name(path)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing - {"investigator.stats.simulate", "investigator.nodes.refresh_releases"} == set()


def test_nobody_uses_a_shell_or_ends_the_program_below_the_command_line() -> None:
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                keywords = {k.arg: k.value for k in node.keywords}
                shell = keywords.get("shell")
                assert shell is None or (isinstance(shell, ast.Constant) and shell.value is False), path
                if isinstance(node.func, ast.Attribute) and node.func.attr == "exit":
                    owner = node.func.value
                    ends = isinstance(owner, ast.Name) and owner.id == "sys"
                    assert not ends or path.parent.name == "cli" or path.name == "supervise.py", path
