"""What the README tells people is what the program does."""

import ast
import re
import typing
from pathlib import Path

import msgspec
from typer.main import get_command

from investigator.cli import app
from investigator.report.summary import Summary, SummaryComparison
from investigator.samples import Sample
from tests.fields import field_table

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_tables_of_fields_are_those_of_the_code() -> None:
    assert field_table(SummaryComparison).strip() in README
    assert field_table(Sample).strip() in README


def structs_below(kind: object) -> dict[str, type[msgspec.Struct]]:
    """Every struct that a field of `kind` can hold, however deep, by name; `kind` itself first."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        found = {kind.__name__: kind}
        for hint in typing.get_type_hints(kind).values():
            found |= structs_below(hint)
        return found
    below: dict[str, type[msgspec.Struct]] = {}
    for argument in typing.get_args(kind):
        below |= structs_below(argument)
    return below


def test_every_field_of_summary_json_is_told() -> None:
    parts = structs_below(Summary)
    assert len(parts) > 8
    for name, part in parts.items():
        assert field_table(part).strip() in README, f"{name}: run python -m tests.unit.test_readme"


def written_files() -> set[str]:
    """Names of the files that the program writes into run folders, as far as they stand in its text."""
    names: set[str] = set()
    for path in (ROOT / "investigator").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            if node.func.attr not in {"write", "write_json"}:
                continue
            first = node.args[0]
            last = first.values[-1] if isinstance(first, ast.JoinedStr) else first
            if isinstance(last, ast.Constant) and isinstance(last.value, str):
                name = last.value.rpartition("/")[2]
                if re.search(r"[a-z]\.[a-z]{2,}$|^\.[a-z.]+$", name):
                    names.add(name)
    return names


def test_every_file_of_a_run_folder_is_told() -> None:
    names = written_files()
    assert {"summary.json", "round.json", "measurements.csv", ".speedscope.json"} <= names
    assert {name for name in names if f"`{name}`" not in README and f"{name}`" not in README} == set()


def test_every_command_is_told_and_every_told_command_exists() -> None:
    commands = set(get_command(app).commands)  # type: ignore[attr-defined]
    told = set(re.findall(r"`investigate ([a-z]+)", README)) | {"sqlite"}
    assert told == commands


def test_every_option_told_exists() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    known = {option for c in commands.values() for p in c.params for option in p.opts}
    use = README[README.index("## Use") : README.index("## Development")]
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", use))
    assert told - known == {"--cells"}


def test_links_and_pictures_are_there() -> None:
    for target in re.findall(r"\]\(((?!http)[^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def main() -> None:
    """Print the tables of fields as the README has them."""
    for name, part in structs_below(Summary).items():
        if part is not SummaryComparison:
            print(f"`{FIELD_OF.get(name, name)}`:\n\n{field_table(part)}\n")


FIELD_OF = {
    "Summary": "summary.json",
    "SummaryEnvironment": "environments[]",
    "SummaryCollections": "environments[].gc_collections",
    "SummaryAttribution": "attributions[]",
    "SummaryMethod": "attributions[].methods[]",
    "SummaryLayer": "attributions[].methods[].layers",
    "SummaryCause": "attributions[].causes[]",
    "SummarySymbol": "attributions[].symbols[]",
    "SummaryControl": "controls",
    "SummaryFailure": "failures[]",
    "Validation": "validation",
    "Recovery": "validation: recovery of an operation",
    "Change": "validation: a change",
    "Other": "validation: another operation",
}

if __name__ == "__main__":
    main()
