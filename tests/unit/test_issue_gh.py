"""Opening an issue: through the user's own client, after a yes, the body in a file."""

import json
import stat
from pathlib import Path

import pytest

from investigator.errors import EngineMissingError, HostUnfitError, UsageError
from investigator.report.issue.forms import compose
from investigator.report.issue.gh import open_issue
from tests.unit import issue_synthetic as made

FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
body = next(a.partition("=")[2] for a in sys.argv if a.startswith("--body-file="))
record = {"argv": sys.argv[1:], "body": pathlib.Path(body).read_text(encoding="utf-8")}
pathlib.Path(__file__).with_name("call.json").write_text(json.dumps(record))
%s
"""


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A client that writes down how it was called; the only program of that name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    install(folder, "print('https://github.com/nodejs/node/issues/1')")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def install(folder: Path, end: str) -> None:
    client = folder / "gh"
    client.write_text(FAKE % end)
    client.chmod(client.stat().st_mode | stat.S_IXUSR)


def called(folder: Path) -> dict[str, object] | None:
    record = folder / "call.json"
    return json.loads(record.read_text()) if record.exists() else None


def test_a_yes_opens_it_with_the_body_in_a_file(gh: Path) -> None:
    text = compose(made.material(), "node")
    asked: list[str] = []

    def confirm(question: str) -> bool:
        asked.append(question)
        return True

    assert open_issue(text, confirm) == "https://github.com/nodejs/node/issues/1"
    assert asked == ["Open this issue at nodejs/node?"]
    call = called(gh)
    assert call is not None
    argv = call["argv"]
    assert isinstance(argv, list)
    assert argv[:4] == ["issue", "create", "--repo", "nodejs/node"]
    assert argv[4] == f"--title={text.title}"
    assert len(argv) == 6
    assert call["body"] == text.body
    assert not Path(argv[5].partition("=")[2]).exists()


def test_a_no_runs_nothing(gh: Path) -> None:
    assert open_issue(compose(made.material(), "node"), lambda _question: False) is None
    assert called(gh) is None


def test_the_addon_s_tracker(gh: Path) -> None:
    open_issue(compose(made.material(), "addon"), lambda _question: True)
    call = called(gh)
    assert call is not None
    assert "m4heshd/better-sqlite3-multiple-ciphers" in str(call["argv"])


def test_a_client_that_refuses_is_quoted(gh: Path) -> None:
    install(gh, "sys.stderr.write('\\x1b[31mnot logged in\\x1b[0m'); sys.exit(4)")
    with pytest.raises(HostUnfitError, match="gh did not open the issue: not logged in"):
        open_issue(compose(made.material(), "node"), lambda _question: True)


def test_v8_is_not_on_github(gh: Path) -> None:
    with pytest.raises(UsageError, match=r"paste the text at https://issues\.chromium\.org"):
        open_issue(compose(made.material("engine"), "v8"), lambda _question: True)
    assert called(gh) is None


def test_no_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineMissingError, match="gh is not installed"):
        open_issue(compose(made.material(), "node"), lambda _question: pytest.fail("asked for nothing"))
