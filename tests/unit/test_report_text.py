import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator.text import clean_block, clean_text, code_span, escape_markdown, fence, short_text
from tests.unit.report_synthetic import HOSTILE

anything = st.text(alphabet=st.characters(exclude_categories=()), max_size=300)


@given(anything)
def test_clean_text_is_one_printable_line_that_can_be_stored(text: str) -> None:
    cleaned = clean_text(text)
    assert cleaned.isprintable()
    assert not {unicodedata.category(character) for character in cleaned} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    cleaned.encode("utf-8")


def test_terminal_sequences_go_as_a_whole() -> None:
    assert (
        clean_text("\x1b[31mred\x1b[0m \x1b]8;;http://e\x07link\x1b]8;;\x07 \x9b1mbold\x00")
        == "red link bold"
    )


def test_a_megabyte_is_cut_and_says_so_without_being_read() -> None:
    started = time.perf_counter()
    cleaned = clean_text("x" * 1_000_000, 100)
    assert cleaned == "x" * 100 + " ... (cut, 1,000,000 characters)"
    assert len(escape_markdown("|" * 1_000_000)) < 5000
    assert len(fence("`" * 1_000_000)) < 20_000
    assert time.perf_counter() - started < 1.0


def test_short_text_fits() -> None:
    assert short_text("a" * 50, 10) == "aaaaaaa..."
    assert short_text("abc", 10) == "abc"


@given(anything)
def test_escaped_text_holds_no_active_markup(text: str) -> None:
    escaped = escape_markdown(text)
    assert not set(escaped) & set("<>|\n\r")
    # Every character that could open markup stands behind a backslash.
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[\]{}$~]", re.sub(r"\\.", "", escaped))
    assert not re.search(r"(?<![A-Za-z0-9_])@[A-Za-z0-9]", escaped)
    assert "://" not in escaped


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("20.19.5", "20.19.5"),
        ("+2.1 %", "+2.1 %"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("# title", r"\# title"),
        ("bind_text_ascii", "bind_text_ascii"),
        ("_em_", r"\_em\_"),
        ("a|b", "a&#124;b"),
        ("\\|", "\\\\&#124;"),
        ("&lt;", "&amp;lt;"),
        ("=====", r"\====="),
        ("name@12.11.1", "name@12.11.1"),
        ("a@host.example", "a@\u200bhost.example"),
        ("xmpp:a@b.c/d", "xmpp:a@\u200bb.c/d"),
        ("name@13.0.0-beta", "name@\u200b13.0.0-beta"),
        ("owner/name@1a2b3c4", "owner/name@\u200b1a2b3c4"),
    ],
)
def test_escaping_leaves_plain_text_alone(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


@given(anything)
def test_a_code_span_is_never_closed_from_inside(text: str) -> None:
    span = code_span(text)
    assert "|" not in span
    if span and not span.startswith("<code>"):
        ticks = re.findall(r"^`+", span)[0]
        assert span.endswith(ticks)
        assert ticks not in re.findall(r"`+", span[len(ticks) : -len(ticks)])


@given(st.text(alphabet="`~\n abc", max_size=60))
def test_a_fence_is_never_closed_from_inside(text: str) -> None:
    lines = fence(text).splitlines()
    ticks = lines[-1]
    assert lines[0] == f"{ticks}text"
    assert all(ticks not in line for line in lines[1:-1])


def test_blocks_keep_their_lines() -> None:
    assert clean_block("a\x1b[1mb\nc\td") == "ab\nc d"
    assert clean_block(HOSTILE).isascii()
