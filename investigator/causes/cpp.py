"""Just enough C++ to say which function and which ``#if`` a line belongs to; pure functions on text.

Input is what others wrote and may be anything: nothing here raises on it, and everything is linear in its
length. What cannot be understood is left out.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

MAX_TOKENS: Final = 4_000_000
MAX_HEAD: Final = 4_000
"""Tokens of one declaration head; what is longer is a table of data."""
_MARKER: Final = re.compile(r'#\s*(?:line\s+)?(\d{1,9})\s+"((?:[^"\\]|\\.){1,4096})"')
_DEFINE: Final = re.compile(r"#\s*define\s+([A-Za-z_]\w*)(.*)", re.DOTALL)
_INCLUDE: Final = re.compile(r'#\s*include\s*["<]([^">]{1,1024})[">]')
_DIRECTIVE: Final = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b(.*)")
_LINE_DIRECTIVE: Final = re.compile(r'^[ \t]*#[ \t]*(?:line[ \t]+\d|\d+[ \t]+").*$', re.MULTILINE)
# What opens and never closes is taken to its end at once: every text is read in linear time.
_TOKEN: Final = re.compile(
    r'R"([^()\\\s]{0,16})\((?s:.*?)(?:\)\1"|\Z)'
    r'|"(?:[^"\\\n]|\\.)*+"?'
    r"|'(?:[^'\\\n]|\\.)*+'?"
    r"|[A-Za-z_]\w*|\.?\d(?:[\w.']|[eEpP][+-])*"
    r"|::|->|\S"
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_COMMENT: Final = re.compile(
    r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)"
    r"|(\b\d[\w.']*+|\"(?:[^\"\\\n]|\\.)*+\"?|'(?:[^'\\\n]|\\.)*+'?)"
)
_CLASS_KEYS: Final = frozenset({"class", "struct", "union", "enum"})
_NO_NAME: Final = frozenset(
    {
        "if",
        "for",
        "while",
        "switch",
        "catch",
        "return",
        "sizeof",
        "decltype",
        "alignas",
        "noexcept",
        "defined",
    }
    | {"__attribute__", "__declspec", "requires", "static_assert"}
)


class Function(msgspec.Struct, frozen=True, kw_only=True):
    """A function definition in preprocessed text."""

    name: str
    """Qualified as a profile shows it, without parameters: ``Statement::JS_all``."""
    file: str
    first_line: int
    last_line: int
    digest: str
    """sha256 of its tokens, hex, first 32 digits: comments, layout and line numbers do not count."""
    words: frozenset[str]
    """Identifiers in it: the functions it may call are among them."""


class Preprocessed(msgspec.Struct, frozen=True, kw_only=True):
    """What the compiler sees of the addon's own files under one header set."""

    lines: Mapping[str, Mapping[int, str]]
    """By own file and line: the text that is left of it after preprocessing (definitions included)."""
    functions: tuple[Function, ...]
    macros: Mapping[str, str]
    """All macros ever defined, of every header: name -> body of the last definition."""
    own_macros: Mapping[str, tuple[tuple[str, int], ...]]
    """Macros that own files define: name -> places."""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One branch of a conditional group."""

    keyword: str
    """``if``, ``ifdef``, ``ifndef``, ``elif``, ``else``."""
    condition: str
    """As written, comments removed; empty for ``else``."""
    line: int
    """Line of the directive."""
    directive_lines: int
    """Lines that the directive takes: more than one where it is continued."""
    first_line: int
    """First line of its text; after `last_line` where it has none."""
    last_line: int


class Conditional(msgspec.Struct, frozen=True, kw_only=True):
    """``#if`` to ``#endif``."""

    branches: tuple[Branch, ...]
    depth: int
    """0 at the top of the file."""
    end_line: int

    @property
    def line(self) -> int:
        """Line of its ``#if``."""
        return self.branches[0].line

    @property
    def text(self) -> str:
        """Its first condition as it reads: ``NODE_MODULE_VERSION < 127``, ``ifdef X`` as ``defined(X)``."""
        first = self.branches[0]
        if first.keyword == "ifdef":
            return f"defined({first.condition})"
        return f"!defined({first.condition})" if first.keyword == "ifndef" else first.condition


def without_line_directives(text: str) -> str:
    """Blank the ``#line`` directives of a generated source: line numbers then mean the shipped file."""
    return _LINE_DIRECTIVE.sub("", text)


def without_comments(text: str) -> str:
    """Blank comments, keeping every line break; strings stay."""
    return _COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n") or " ", text)


def conditionals(text: str) -> tuple[Conditional, ...]:
    """The conditional groups of a source file, outer ones before inner ones; unclosed ones are left out."""
    lines = without_comments(text).split("\n")
    found: list[Conditional] = []
    open_groups: list[list[tuple[str, str, int, int]]] = []
    number = 0
    while number < len(lines):
        start, line = number, lines[number]
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = line[:-1] + " " + lines[number]
        number += 1
        directive = _DIRECTIVE.fullmatch(line)
        if directive is None:
            continue
        keyword, condition = directive[1], " ".join(directive[2].split())
        if keyword.startswith("if"):
            open_groups.append([(keyword, condition, start + 1, number - start)])
        elif not open_groups:
            continue
        elif keyword == "endif":
            found.append(_conditional(open_groups.pop(), start + 1, len(open_groups)))
        else:
            open_groups[-1].append((keyword, condition, start + 1, number - start))
    return tuple(sorted(found, key=lambda group: (group.line, group.depth)))


def _conditional(heads: Sequence[tuple[str, str, int, int]], end: int, depth: int) -> Conditional:
    ends = [line for _, _, line, _ in heads[1:]] + [end]
    return Conditional(
        branches=tuple(
            Branch(
                keyword=keyword,
                condition=condition,
                line=line,
                directive_lines=height,
                first_line=line + height,
                last_line=until - 1,
            )
            for (keyword, condition, line, height), until in zip(heads, ends, strict=True)
        ),
        depth=depth,
        end_line=end,
    )


def read_preprocessed(text: str, *, directory: str, root: str) -> Preprocessed:
    """Read the output of ``g++ -E -dD`` (line markers and definitions kept).

    Args:
        text: the output.
        directory: absolute directory the compiler ran in, from which its relative names count.
        root: absolute directory of the package; own files lie below it, outside of ``build`` and
            ``node_modules``, and are named relative to it.
    """
    lines: dict[str, dict[int, str]] = {}
    macros: dict[str, str] = {}
    own_macros: dict[str, list[tuple[str, int]]] = {}
    names: dict[str, str | None] = {}
    file: str | None = None
    number = 1
    for line in text.split("\n"):
        if line.startswith("#"):
            if marker := _MARKER.match(line):
                name = marker[2]
                if name not in names:
                    names[name] = _own_name(name, directory, root)
                file, number = names[name], int(marker[1])
                continue
            if define := _DEFINE.match(line):
                macros[define[1]] = " ".join(define[2].split())
                if file is not None:
                    own_macros.setdefault(define[1], []).append((file, number))
        if file is not None and line.strip():
            own = lines.setdefault(file, {})
            # One line of the source may come out in several pieces.
            own[number] = f"{own[number]} {line}" if number in own else line
        number += 1
    return Preprocessed(
        lines=lines,
        functions=tuple(functions(lines)),
        macros=macros,
        own_macros={name: tuple(places) for name, places in own_macros.items()},
    )


def _own_name(name: str, directory: str, root: str) -> str | None:
    path = posixpath.normpath(posixpath.join(directory, name))
    if not path.startswith(root + "/"):
        return None
    relative = path[len(root) + 1 :]
    outside = relative.startswith("build/") or "node_modules" in relative.split("/")
    return None if outside else relative


def included(line: str) -> str | None:
    """The file that an ``#include`` line names; None for any other line."""
    found = _INCLUDE.match(line.strip())
    return found[1] if found else None


def words(text: str) -> frozenset[str]:
    """Identifiers in a piece of text."""
    return frozenset(_WORD.findall(text))


# -- functions --------------------------------------------------------------------------------------------


class _Token(msgspec.Struct, frozen=True):
    text: str
    file: str
    line: int


def functions(lines: Mapping[str, Mapping[int, str]]) -> Iterator[Function]:
    """The functions that own text defines; each file is read by itself, from its top scope."""
    for file, own in lines.items():
        tokens = [
            _Token(token[0], file, number)
            for number, line in sorted(own.items())
            if not line.startswith("#")
            for token in _TOKEN.finditer(line)
        ][:MAX_TOKENS]
        yield from _Scanner(tokens).functions()


class _Scanner:
    """Walks through declarations: namespaces and classes are entered, function bodies are kept whole."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def functions(self) -> Iterator[Function]:
        scopes: list[str] = []
        head: list[_Token] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.text == ";" or (token.text == ":" and _is_access(head)):
                head = []
            elif token.text == "}":
                scopes = scopes[:-1]
                head = []
            elif token.text == "(":
                head += [token, *self._balanced("(", ")")]
            elif token.text == "{":
                scope = _scope_name(head)
                name = _function_name(head) if scope is None else None
                if scope is not None:
                    scopes.append(scope)
                    head = []
                elif name is None or _is_initializer(head):
                    head += [token, *self._balanced("{", "}")]
                else:
                    body = self._balanced("{", "}")
                    yield _function("::".join([*filter(None, scopes), name]), [*head, token, *body])
                    head = []
            else:
                head.append(token)
            if len(head) > 2 * MAX_HEAD:
                head = head[-MAX_HEAD:]

    def _balanced(self, opening: str, closing: str) -> list[_Token]:
        """Tokens up to the bracket that closes the one just passed, that one included."""
        depth, start = 1, self._at
        while self._at < len(self._tokens) and depth:
            text = self._tokens[self._at].text
            depth += (text == opening) - (text == closing)
            self._at += 1
        return list(self._tokens[start : self._at])


def _is_access(head: Sequence[_Token]) -> bool:
    return len(head) == 1 and head[0].text in {"public", "private", "protected"}


def _outside_templates(head: Sequence[_Token]) -> list[str]:
    """The head's words without ``template <...>``."""
    texts = [token.text for token in head]
    kept: list[str] = []
    at = 0
    while at < len(texts):
        if texts[at] == "template" and at + 1 < len(texts) and texts[at + 1] == "<":
            depth = 0
            at += 1
            while at < len(texts):
                depth += (texts[at] == "<") - (texts[at] == ">")
                at += 1
                if depth == 0:
                    break
        else:
            kept.append(texts[at])
            at += 1
    return kept


def _scope_name(head: Sequence[_Token]) -> str | None:
    """Name of the namespace or class that a head opens ("" for a nameless one); None where it opens none."""
    texts = _outside_templates(head)
    if "namespace" in texts[:2]:
        return "".join(texts[texts.index("namespace") + 1 :])
    if len(texts) == 2 and texts[0] == "extern" and texts[1].startswith('"'):
        return ""
    keys = [at for at, text in enumerate(texts) if text in _CLASS_KEYS]
    if not keys or "(" in texts[keys[0] :] or "=" in texts:
        return None
    for text in texts[keys[0] + 1 :]:
        if text in {":", "final"}:
            break
        if _WORD.fullmatch(text) and text not in _CLASS_KEYS:
            return text
    return ""


def _function_name(head: Sequence[_Token]) -> str | None:
    """Qualified name before the first parameter list of a head; None where it is no function's."""
    texts = _outside_templates(head)
    at = 0
    while at < len(texts):
        if texts[at] == "=":
            return None
        if texts[at] != "(":
            at += 1
            continue
        name = _name_before(texts, at)
        if name is not None:
            return name
        depth = 0
        while at < len(texts):
            depth += (texts[at] == "(") - (texts[at] == ")")
            at += 1
            if depth == 0:
                break
    return None


def _name_before(texts: Sequence[str], at: int) -> str | None:
    if "operator" in texts[max(0, at - 3) : at]:
        start = at - 1 - texts[:at][::-1].index("operator")
        # The brackets of operator() look like its parameters.
        return "operator()" if start == at - 1 else "".join(texts[start:at])
    start = at
    while start > 0 and (
        texts[start - 1] in {"::", "~"} or (_WORD.fullmatch(texts[start - 1]) and _joins(texts, start, at))
    ):
        start -= 1
    name = "".join(texts[start:at])
    return name if _WORD.search(name) and name not in _NO_NAME else None


def _joins(texts: Sequence[str], start: int, at: int) -> bool:
    """Whether the word before `start` belongs to the name that ends at `at`."""
    return start == at or texts[start] == "::"


def _is_initializer(head: Sequence[_Token]) -> bool:
    """Whether a brace after this head initialises a member (``: a{1}``), and is no body."""
    texts = [token.text for token in head]
    depth = 0
    colon = False
    for text in texts:
        depth += (text in "({") - (text in ")}") if len(text) == 1 else 0
        colon = colon or (depth == 0 and text == ":" and ")" in texts)
    return colon and bool(texts) and _WORD.fullmatch(texts[-1]) is not None


def _function(name: str, tokens: Sequence[_Token]) -> Function:
    texts = [token.text for token in tokens]
    return Function(
        name=name,
        file=tokens[0].file,
        first_line=tokens[0].line,
        last_line=tokens[-1].line,
        digest=hashlib.sha256("\0".join(texts).encode(errors="replace")).hexdigest()[:32],
        words=frozenset(text for text in texts if _WORD.fullmatch(text)),
    )
