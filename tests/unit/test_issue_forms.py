"""Issue texts: the form of each tracker, one screen, the whole checklist answered, nothing private."""

import html
import re

import msgspec
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from investigator.addons import AddonPackage
from investigator.operations import JS, SQLITE, Operation
from investigator.report.issue.again import rerun
from investigator.report.issue.checklist import NOT_APPLICABLE, NOT_MEASURED, checklist
from investigator.report.issue.forms import MOST_CHARACTERS, SCREEN_LINES, IssueText, compose, screen_lines
from investigator.report.issue.material import Bisected, Material, Reproduction, Reproductions
from investigator.report.issue.public import plain, source, told, without_places
from investigator.report.issue.target import Target, fit
from investigator.report.issue.words import call, does
from tests.unit import issue_synthetic as made
from tests.unit import report_synthetic as synthetic
from tests.unit.report_synthetic import HOSTILE

# Labels of nodejs/node's .github/ISSUE_TEMPLATE/1-bug-report.yml, in its order.
NODE_FORM = [
    "Version",
    "Platform",
    "Subsystem",
    "What steps will reproduce the bug?",
    "How often does it reproduce? Is there a required condition?",
    "What is the expected behavior? Why is that the expected behavior?",
    "What do you see instead?",
    "Additional information",
]
V8_QUESTIONS = [
    "What steps will reproduce the problem?",
    "What is the expected output?",
    "What do you see instead?",
    "Please use labels and text to provide additional information.",
]
TARGETS: tuple[Target, ...] = ("node", "v8", "addon")


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text)


def visible(text: str) -> str:
    """What stands outside of folds."""
    return re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL)


def tables(text: str) -> list[list[list[str]]]:
    """Cells of all tables, as a reader of the rendered page has them."""
    found: list[list[list[str]]] = []
    inside = False
    for token in parsed(text):
        if token.type in {"table_open", "table_close"}:
            inside = token.type == "table_open"
            found += [[]] if inside else []
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and inside:
            found[-1][-1].append(token.content)
    return found


def every_kind() -> list[Material]:
    known = made.material()
    return [
        known,
        made.material(made=made.REPRODUCTIONS),
        made.material("unknown"),
        made.material("gc", causes=(made.cause("v8_flag"),)),
        msgspec.structs.replace(known, flags=(made.flags(),)),
        msgspec.structs.replace(known, attribution=None, screen=None, platform=None, config=None),
        made.pure_js(),
        made.of_addons(),
    ]


def test_node_has_every_field_of_the_form_in_its_order() -> None:
    text = compose(made.material(), "node").body
    tokens = parsed(text)
    headings = [
        tokens[at + 1].content for at, t in enumerate(tokens) if t.type == "heading_open" and t.tag == "h3"
    ]
    assert headings == NODE_FORM
    for label, answer in re.findall(r"^### (.*)\n\n(.+)$", text, re.MULTILINE):
        assert answer.strip(), label
    assert "v24.11.1 (v22.21.1 does not show it)" in text
    assert "Linux 6.1.0-26-amd64" in text
    assert "v8::internal::String::WriteUtf8" in visible(text)


def test_v8_answers_the_questions_of_its_template() -> None:
    text = compose(made.material("engine"), "v8")
    assert text.document.startswith("Title: ")
    lines = text.body.splitlines()
    assert lines[0].startswith("Version: 13.6.233.10-node.28 (Node.js v24.11.1); 12.4.254.21-node.33")
    assert [line[:4] for line in lines[2:5:2]] == ["OS: ", "Arch"]
    questions = list(re.findall(r"^\*\*(.*)\*\*$", visible(text.body), re.MULTILINE))
    assert questions == V8_QUESTIONS
    assert text.body.count("<details>") == 1


def test_an_addon_gets_a_short_one_with_its_release() -> None:
    text = compose(made.material(causes=(made.cause(),)), "addon")
    assert "better-sqlite3-multiple-ciphers 12.11.1 on Node.js v24.11.1, compared with v22.21.1" in text.body
    assert "src/objects/row.cpp:10-42 moves 97 %" in visible(text.body)
    assert text.tracker.repository == "m4heshd/better-sqlite3-multiple-ciphers"
    assert screen_lines(text.body) < screen_lines(compose(made.material(), "node").body)


@pytest.mark.parametrize("target", TARGETS)
def test_at_most_a_screen_before_the_folds(target: Target) -> None:
    for material in every_kind():
        text = compose(material, target).document
        before, fold, _ = text.partition("<details>")
        assert fold
        assert len(before.splitlines()) <= SCREEN_LINES
        assert screen_lines(text) <= SCREEN_LINES


@pytest.mark.parametrize("target", TARGETS)
def test_tables_and_folds_render(target: Target) -> None:
    for material in every_kind():
        text = compose(material, target).document
        for table in tables(text):
            assert len({len(row) for row in table}) == 1, table[0]
        assert text.count("<details>") == text.count("</details>") == text.count("<summary>")
        opened = [line for line in text.splitlines() if line.startswith("<details")]
        assert set(opened) == {"<details>"}
        # Markdown inside of a fold begins after a blank line, or GitHub shows it as it is.
        assert all(
            re.match(r"</summary>\n\n", part) for part in re.findall(r"</summary>\n.", text, re.DOTALL)
        )


def test_title_says_operation_size_and_versions() -> None:
    title = compose(made.material(), "node").title
    assert title.startswith("better-sqlite3-multiple-ciphers: binding a string of 10,000 ASCII characters ")
    assert title.endswith(" takes 2.2 times as long on v24.11.1 as on v22.21.1 (bind_text_ascii_10k, +116 %)")
    small = compose(made.material(change=24.0), "v8").title
    sides = "on V8 13.6 (Node.js v24.11.1) than on V8 12.4 (Node.js v22.21.1)"
    assert small.endswith(f"takes 24.0 % longer {sides} (bind_text_ascii_10k)")
    assert "takes 54.0 % less time on" in compose(made.material(change=-54.0), "node").title
    by_addon = compose(made.of_addons(), "addon").title
    assert "on better-sqlite3-multiple-ciphers 13.0.3 as on 12.11.1" in by_addon
    assert by_addon.endswith("(bind_text_ascii_10k, +116 %, Node.js v22.21.1)")


def test_the_figures_are_those_of_the_run() -> None:
    (result, *_) = tables(compose(made.material(), "node").body)
    assert result[0] == ["", "v22.21.1", "v24.11.1", "change", "98.4 % interval"]
    assert result[1] == ["time per call", "4.64 µs", "10.0 µs", "+116 %", "+111 to +120"]
    assert result[3][0] == "v22.21.1 against itself (noise)"
    assert result[3][3:] == ["+0.1 %", "-0.5 to +0.7"]
    raw = next(t for t in tables(compose(made.material(), "node").body) if t[0][0] == "round")
    assert raw[0] == ["round", "v22.21.1", "v22.21.1 again", "v24.11.1", "v24.11.1 again"]
    assert raw[1] == ["1", "4,637.0", "4,637.0", "9,997.4", "9,997.4"]
    assert raw[8][2] == "-"


@pytest.mark.parametrize("number", range(8))
def test_every_line_of_the_checklist_is_answered(number: int) -> None:
    material = every_kind()[number]
    (table,) = tables(checklist(material))
    assert [row[0] for row in table[1:]] == [str(n) for n in range(1, 15)]
    for row in table[1:]:
        assert len(row[2]) > 10, row
        if row[2].startswith(NOT_APPLICABLE):
            assert row[2].startswith(f"{NOT_APPLICABLE}: ")
        # What was not measured comes with what would measure it, or with the reason why nothing could.
        if NOT_MEASURED in row[2]:
            assert "`" in row[2] or "no fix build" in row[2] or "no second process" in row[2], row


def test_answers_follow_the_evidence() -> None:
    def answers(material: Material) -> list[str]:
        return [row[2] for row in tables(checklist(material))[0]]

    plain_answers = answers(made.material())
    assert plain_answers[1].startswith(NOT_MEASURED)
    assert plain_answers[4].startswith("16 and 16 independent processes, interleaved in 8 rounds")
    assert "v22.21.1 against itself in the same rounds: +0.1 % (-0.5 to +0.7)" in plain_answers[5]
    assert (
        "investigate bisect --good 22.21.1 --bad 24.11.1 --op bind_text_ascii_10k --addon" in plain_answers[6]
    )
    assert plain_answers[8].startswith(NOT_MEASURED)
    assert plain_answers[11].startswith("none that moves half")
    assert plain_answers[14] == "2 tested and rejected: see Causes"
    better = answers(
        msgspec.structs.replace(
            made.material(causes=(made.cause(),), made=made.REPRODUCTIONS), flags=(made.flags(),)
        )
    )
    assert better[1].startswith("made and run on both versions: a V8 addon of 40 lines: 2.15 times")
    assert "not shown by the statement through node:sqlite (+2.0 %)" in better[1]
    assert better[8] == "see V8 flags"
    assert "moves 97 %" in better[11]
    assert answers(made.pure_js())[3].startswith(NOT_APPLICABLE)
    few = msgspec.structs.replace(made.material().published.candidate, processes=8)
    fewer = msgspec.structs.replace(made.material().published, candidate=few)
    said = answers(msgspec.structs.replace(made.material(), published=fewer))[4]
    assert "fewer than ten" in said


def test_what_could_not_be_built_is_said() -> None:
    material = msgspec.structs.replace(made.material(), failed=(made.OLD.id,))
    assert "Could not be built: v20.19.5." in compose(material, "node").body
    assert "Could not be built" not in compose(made.material(), "node").body


def test_a_bisection_fills_the_interval() -> None:
    found = Bisected(last_good="23.11.1", first_bad="24.0.0", text="24.0.0 is the first bad")
    text = compose(msgspec.structs.replace(made.material(), bisected=found), "node")
    assert "Releases: 24.0.0 is the first bad." in visible(text.body)
    assert "investigate bisect" not in text.body
    assert text.missing == ("investigate repro RUN --op bind_text_ascii_10k",)
    assert text.fixed == ""


def test_a_fix_that_is_out_already_is_told() -> None:
    found = Bisected(first_fixed="24.19.0", fixed_text="24.19.0 is the first fixed")
    text = compose(msgspec.structs.replace(made.material(), bisected=found), "node")
    assert text.fixed == "24.19.0"
    assert "first bad release measured: v24.11.1" in visible(text.body)
    assert "; 24.19.0 is the first fixed." in visible(text.body)
    assert "investigate bisect" in text.body
    assert "24.19.0 is good again by bisection" in text.body


def test_a_layer_that_is_not_known_is_said_once() -> None:
    body = compose(made.material("unknown"), "node").body
    assert body.count("layer is not known") == 1
    assert "Where:" not in body
    assert "- Where: native boundary (both methods put it there" in compose(made.material(), "node").body


def field(text: str, label: str) -> str:
    return text.split(f"### {label}\n")[1].split("\n### ", maxsplit=1)[0]


def test_a_reproduction_stands_in_its_field_with_what_it_printed() -> None:
    known = made.material(made=made.REPRODUCTIONS)
    steps = field(compose(known, "node").body, "What steps will reproduce the bug?")
    assert "addon.cc (40 lines)" in steps
    assert "// line 39" in steps
    assert "With each version: `npx node-gyp rebuild && node snippet.mjs`." in visible(steps)
    assert "2.15 times, the finding is 2.16 times." in visible(steps)
    assert "ratio 2.15" in visible(steps)
    with_addon = field(compose(known, "addon").body, "How to see it")
    assert "better-sqlite3-multiple-ciphers" in with_addon
    assert "npm install better-sqlite3-multiple-ciphers@12.11.1 && node real.mjs" in with_addon


def test_a_program_can_be_copied_out_of_the_text() -> None:
    program = "const f = (x) => {\n  if (x) {\n\treturn `${x}`;\n  }\n\n  return '```';\n};\n"
    shown = source("a.mjs", program)
    (token,) = parsed(shown)
    assert token.info == "js"
    assert token.content == program
    assert parsed(source("x|y", "\x1b[31m a\x00"))[0].content == "[31m a\n"
    long = msgspec.structs.replace(made.SNIPPET, files=(("long.mjs", "x();\n" * 10_000),))
    text = compose(made.material(made=Reproductions(shipped=(long,), not_shown=(), not_run=())), "node").body
    assert "`long.mjs` has 10,000 lines: too long for here" in visible(text)


def test_without_a_reproduction_that_is_said() -> None:
    none = compose(made.material(), "node").body
    assert "investigate repro RUN --op bind_text_ascii_10k" in visible(none)
    useless = Reproductions(shipped=(), not_shown=("snippet in JavaScript (+0.3 %)",), not_run=("x",))
    text = compose(made.material(made=useless), "node")
    steps = visible(field(text.body, "What steps will reproduce the bug?"))
    assert "not showing it in its whole size: snippet in JavaScript (+0.3 %)." in steps
    assert not any("investigate repro" in command for command in text.missing)
    failed = compose(made.material(made=Reproductions(shipped=(), not_shown=(), not_run=("x",))), "node")
    assert "could not be run on the machine below" in visible(failed.body)
    assert any("investigate repro" in command for command in failed.missing)
    assert "what was made could not be run" in failed.body


def test_an_unknown_layer_is_said() -> None:
    for target in TARGETS:
        text = compose(made.material("unknown"), target)
        assert text.warning is None
        assert "layer is not known" in visible(text.body)


@pytest.mark.parametrize(
    ("material", "fits"),
    [
        (made.material("boundary"), {"node", "v8", "addon"}),
        (made.material("engine"), {"v8"}),
        (made.material("gc"), {"v8"}),
        (made.material("native_core"), {"addon"}),
        (made.material("os"), {"node"}),
        (made.material("boundary", causes=(made.cause(),)), {"addon"}),
        (made.material("native_core", causes=(made.cause("build"),)), {"addon"}),
        (made.material("mixed"), {"node", "v8", "addon"}),
        (made.pure_js(), {"v8"}),
        (made.of_addons(), {"addon"}),
    ],
)
def test_the_tracker_fits_the_layer(material: Material, fits: set[str]) -> None:
    assert {target for target in TARGETS if fit(target, material).fits} == fits
    for target in TARGETS:
        text = compose(material, target)
        assert (text.warning is None) == (target in fits)
        against = "**The evidence speaks against this tracker.**"
        assert (against in visible(text.body)) == (target not in fits)


def test_node_sqlite_belongs_to_node() -> None:
    package = AddonPackage(name="node:sqlite", version="", kind="node:sqlite", encrypted=False)
    known = made.material("native_core")
    both = [
        msgspec.structs.replace(
            side, environment=msgspec.structs.replace(side.environment, addon=package), build=None
        )
        for side in (known.published.baseline, known.published.candidate)
    ]
    found = msgspec.structs.replace(known.published, baseline=both[0], candidate=both[1])
    material = msgspec.structs.replace(known, published=found)
    assert {t for t in TARGETS if fit(t, material).fits} == {"node"}
    assert "### Subsystem\n\nsqlite\n" in compose(material, "node").body


# -- nothing hostile, nothing private -----------------------------------------------------------------------


def hostile() -> Material:
    """Every text that somebody else writes is markup, mentions, control characters, and far too long."""
    text = f"{HOSTILE} </details></summary> GH-7 @nodejs/v8 " + "x" * 1_000_000
    known = made.material(made=made.REPRODUCTIONS)
    pair = msgspec.structs.replace(known.published.comparison, op=text)
    environment = msgspec.structs.replace(made.HIGH, label=text, node_flags=(text,))
    node = msgspec.structs.replace(
        environment.node, version=text, versions={text: text, "v8": text}, label=text
    )
    environment = msgspec.structs.replace(environment, node=node)
    assert known.published.candidate.build is not None
    build = msgspec.structs.replace(
        known.published.candidate.build,
        compiler=text,
        flags={text: f"cc -D{text}"},
        sqlite3_object_sha256=text,
    )
    candidate = msgspec.structs.replace(known.published.candidate, environment=environment, build=build)
    published = msgspec.structs.replace(known.published, comparison=pair, candidate=candidate)
    host = msgspec.structs.replace(
        synthetic.HOST, **dict.fromkeys(("cpu_model", "kernel", "libc", "governor"), text)
    )
    found = msgspec.structs.replace(
        made.attribution("boundary", (msgspec.structs.replace(made.cause("v8_flag"), text=text),)),
        reason=text,
        rejected=(text,) * 5,
        changed=(text,) * 5,
        warnings=(text,),
        symbols=(msgspec.structs.replace(made.attribution().symbols[0], name=text),),
    )
    return msgspec.structs.replace(
        known,
        published=published,
        attribution=found,
        host=host,
        platform=msgspec.structs.replace(made.PLATFORM, uname=text, memory_limit=text),
        engine={text: text},
        addon_versions={text: text},
        reproductions=Reproductions(
            shipped=(
                Reproduction(
                    name=text,
                    title=text,
                    files=((text, f"```\n{text}\n```"), ("x", text)),
                    command=text,
                    printed=f"~~~\n```\n{text}",
                    reason=text,
                    dependency_free=True,
                ),
            ),
            not_shown=(text,),
            not_run=(text,),
        ),
    )


def inline_text(text: str) -> str:
    """What GitHub looks for mentions and references in: rendered text that is no code."""
    parts: list[str] = []
    for token in parsed(text):
        parts += [child.content for child in token.children or () if child.type == "text"]
    return "\n".join(parts)


@pytest.mark.parametrize("target", TARGETS)
def test_hostile_texts_are_harmless(target: Target) -> None:
    text = compose(hostile(), target)
    assert len(text.body) < 65_536
    assert len(text.title) < 256
    assert "\n" not in text.title
    tags = set(
        re.findall(r"<[^>`\s]+>", "".join(t.content for t in parsed(text.document) if t.type == "html_block"))
    )
    assert tags <= {"<details>", "</details>", "<summary>", "</summary>"}
    assert {
        c.content for t in parsed(text.document) for c in t.children or () if c.type == "html_inline"
    } <= {
        "<code>",
        "</code>",
    }
    shown = inline_text(text.document)
    assert not re.search(r"(?<![\w`])@[A-Za-z]|#[0-9]|\bGH-[0-9]|https?://evil", shown)
    links = [c for t in parsed(text.document) for c in t.children or () if c.type in {"link_open", "image"}]
    assert links == []
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066]", text.document)
    assert screen_lines(text.document) <= SCREEN_LINES
    for table in tables(text.document):
        assert len({len(row) for row in table}) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_private_is_in_the_text(target: Target) -> None:
    for material in every_kind():
        said = "see /home/alice/x, /Users/bob/y, /root/z, C:\\Users\\carol\\w and https://me:secret@host.example/node"
        found = (
            None
            if material.attribution is None
            else msgspec.structs.replace(material.attribution, warnings=(said,))
        )
        text = html.unescape(compose(msgspec.structs.replace(material, attribution=found), target).document)
        for private in ("alice", "bob", "/root/", "carol", "secret", "/home/", "/Users/"):
            assert private not in text, private


def test_places_and_credentials_go() -> None:
    assert without_places("/home/alice/src/x.cc:3 and /root/.cache") == "~/src/x.cc:3 and ~/.cache"
    assert without_places("dist:https://u:p@mirror.example/d") == "dist:https://mirror.example/d"
    assert without_places("in /tmp/investigate-x1/run") == "in TMP"
    assert without_places("v8::Root /rooted") == "v8::Root /rooted"
    assert told("@root GH-12 #3 |x|") == "@\u200broot GH-\u200b12 \\#\u200b3 &#124;x&#124;"
    assert plain("a @b #1\n") == "a @\u200bb #\u200b1"


def about(name: str, *, group: str = "") -> Material:
    """A finding of another operation."""
    known = made.material()
    operation = Operation(name=name, family="sqlite", module="x.mjs", group=group)
    plan = msgspec.structs.replace(known.plan, operations=(operation,))
    pair = msgspec.structs.replace(known.published.comparison, op=name)
    return msgspec.structs.replace(
        known, plan=plan, published=msgspec.structs.replace(known.published, comparison=pair)
    )


def test_every_operation_is_told_in_words() -> None:
    for operation in (*SQLITE, *JS):
        material = about(operation.name)
        assert not does(material, operation.name).startswith("a call of"), operation.name
        assert call(material), operation.name


def test_an_operation_of_the_user_s_is_not_taken_for_ours() -> None:
    assert does(about("mine"), "mine") == "a call of the workload mine"
    namesake = about("select_range", group="workload:select_range")
    assert does(namesake, "select_range") == "a call of the workload select_range"
    assert call(namesake) == ""
    assert " --ops none" in rerun(namesake)
    assert "probe addon" in does(about("row_bulk_50x4"), "row_bulk_50x4")


def test_a_text_too_long_for_github_says_what_it_left_out() -> None:
    many = {f"key_{number}": "x" * 60 for number in range(2_000)}
    known = made.material()
    node = msgspec.structs.replace(made.HIGH.node, versions={**made.HIGH.node.versions, **many})
    environment = msgspec.structs.replace(made.HIGH, node=node)
    candidate = msgspec.structs.replace(known.published.candidate, environment=environment)
    long = msgspec.structs.replace(
        known, published=msgspec.structs.replace(known.published, candidate=candidate)
    )
    text: IssueText = compose(long, "node")
    assert len(text.body) < MOST_CHARACTERS + 1_000
    assert "Left out for its length: Environment" in text.body


def test_commands_can_be_typed_by_others() -> None:
    known = made.material()
    assert rerun(known) == (
        "investigate sqlite --versions 22.21.1,24.11.1 --addon better-sqlite3-multiple-ciphers@12.11.1 "
        "--ops bind_text_ascii_10k"
    )
    node = msgspec.structs.replace(made.HIGH.node, source="path")
    own = msgspec.structs.replace(made.HIGH, node=node)
    versions = ("20", "22", "fix=path:/home/alice/out")
    plan = synthetic.plan(made.OLD, made.LOW, own)
    plan = msgspec.structs.replace(plan, spec=msgspec.structs.replace(plan.spec, versions=versions))
    candidate = msgspec.structs.replace(known.published.candidate, environment=own)
    found = msgspec.structs.replace(known.published, candidate=candidate)
    mine = msgspec.structs.replace(known, plan=plan, published=found, others=())
    assert "--versions 22.21.1,fix=path:/home/alice/out " in rerun(mine)
    assert "fix=path:~/out" in compose(mine, "node").body
    by_addon = made.of_addons()
    assert rerun(by_addon).startswith("investigate sqlite --versions 22.21.1 --axis addon --addon ")
    assert rerun(by_addon).endswith(
        "@12.11.1,better-sqlite3-multiple-ciphers@13.0.3 --ops bind_text_ascii_10k"
    )
