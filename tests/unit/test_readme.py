"""What the README tells people is what the program does."""

import re
from pathlib import Path

from typer.main import get_command

from investigator.cli import app
from investigator.report.fields import field_table
from investigator.report.summary import SummaryComparison
from investigator.samples import Sample

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_tables_of_fields_are_those_of_the_code() -> None:
    assert field_table(SummaryComparison).strip() in README
    assert field_table(Sample).strip() in README


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
