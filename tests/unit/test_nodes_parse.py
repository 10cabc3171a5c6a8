import contextlib
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator.errors import UsageError
from investigator.nodes.interface import NodeRequest
from investigator.nodes.parse import parse_versions
from investigator.nodes.select import is_lts_by_date, select

RELEASES = (
    "20.19.5",
    "20.20.2",
    "22.21.1",
    "22.23.5",
    "23.11.1",
    "24.11.1",
    "24.22.3",
    "25.9.0",
    "26.0.0-rc.1",
)

PIECES = (
    "0",
    "1",
    "22",
    "24.1",
    ".",
    "-",
    "||",
    "<",
    ">",
    "=",
    "^",
    "~",
    "x",
    "*",
    "rc",
    "lts",
    "v",
    "@",
    ":",
    "a=",
    "path:",
    "dist:",
    "http://x",
    "image:",
    " ",
)


def npm(selector: str, label: str | None = None) -> NodeRequest:
    return NodeRequest(source="npm", selector=selector, label=label)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("20,22,24", (npm("20"), npm("22"), npm("24"))),
        (" 20 , v22.21.1 ", (npm("20"), npm("22.21.1"))),
        ("24.11", (npm("24.11"),)),
        (">=22 <24", (npm(">=22 <24"),)),
        (">= 22 < 24", (npm(">=22 <24"),)),
        ("^24.3,24.x", (npm("^24.3"), npm("24.x"))),
        ("20 || 22", (npm("20 || 22"),)),
        ("lts,latest", (npm("lts"), npm("latest"))),
        ("LTS,V24.11.1,V22", (npm("lts"), npm("24.11.1"), npm("22"))),
        ("22 - 24", (npm("22 - 24"),)),
        ("a=24.11.1,b=24.11.1", (npm("24.11.1", "a"), npm("24.11.1", "b"))),
        ("old=>=22 <24", (npm(">=22 <24", "old"),)),
        ("fix=path:./out", (NodeRequest(source="path", selector="./out", label="fix"),)),
        ("path:~/a=b.tgz", (NodeRequest(source="path", selector="~/a=b.tgz"),)),
        ("image:node:24", (NodeRequest(source="image", selector="node:24"),)),
        ("i=image:host:5000/a/b@sha256:00", (
            NodeRequest(source="image", selector="host:5000/a/b@sha256:00", label="i"),
        )),
        ("dist:https://x.test/dist/@v25.1.0", (
            NodeRequest(source="dist", location="https://x.test/dist", selector="25.1.0"),
        )),
        ("dist:http://x.test:8080", (
            NodeRequest(source="dist", location="http://x.test:8080", selector="latest"),
        )),
        ("n=dist:https://x.test/d@26-nightly", (
            NodeRequest(source="dist", location="https://x.test/d", selector="26-nightly", label="n"),
        )),
        ("dist:https://x.test/d@25.0.0-nightly20250101abc", (
            NodeRequest(source="dist", location="https://x.test/d", selector="25.0.0-nightly20250101abc"),
        )),
    ],
)  # fmt: skip
def test_the_grammar(text: str, expected: tuple[NodeRequest, ...]) -> None:
    assert parse_versions(text) == expected


def test_a_list_is_like_one_text() -> None:
    assert parse_versions(["20", "22,24"]) == parse_versions("20,22,24")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty item"),
        ("20,,22", "empty item"),
        ("20,", "empty item"),
        ("twenty", "cannot be read"),
        ("*", "cannot be read"),
        ("-1", "cannot be read"),
        ("--registry=x", "cannot be read"),
        ("fix=../out", "cannot be read; write path:../out for a build"),
        ("https://x.test/d@24", "cannot be read; write dist:https://x.test/d@24 for a mirror"),
        ("20;rm -rf ~", "cannot be read"),
        ("$(id)", "cannot be read"),
        ("a=", "cannot be read"),
        ("my label=24", "label"),
        ("ä=24", "label"),
        (f"{'x' * 33}=24", "label"),
        ("a=24,a=22", "label a stands twice"),
        ("24,24", "24 stands twice"),
        ("24.11.1,v24.11.1", "24.11.1 stands twice"),
        ("nightly", "dist:URL@nightly"),
        ("Nightly", "dist:URL@Nightly"),
        ("22=24,22", "looks like a version; give it a letter, for instance n22=24"),
        ("22 24 26", "separate versions by commas: 22,24,26"),
        ("24.11.1 v22", "separate versions by commas"),
        ("\uff12\uff14.\uff11.\uff11", "cannot be read"),
        ("path:./a,b", "a comma ends a path"),
        ("dist:http://user:secret@x.test/d@24", "put it and the password into ~/.netrc"),
        ("path:", "needs a directory"),
        ("image:", "not the name of an image"),
        ("image:-x", "not the name of an image"),
        ("image:a b", "not the name of an image"),
        ("dist:", "not a http"),
        ("dist:ftp://x.test/d@24", "not a http"),
        ("dist:file:///etc@24", "not a http"),
        ("dist:http://[::1@24", "not a http"),
        ("dist:http://x.test/d?a=b@24", "not a http"),
        ("20\x1b[31m", "control characters"),
        ("2" * 501, "too long"),
        (",".join(str(n) for n in range(65)), "at most 64"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse_versions(text)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()
    assert "secret" not in str(caught.value)


@given(st.text(max_size=60))
def test_hostile_text_never_gives_another_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert all(
            request.selector and not request.selector.startswith("-") for request in parse_versions(text)
        )


@given(st.lists(st.sampled_from(PIECES), max_size=7))
def test_pieces_of_the_grammar_in_any_order_never_give_another_error(pieces: list[str]) -> None:
    with contextlib.suppress(UsageError):
        for request in parse_versions("".join(pieces)):
            if request.source in ("npm", "dist"):
                select(request.selector, RELEASES, is_lts=lambda _version: True, where="npm")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("20", "20.20.2"),
        ("24.11", "24.11.1"),
        ("20.19.5", "20.19.5"),
        (">=22 <24", "23.11.1"),
        ("^22.1", "22.23.5"),
        ("24.x", "24.22.3"),
        ("latest", "25.9.0"),
        ("lts", "24.22.3"),
        ("26.0.0-rc.1", "26.0.0-rc.1"),
        ("rc", "26.0.0-rc.1"),
        ("26-rc", "26.0.0-rc.1"),
    ],
)
def test_the_newest_release_that_fits(selector: str, expected: str) -> None:
    assert select(selector, RELEASES, is_lts=lambda v: v.startswith("24."), where="npm") == expected


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("24.99.0", "npm has no Node 24.99.0; the nearest are 24.22.3 and 25.9.0"),
        ("99.0.0", "npm has no Node 99.0.0; the nearest is 25.9.0"),
        ("1.0.0", "npm has no Node 1.0.0; the nearest is 20.19.5"),
        ("26", "npm has no Node that 26 accepts; the newest release there is 25.9.0"),
        ("25-nightly", "npm has no Node that 25-nightly accepts"),
    ],
)
def test_an_unknown_release_names_the_nearest(selector: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        select(selector, RELEASES, is_lts=lambda _version: False, where="npm")


def test_versions_of_a_list_that_are_none_are_passed_over() -> None:
    listed = ("24.01.1", "24.1.1-a..b", "24.1.1", "\uff12.1.1")
    assert select("24", listed, is_lts=lambda _version: False, where="x") == "24.1.1"


def test_a_list_of_pre_releases_says_how_to_name_one() -> None:
    with pytest.raises(UsageError, match=r"pre-releases only: name one \(26\.0\.0-rc\.1\), or nightly, rc"):
        select("latest", ("26.0.0-rc.1",), is_lts=lambda _version: False, where="x")


def test_an_empty_list_is_one_sentence() -> None:
    for selector in ("24", "24.11.1", "latest"):
        with pytest.raises(UsageError, match="no release at all"):
            select(selector, (), is_lts=lambda _version: False, where="npm")


@pytest.mark.parametrize(
    ("version", "today", "expected"),
    [
        ("24.0.0", date(2025, 10, 1), False),
        ("24.11.1", date(2025, 11, 1), True),
        ("20.20.2", date(2030, 1, 1), True),
        ("25.9.0", date(2030, 1, 1), False),
        ("26.12.1", date(2026, 10, 1), False),
        ("26.12.1", date(2026, 11, 30), True),
        ("0.12.18", date(2030, 1, 1), False),
    ],
)
def test_long_term_support_by_the_calendar(version: str, today: date, expected: bool) -> None:
    assert is_lts_by_date(version, today) is expected
