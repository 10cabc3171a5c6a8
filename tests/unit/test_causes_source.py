"""Two header sets, or two releases, of one addon: what differs, who is touched, what a swap writes."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator.addons import AddonPackage
from investigator.build import AddonBuild
from investigator.causes import cpp, preprocess, regions, source, swap
from investigator.causes.preprocess import UnreadableSourceError, preprocessor_command
from investigator.causes.regions import Place, SourceRegion, function_regions, header_regions
from investigator.causes.shares import Share
from investigator.causes.source import function_of_symbol, keep_source_cause, on_profile
from investigator.engine.interface import Outcome
from investigator.nodes.interface import NodeBuild
from investigator.plan import Environment, environment_id
from tests.fakes.engine import FakeEngine

MAIN = """\
#include <node.h>
#include "rows.cpp"
#if ABI >= 127
#include "bulk.cpp"
#endif

void Statement::JS_all(Info info) {
  Row row = Data::GetRow(1);
  USE(row);
}

void Statement::JS_run(Info info) { Step(); }
"""
ROWS = """\
#if !defined(ABI) || \\
    ABI < 127 // the old way
#define PUT(o, v) o.Set(v)
namespace Data {
Row GetRow(int n) { return Row(n); }
}
#else
#define PUT(o, v) o.Bulk(v)
namespace Data {
Row GetRow(int n) { return Builder(n).Build(); }
}
#endif
#define USE(o) PUT(o, 1)
"""
BULK = """\
struct Builder {
  explicit Builder(int n) : n{n} {}
  Row Build() { return Row(n); }
  int n;
};
"""
FILES = {"src/main.cpp": MAIN, "src/rows.cpp": ROWS, "src/bulk.cpp": BULK}


def preprocessed(abi: int) -> cpp.Preprocessed:
    """What ``g++ -E -dDI`` would print, by hand."""
    new = abi >= 127
    rows = (
        '# 8 "../src/rows.cpp"\n#define PUT(o,v) o.Bulk(v)\nnamespace Data {\n'
        "Row GetRow(int n) { return Builder(n).Build(); }\n}\n"
        if new
        else '# 3 "../src/rows.cpp"\n#define PUT(o,v) o.Set(v)\nnamespace Data {\n'
        "Row GetRow(int n) { return Row(n); }\n}\n"
    )
    bulk = f'# 4 "../src/main.cpp"\n#include "bulk.cpp"\n# 1 "../src/bulk.cpp" 1\n{BULK}' if new else ""
    text = (
        f'# 1 "/node/include/node/node.h" 1\n#define ABI {abi}\nvoid inline Header() {{ }}\n'
        '# 2 "../src/main.cpp"\n#include "rows.cpp"\n'
        f'{rows}# 13 "../src/rows.cpp"\n#define USE(o) PUT(o, 1)\n{bulk}'
        '# 7 "../src/main.cpp" 2\nvoid Statement::JS_all(Info info) {\n  Row row = Data::GetRow(1);\n'
        f"  row.{'Bulk' if new else 'Set'}(1);\n}}\n\nvoid Statement::JS_run(Info info) {{ Step(); }}\n"
    )
    return cpp.read_preprocessed(text, directory="/build/package/build", root="/build/package")


def found() -> dict[str, SourceRegion]:
    return {r.where: r for r in header_regions(preprocessed(115), preprocessed(127), FILES)}


# -- reading C++ --------------------------------------------------------------------------------------------


def test_functions_are_named_as_a_profile_names_them() -> None:
    text = """\
    namespace a { namespace { int free_one(int x) noexcept { return x; } } }
    namespace b::c { template <class T, int N> T *made(T t) { return new T[N]{t}; } }
    class K final : public Base<int> {
     public:
      K() : a{1}, b(2) { go(); }
      virtual ~K() override {}
      bool operator()(int x) const { return x; }
      operator bool() const { return true; }
     private:
      static void hidden();
      int table[2] = {1, 2};
    };
    void K::hidden() { auto f = [](int x) { return x; }; if (f(1)) { f(2); } }
    extern "C" { void plain(void) { const char *s = "} {"; char c = '}'; } }
    static int numbers[] = { 1, 2, 3 };
    enum class E { One, Two };
    __attribute__((used)) void marked(void) {}
    """
    names = [f.name for f in cpp.functions({"x.cpp": dict(enumerate(text.split("\n"), start=1))})]
    assert names == [
        "a::free_one",
        "b::c::made",
        "K::K",
        "K::~K",
        "K::operator()",
        "K::operatorbool",
        "K::hidden",
        "plain",
        "marked",
    ]


def test_layout_and_line_numbers_do_not_make_a_difference_but_words_do() -> None:
    def digest(text: str) -> str:
        return next(cpp.functions({"x.cpp": dict(enumerate(text.split("\n"), start=1))})).digest

    assert digest("int f(int a) { return a; }") == digest("\n\nint f(int a)\n{\n  return a;\n}")
    assert digest("int f(int a) { return a; }") != digest("int f(int a) { return -a; }")


def test_conditions_keep_their_branches_lines_and_text() -> None:
    text = "a\n#if A /* x */ && \\\n   B\nb\n  # elif C\n#else\nc\n#ifdef D\nd\n#endif\n#endif\n#if open\n"
    outer, inner = cpp.conditionals(text)
    assert (outer.line, outer.end_line, outer.text) == (2, 11, "A && B")
    assert [(b.keyword, b.condition, b.first_line, b.last_line) for b in outer.branches] == [
        ("if", "A && B", 4, 4),
        ("elif", "C", 6, 5),
        ("else", "", 7, 10),
    ]
    assert (inner.text, inner.depth) == ("defined(D)", 1)


def test_comments_and_strings_hide_no_directive_and_make_none() -> None:
    text = '/*\n#if no\n*/\nconst char *s = "/*";\n#if yes\n// #endif\n#endif\n'
    assert [c.text for c in cpp.conditionals(text)] == ["yes"]


def test_line_directives_of_generated_sources_are_blanked() -> None:
    assert cpp.without_line_directives('a\n#line 154 "./src/x.lzz"\nb\n# 3 "y"\n#define l 1\n') == (
        "a\n\nb\n\n#define l 1\n"
    )


@given(st.text(alphabet="{}()<>;:=,~#if else\n\"'\\/*abR01", max_size=400))
def test_no_text_breaks_the_reader(text: str) -> None:
    cpp.conditionals(text)
    cpp.without_comments(text)
    read = cpp.read_preprocessed(f'# 1 "/r/x.cpp"\n{text}', directory="/r", root="/r")
    assert all(1 <= f.first_line <= f.last_line <= text.count("\n") + 1 for f in read.functions)


@pytest.mark.parametrize("unit", ['R"(', '"\\"', "'\\'", "/*", "{(", "#if\n", "a::", "template<"])
def test_hostile_text_is_read_in_linear_time(unit: str) -> None:
    started = time.process_time()
    text = unit * (300_000 // len(unit))
    cpp.conditionals(text)
    cpp.read_preprocessed(f'# 1 "/r/x.cpp"\n{text}', directory="/r", root="/r")
    assert time.process_time() - started < 20  # a square would take hours


def test_comments_keep_the_number_of_lines() -> None:
    text = "a /* b\nc */ d // e\n'\\'' \"//\" f\n"
    assert cpp.without_comments(text).count("\n") == text.count("\n")
    assert cpp.without_comments(text).split("\n")[2] == "'\\'' \"//\" f"


def test_only_the_packages_own_files_count() -> None:
    text = (
        '# 1 "/usr/include/x.h"\nint a() { return 1; }\n# 1 "../node_modules/n/y.h"\nint b() { return 1; }\n'
    )
    text += '# 1 "Release/obj/gen/sqlite3/sqlite3.h"\nint c;\n# 9 "../src/z.cpp"\nint d() { return 1; }\n'
    read = cpp.read_preprocessed(text, directory="/build/package/build", root="/build/package")
    assert {f.name for f in read.functions} == {"d"}
    assert list(read.lines) == ["src/z.cpp"]


# -- two header sets ----------------------------------------------------------------------------------------


def test_a_branch_names_its_condition_lines_and_functions() -> None:
    rows = found()["src/rows.cpp:1"]
    assert rows.kind == "branch"
    assert rows.condition == "!defined(ABI) || ABI < 127"
    assert rows.baseline == Place(file="src/rows.cpp", first_line=3, last_line=6)
    assert rows.candidate == Place(file="src/rows.cpp", first_line=8, last_line=11)
    assert (rows.baseline_branch, rows.candidate_branch) == (0, 1)
    assert "Data::GetRow" in rows.functions
    assert "Row(n)" in rows.baseline_text
    assert "Builder(n)" in rows.candidate_text


def test_a_macro_carries_the_difference_to_where_it_is_used() -> None:
    rows = found()["src/rows.cpp:1"]
    assert rows.macros == ("PUT",)
    assert "Statement::JS_all" in rows.functions  # through USE, which uses PUT
    assert "Statement::JS_run" not in (*rows.functions, *rows.callers)


def test_a_file_that_one_side_includes_belongs_to_the_condition_of_its_include() -> None:
    include = found()["src/main.cpp:3"]
    assert include.baseline is None
    assert include.candidate is not None
    assert set(include.functions) == {"Builder::Builder", "Builder::Build"}
    assert "Data::GetRow" in include.callers
    assert "Statement::JS_all" in include.callers


def test_equal_sides_have_no_region() -> None:
    assert header_regions(preprocessed(127), preprocessed(127), FILES) == []


def test_a_macro_of_the_headers_is_told_as_such_and_registration_is_left_out() -> None:
    def side(body: str, abi: int) -> cpp.Preprocessed:
        text = (
            f'# 1 "/node/n.h"\n#define PROTO(o) o.{body}()\n# 1 "../a.cpp"\nvoid f(O o) {{ o.{body}(); }}\n'
        )
        text += f"void node_register_module_v{abi}() {{ }}\n"
        return cpp.read_preprocessed(text, directory="/p/build", root="/p")

    files = {"a.cpp": "void f(O o) { PROTO(o); }\nNODE_INIT() { }\n"}
    (region,) = header_regions(side("Get", 127), side("GetV2", 137), files)
    assert (region.kind, region.functions, region.macros) == ("header_macro", ("f",), ("PROTO",))
    assert region.condition is None


# -- two releases -------------------------------------------------------------------------------------------


def test_releases_are_compared_function_by_function() -> None:
    def side(text: str) -> tuple[cpp.Preprocessed, Mapping[str, str]]:
        read = cpp.read_preprocessed(f'# 1 "../a.cpp"\n{text}', directory="/p/build", root="/p")
        return read, {"a.cpp": text}

    old, old_files = side("int f() { return 1; }\nint g() { return f(); }\nint gone() { return 0; }\n")
    new, new_files = side("int f() { return 2; }\n\nint g() { return f(); }\nint come() { return 0; }\n")
    by_name = {r.functions[0]: r for r in function_regions(old, new, old_files, new_files)}
    assert set(by_name) == {"f", "gone", "come"}
    assert by_name["f"].callers == ("g",)
    assert by_name["gone"].candidate is None
    assert by_name["come"].where == "a.cpp:4"
    assert by_name["f"].candidate_text == "int f() { return 2; }"


# -- the rule -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("Statement::JS_all(v8::FunctionCallbackInfo<v8::Value> const&)", "Statement::JS_all"),
        ("void Data::Get<int, (char)3>(int) const [clone .isra.0]", "Data::Get"),
        ("(anonymous namespace)::helper(int)", "helper"),
        ("sqlite3VdbeExec", "sqlite3VdbeExec"),
        ("v8::Local<v8::Value> Data::GetRowJS(v8::Isolate*, int)", "Data::GetRowJS"),
        ("", ""),
    ],
)
def test_symbols_are_reduced_to_names(symbol: str, name: str) -> None:
    assert function_of_symbol(symbol) == name


def share(low: float | None, estimate: float = 0.9) -> Share:
    return Share(estimate=estimate, low=low, high=None if low is None else 1.1, confidence=0.97, rounds=6)


def test_a_function_itself_goes_before_its_callers() -> None:
    rows = found()["src/rows.cpp:1"]
    assert on_profile(rows, ["Statement::JS_all(Info)", "Data::GetRow(int)"]) == (
        "Data::GetRow",
        "Statement::JS_all",
    )
    include = found()["src/main.cpp:3"]
    assert on_profile(include, ["Statement::JS_all(Info)"]) == ("Statement::JS_all",)
    assert on_profile(include, ["Statement::JS_run(Info)", "malloc"]) == ()


def test_a_cause_is_kept_only_on_the_profile_and_with_half_of_the_difference() -> None:
    rows = list(found().values())
    kept = keep_source_cause(rows, ["Statement::JS_all(Info)"], share(0.78))
    assert all(cause.kept for cause in kept)
    assert kept[0].region.where == "src/rows.cpp:1"  # seen directly, not through a caller
    assert "90 % [78, 110]" in kept[0].why
    for symbols, moved, why in (
        (["Statement::JS_run(Info)"], share(0.78), "on the profile of the operation"),
        (["Statement::JS_all(Info)"], share(0.49), "moves only"),
        (["Statement::JS_all(Info)"], share(None), "too small to tell"),
        (["Statement::JS_all(Info)"], None, "no swap"),
    ):
        judged = keep_source_cause(rows, symbols, moved)
        assert not any(cause.kept for cause in judged)
        assert why in judged[0].why


# -- the preprocessor's command -----------------------------------------------------------------------------

FLAGS = (
    "g++ -o Release/obj.target/a.o ../src/a.cpp '-DNAME=a b' -D_X -I/node/include/node "
    "-I./Release/obj/gen/sqlite3 -include pre.h -fPIC -fplugin=evil.so -m64 -O3 -Wall -std=gnu++17 "
    "-std=c++20 -MMD -MF ./a.d -c"
)


def test_the_compilers_command_becomes_the_preprocessors() -> None:
    command = preprocessor_command(FLAGS, "a.cpp", {"/node": "/seen/node", "/build": "/seen/build"})
    assert command[:3] == ("g++", "-E", "-dDI")
    assert command[-1] == "../src/a.cpp"
    assert "-I/seen/node/include/node" in command
    assert "-DNAME=a b" in command
    assert command[command.index("-include") + 1] == "pre.h"
    assert not {"-o", "-c", "-MMD", "-MF", "-fplugin=evil.so", "./a.d"} & set(command)


@pytest.mark.parametrize("flags", ["g++ 'open", "g++ -c other.cpp", ""])
def test_a_command_that_cannot_be_read_is_a_reason(flags: str) -> None:
    with pytest.raises(UnreadableSourceError, match=r"a\.cpp"):
        preprocessor_command(flags, "a.cpp", {})


def test_sources_are_read_without_amalgamation_links_and_build(tmp_path: Path) -> None:
    for name in ("src/a.cpp", "build/gen.cpp", "prebuilds/x.h", "node_modules/n/n.h", "lib/index.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "src/link.cpp").symlink_to("/etc/hostname")
    (tmp_path / "big.c").write_bytes(b" " * (preprocess._SOURCE_BYTES + 1))
    assert set(preprocess.read_sources(tmp_path)) == {"src/a.cpp", "node_modules/n/n.h"}


# -- swaps --------------------------------------------------------------------------------------------------


def test_regions_on_one_condition_are_swapped_together() -> None:
    both = tuple(found().values())
    assert [len(group) for group in swap.groups(both)] == [2]
    other = SourceRegion(kind="branch", baseline=None, candidate=None, condition="V8 >= 13", condition_line=1)
    assert [len(group) for group in swap.groups((*both, other))] == [2, 1]


@pytest.mark.parametrize(("side", "first", "second"), [("baseline", 1, 0), ("candidate", 0, 1)])
def test_the_other_branch_is_made_constant_and_lines_stay(side: swap.Side, first: int, second: int) -> None:
    changed = swap.rewrite(ROWS, [found()["src/rows.cpp:1"]], side)
    assert isinstance(changed, str)
    lines = changed.split("\n")
    assert lines[0] == f"#if {first} // swapped"
    assert lines[1] == ""  # the continued line of the condition
    assert lines[6] == f"#elif {second} // swapped"
    assert len(lines) == len(ROWS.split("\n"))
    assert lines[2:6] == ROWS.split("\n")[2:6]


def test_an_include_that_one_side_lacks_is_switched_off() -> None:
    changed = swap.rewrite(MAIN, [found()["src/main.cpp:3"]], "baseline")
    assert isinstance(changed, str)
    assert changed.split("\n")[2] == "#if 0 // swapped"


def test_what_no_condition_decides_cannot_be_swapped() -> None:
    region = regions.SourceRegion(kind="header_macro", baseline=None, candidate=None, condition=None)
    no = swap.swap_patch(package(Path("/nonexistent")), [region], "baseline")
    assert isinstance(no, swap.NoSwap)
    gone = swap.rewrite("int a;\n", [found()["src/main.cpp:3"]], "baseline")
    assert isinstance(gone, swap.NoSwap)


def package(directory: Path) -> AddonPackage:
    return AddonPackage(name="better-sqlite3-multiple-ciphers", version="1.0.0", directory=directory)


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AddonPackage:
    monkeypatch.setenv("INVESTIGATE_CACHE", str(tmp_path / "cache"))
    directory = tmp_path / "npm-addon-1.0.0/package"
    for name, text in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text.rstrip("\n"))  # no line feed at the end
    (directory / "package.json").write_text('{"name": "better-sqlite3-multiple-ciphers", "version": "1.0.0"}')
    return package(directory)


def swapped_to(side: swap.Side, addon: AddonPackage, folder: Path) -> AddonPackage | swap.NoSwap:
    """The package with the rows of `side` on every Node."""
    wanted = environment("24.11.1", addon)
    planned = swap.plan_swap([found()["src/rows.cpp:1"]], "old_on_new", wanted, side, folder)
    if isinstance(planned, swap.NoSwap):
        return planned
    assert planned.environment.id != wanted.id
    assert planned.environment.addon is not None
    return planned.environment.addon


def test_a_swap_is_an_ordinary_patched_package(unpacked: AddonPackage, tmp_path: Path) -> None:
    swapped = swapped_to("baseline", unpacked, tmp_path)
    assert isinstance(swapped, AddonPackage)
    assert swapped.patch_sha256 is not None
    assert swapped.directory is not None
    assert (swapped.directory / "src/rows.cpp").read_text().startswith("#if 1 // swapped")
    assert unpacked.directory is not None
    assert (unpacked.directory / "src/rows.cpp").read_text().startswith("#if !defined")
    reverse = swapped_to("candidate", unpacked, tmp_path)
    assert isinstance(reverse, AddonPackage)
    assert reverse.patch_sha256 != swapped.patch_sha256


def test_a_source_that_changed_since_is_a_reason(unpacked: AddonPackage, tmp_path: Path) -> None:
    assert unpacked.directory is not None
    (unpacked.directory / "src/rows.cpp").write_text("int nothing;\n")
    no = swapped_to("baseline", unpacked, tmp_path)
    assert isinstance(no, swap.NoSwap)
    assert "no #if any more" in no.reason


def environment(version: str, addon: AddonPackage | None, **changes: Any) -> Environment:
    node = NodeBuild(
        version=version,
        source="npm",
        directory=Path("/nonexistent"),
        node_sha256=version,
        versions={"modules": version.partition(".")[0], "napi": "9" if version.startswith("20") else "10"},
        config_sha256="",
    )
    made = Environment(id=environment_id(node, addon, "source"), label=None, node=node, addon=addon)
    return msgspec.structs.replace(made, **changes)


def built(directory: Path, digest: str, flags: Mapping[str, str] | None = None) -> AddonBuild:
    return AddonBuild(
        key=digest,
        directory=directory,
        entry="package/lib/index.js",
        binding="x.node",
        binding_sha256=digest,
        sqlite3_object_sha256="same",
        compiler="g++",
        flags=flags or {},
        elapsed_s=0.0,
    )


def compared(
    one: Environment, other: Environment, builds: Mapping[str, AddonBuild]
) -> source.SourceComparison:
    return source.compare_sources(FakeEngine(default=Outcome(exit_code=1)), one, other, builds)


def test_what_cannot_be_compared_says_why(unpacked: AddonPackage, tmp_path: Path) -> None:
    old, new = environment("20.0.0", unpacked), environment("22.0.0", unpacked)
    assert "sources of its own" in str(compared(environment("20.0.0", None), new, {}).reason)
    assert "not built" in str(compared(old, new, {old.id: built(tmp_path, "a")}).reason)
    shipped = {old.id: built(tmp_path, "a"), new.id: built(tmp_path, "b")}
    assert "shipped binary" in str(compared(old, new, shipped).reason)
    assert compared(old, new, {old.id: built(tmp_path, "a"), new.id: built(tmp_path, "a")}).identical
    flags = {"a.cpp": FLAGS}
    (tmp_path / "package").mkdir()
    failing = {old.id: built(tmp_path, "a", flags), new.id: built(tmp_path, "b", flags)}
    assert "cannot be preprocessed for Node 20.0.0" in str(compared(old, new, failing).reason)


# -- one binary on both -------------------------------------------------------------------------------------


def test_one_binary_on_both_needs_node_api_or_one_abi(unpacked: AddonPackage, tmp_path: Path) -> None:
    napi = msgspec.structs.replace(unpacked, napi=10)
    one, other = environment("22.0.0", napi), environment("24.0.0", napi)
    builds = {one.id: built(tmp_path, "a"), other.id: built(tmp_path, "b")}
    shared = swap.shared_binary(one, other, builds)
    assert isinstance(shared, swap.BinarySwap)
    assert shared.build.binding_sha256 == "a"
    assert shared.environment.node.version == "24.0.0"
    assert shared.environment.id not in builds
    same = swap.shared_binary(one, other, {one.id: built(tmp_path, "a"), other.id: built(tmp_path, "a")})
    assert isinstance(same, swap.NoSwap)
    old = environment("20.0.0", napi)
    too_old = swap.shared_binary(one, old, builds)
    assert isinstance(too_old, swap.NoSwap)
    assert "offers Node-API 9" in too_old.reason
    v8 = environment("22.0.0", unpacked)
    no = swap.shared_binary(v8, environment("24.0.0", unpacked), {v8.id: built(tmp_path, "a")})
    assert isinstance(no, swap.NoSwap)
    assert "V8's own interface" in no.reason


def test_swaps_of_both_directions_have_environments_of_their_own(
    unpacked: AddonPackage, tmp_path: Path
) -> None:
    old, new = environment("20.0.0", unpacked), environment("22.0.0", unpacked)
    planned = swap.plan_swaps(tuple(found().values()), old, new, tmp_path)
    assert all(isinstance(swapped, swap.PathSwap) for swapped in planned)
    first, second = (swapped for swapped in planned if isinstance(swapped, swap.PathSwap))
    assert (first.direction, first.environment.node.version) == ("old_on_new", "22.0.0")
    assert (second.direction, second.environment.node.version) == ("new_on_old", "20.0.0")
    assert len({first.environment.id, second.environment.id, old.id, new.id}) == 4
    assert (tmp_path / "swap-old_on_new.patch").read_text() == first.patch
    prebuilt = environment("22.0.0", unpacked, flavor="prebuilt")
    refused = swap.plan_swaps(tuple(found().values()), prebuilt, prebuilt, tmp_path)
    assert all(isinstance(swapped, swap.NoSwap) for swapped in refused)
