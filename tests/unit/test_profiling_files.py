"""What profilers work on: ELF symbols, perf's records, V8's log; addresses to named stacks."""

import struct
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from investigator.elf import read_symbols
from investigator.engine.interface import Mount
from investigator.profiling.demangle import demangle, nested_name
from investigator.profiling.memory import Mapping, Memory, read_maps
from investigator.profiling.repair import Mender, is_call
from investigator.profiling.samples import Sample, UnusableError, Window, in_windows, lost
from investigator.profiling.stacks import Frame, Stack
from investigator.profiling.symbols import STRIPPED_ADDON, KernelSymbols, RawStack, Symbolizer
from investigator.profiling.v8log import ANCHOR, Code, CodeMap, read_log
from tests.fakes.elf_file import FILE, FUNC, TEXT_ADDRESS, TEXT_OFFSET, elf, record, sample

WRITE = "_ZN2v88internal6String9WriteUtf8EPNS0_7IsolateE"
ALWAYS = [Window(0, 1 << 60)]
PID = 4711


# -- ELF --------------------------------------------------------------------------------------------------


def test_functions_are_found_by_address_and_belong_to_the_file_before_them(tmp_path: Path) -> None:
    path = tmp_path / "addon.node"
    path.write_bytes(
        elf(
            [
                ("sqlite3.c", FILE, 0, 0),
                ("sqlite3VdbeExec", FUNC, TEXT_ADDRESS, 0x100),
                ("better_sqlite3.cpp", FILE, 0, 0),
                ("_ZN9Statement6JS_getEv", FUNC, TEXT_ADDRESS + 0x200, 0x50),
                ("_init", FUNC, TEXT_ADDRESS + 0x300, 0),
            ]
        )
    )
    table = read_symbols(path)
    assert table.complete
    assert table.find(TEXT_ADDRESS + 0xFF) == ("sqlite3VdbeExec", True)
    assert table.find(TEXT_ADDRESS + 0x100) is None
    assert table.find(TEXT_ADDRESS - 1) is None
    assert table.find(TEXT_ADDRESS + 0x200) == ("_ZN9Statement6JS_getEv", False)
    assert table.find(TEXT_ADDRESS + 0x300) is None
    assert table.address_of(0x1234) == 0x401234
    assert table.function_names() == {"sqlite3VdbeExec", "_ZN9Statement6JS_getEv"}


def test_a_stripped_binary_has_an_incomplete_table(tmp_path: Path) -> None:
    path = tmp_path / "stripped.node"
    path.write_bytes(elf([("exported", FUNC, TEXT_ADDRESS, 8)], stripped=True))
    table = read_symbols(path)
    assert not table.complete
    assert table.find(TEXT_ADDRESS) == ("exported", False)


@given(st.data())
def test_a_damaged_binary_is_a_table_and_never_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    image = bytearray(elf([("sqlite3.c", FILE, 0, 0), ("f", FUNC, TEXT_ADDRESS, 8)]))
    for _ in range(data.draw(st.integers(1, 6))):
        image[data.draw(st.integers(0, len(image) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(image[: data.draw(st.integers(0, len(image)))])
    table = read_symbols(path)
    table.find(TEXT_ADDRESS)
    table.address_of(0x1000)
    assert len(table.addresses) == len(table.names) == len(table.core)


def test_what_is_no_binary_has_no_functions(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"hello" * 100)
    for path in (tmp_path / "text", tmp_path, tmp_path / "missing", Path("/dev/zero")):
        assert len(read_symbols(path).addresses) == 0


# -- perf's records ---------------------------------------------------------------------------------------

KERNEL_MARK, USER_MARK = (1 << 64) - 128, (1 << 64) - 512


def test_only_what_was_sampled_inside_the_windows_counts() -> None:
    kernel = 0xFFFFFFFF81000000
    main = [
        sample(PID, PID, 99, [USER_MARK, 0x1]),
        sample(PID, PID, 100, [KERNEL_MARK, kernel, USER_MARK, 0x1500], stack_at=0x7000, words=(1, 2)),
        record(2, struct.pack("<QQ", 0, 17)),
        sample(PID, PID, 250, [USER_MARK, 0x1]),
        record(13, struct.pack("<Q", 3)),
        record(5, bytes(24)),
        sample(PID, PID, 400, [USER_MARK, 0x1600]),
    ]
    records = {PID: b"".join(main), PID + 2: sample(PID, PID + 2, 150, [USER_MARK, 0x1700])}
    assert list(in_windows(records, PID, [Window(100, 200), Window(300, 400)])) == [
        Sample(main=True, chain=(kernel, 0x1500), stack_at=0x7000, stack=struct.pack("<QQ", 1, 2)),
        Sample(main=True, chain=(0x1600,), stack_at=0, stack=b""),
        Sample(main=False, chain=(0x1700,), stack_at=0, stack=b""),
    ]
    assert lost(records) == 20


@pytest.mark.parametrize(
    "data",
    [
        record(9, bytes(8) + struct.pack("<IIQQ", PID, PID, 5, 1 << 40)),
        record(9, bytes(8) + struct.pack("<IIQQ", PID, PID, 5, 0)),
        b"\x09\0\0\0\0\0\x03\0",
        b"\x09\0\0\0\0\0\xff\0",
    ],
)
def test_damaged_records_are_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(UnusableError, match="damaged"):
        list(in_windows({PID: data}, PID, ALWAYS))


# -- chains that libc has cut -----------------------------------------------------------------------------

STUB, ALLOCATE, CALLER, OUTER = TEXT_ADDRESS + 0x800, TEXT_ADDRESS, TEXT_ADDRESS + 0x100, TEXT_ADDRESS + 0x200
BASE, LIBC = 0x7FFF0000, 0x7F0000000010


def call(at: int, target: int) -> dict[int, bytes]:
    """A call instruction that returns to `at`."""
    return {at - 5: b"\xe8" + struct.pack("<i", target - at)}


def mender(tmp_path: Path, machine: str = "x86_64") -> Mender:
    """A binary in which `ALLOCATE` and `CALLER` call: libc through a stub, and each other."""
    (tmp_path / "bin").mkdir()
    functions = [
        ("Allocate", FUNC, ALLOCATE, 0x80),
        ("Caller", FUNC, CALLER, 0x80),
        ("Outer", FUNC, OUTER, 0x80),
    ]
    code = call(ALLOCATE + 0x20, STUB) | call(CALLER + 0x20, ALLOCATE) | call(OUTER + 0x20, CALLER)
    (tmp_path / "bin/node").write_bytes(elf(functions, code=code | {OUTER + 0x70: b"\x90" * 16}))
    memory = Memory(
        [
            Mapping(TEXT_ADDRESS, TEXT_ADDRESS + 0x10000, TEXT_OFFSET, "/node/bin/node"),
            Mapping(LIBC - 0x10, LIBC + 0x10000, 0, "/lib/libc.so.6"),
        ],
        [Mount(source=tmp_path, target=PurePosixPath("/node"))],
    )
    return Mender(memory, machine=machine)


def cut(chain: tuple[int, ...], words: tuple[int, ...]) -> Sample:
    return Sample(main=True, chain=chain, stack_at=BASE, stack=struct.pack(f"<{len(words)}Q", *words))


IN_ALLOCATE, IN_CALLER, IN_OUTER = ALLOCATE + 0x20, CALLER + 0x20, OUTER + 0x20
# libc has saved the frame pointer of `Allocate` (word 6) at word 2; a stale return address lies at word 1.
WORDS = (7, IN_CALLER, BASE + 6 * 8, 9, IN_ALLOCATE, 1, BASE + 8 * 8, IN_CALLER, 0, IN_OUTER, 5)


def test_a_chain_that_malloc_has_cut_goes_on_from_the_stack(tmp_path: Path) -> None:
    assert mender(tmp_path).chain(cut((LIBC, 0xDEAD), WORDS)) == (LIBC, IN_ALLOCATE, IN_CALLER, IN_OUTER)


def test_where_the_frame_pointer_is_good_only_the_caller_is_put_in(tmp_path: Path) -> None:
    kernel = 0xFFFFFFFF81000000
    mend = mender(tmp_path)
    words = (7, IN_ALLOCATE, 1, BASE, IN_CALLER)
    mended = mend.chain(cut((kernel, LIBC, IN_CALLER, 0x5), words))
    assert mended == (kernel, LIBC, IN_ALLOCATE, IN_CALLER, 0x5)
    # `Allocate` has jumped into libc: its caller is all there is.
    assert mend.chain(cut((LIBC, IN_CALLER, IN_OUTER), WORDS[5:])) == (LIBC, IN_CALLER, IN_OUTER)


def test_a_stub_of_the_linker_has_no_frame_of_its_own(tmp_path: Path) -> None:
    words = (IN_ALLOCATE, 1, 2, IN_CALLER)
    assert mender(tmp_path).chain(cut((STUB, IN_CALLER), words)) == (STUB, IN_ALLOCATE, IN_CALLER)


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        ((IN_ALLOCATE, 0xDEAD), WORDS),
        ((LIBC, 0xDEAD), (1, 2, 3)),
        ((LIBC, 0xDEAD), ()),
        ((0xFFFFFFFF81000000,), WORDS),
    ],
)
def test_what_cannot_be_mended_stays(tmp_path: Path, chain: tuple[int, ...], words: tuple[int, ...]) -> None:
    assert mender(tmp_path).chain(cut(chain, words)) == chain


def test_frames_that_go_round_in_a_circle_end(tmp_path: Path) -> None:
    words = (BASE + 3 * 8, IN_ALLOCATE, 0, BASE + 3 * 8, IN_CALLER, 0)
    assert mender(tmp_path).chain(cut((LIBC, 0xDEAD), words)) == (LIBC, IN_ALLOCATE, IN_CALLER)


def test_on_other_processors_nothing_is_mended(tmp_path: Path) -> None:
    assert mender(tmp_path, "aarch64").chain(cut((LIBC, 0xDEAD), WORDS)) == (LIBC, 0xDEAD)


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=40), st.integers(0, (1 << 64) - 1))
def test_any_stack_is_taken(tmp_path_factory: pytest.TempPathFactory, words: list[int], second: int) -> None:
    mended = mender(tmp_path_factory.mktemp("any")).chain(cut((LIBC, second), tuple(words)))
    assert mended[0] == LIBC


@pytest.mark.parametrize(
    ("code", "is_one"),
    [
        ("9090e800000000", True),
        ("909090909041ffd2", True),  # call *%r10
        ("90909090ff15aabbccdd", True),  # call *disp(%rip)
        ("9090909090ff5008", True),  # call *8(%rax)
        ("9090ff9010000000", True),  # call *16(%rax)
        ("90909090ff542408", True),  # call *8(%rsp)
        ("ff942410000000", True),
        ("909090909090ff", False),
        ("90909090909090", False),
        ("9090909090ffe0", False),  # jmp *%rax
    ],
)
def test_calls_are_known_by_their_bytes(code: str, is_one: bool) -> None:
    assert is_call(bytes.fromhex(code)[-7:]) is is_one


# -- V8's log ---------------------------------------------------------------------------------------------

LOG = """\
v8-version,13,6,233,10,-node.28,0
shared-library,/node/bin/node,0x400000,0x500000,0
code-creation,JS,13,315274,0x7000,256,run file:///fixtures/a/select.mjs?operation=0:37:10,0x1c,o*
code-creation,JS,11,300,0x7200,256,step file:///fixtures/w/guard.mjs:19:21,0x1d,^
code-creation,RegExp,3,62059,0x7400,16,a\\x2Cb;c
code-creation,Eval,9,41305,0x8000,5, investigate_anchor:1:1,0x66,~
code-move,0x7200,0x7800
tick,0x7f01,500,1,0x450000,6,0x7010,+0x200
tick,0x7f02,600,0,0x0,1,overflow
nonsense
tick,what,1
code-creation,JS,1,2,0x7900,-5,f,0,*
"""


def test_a_log_tells_code_samples_and_the_anchor() -> None:
    log = read_log(LOG.splitlines())
    assert log.codes.find(0x70FF) == "JS:*run select.mjs:37:10"
    assert log.codes.find(0x7100) is None
    assert log.codes.find(0x7810) == "JS:^step guard.mjs:19:21"
    assert log.codes.find(0x7400) == "RegExp:a,b,c"
    assert log.codes.find(0x7900) is None
    assert [(t.time_us, t.callback, t.state) for t in log.ticks] == [
        (500, 0x450000, "api"),
        (600, 0, "collector"),
    ]
    assert log.ticks[0].frames == (0x7010, 0x7210)
    assert log.libraries[0].path == "/node/bin/node"
    assert log.anchor_us == 41305
    assert ANCHOR in (log.codes.find(0x8000) or "")


@given(st.lists(st.text(alphabet="codetickm-rae,0x1f~*+\\ ", max_size=60), max_size=20))
def test_a_log_may_hold_anything(lines: list[str]) -> None:
    read_log(lines)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 50)), max_size=40))
def test_the_code_that_came_last_is_found(pieces: list[tuple[int, int]]) -> None:
    codes, truth = CodeMap(), dict[int, str]()
    for number, (start, size) in enumerate(pieces):
        for address, name in list(truth.items()):
            # A piece goes as a whole when a part of its room is used again.
            first, last = (int(part) for part in name.split(":")[1].split("-"))
            if first < start + size and start < last:
                del truth[address]
        name = f"{number}:{start}-{start + size}"
        truth |= dict.fromkeys(range(start, start + size), name)
        codes.add(Code(start, start + size, name))
    assert {address: codes.find(address) for address in range(260) if codes.find(address)} == truth


# -- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        (WRITE, "v8::internal::String::WriteUtf8"),
        ("_ZN2v86String9Utf8ValueC1EPNS_7IsolateENS_5LocalINS_5ValueEEE", "v8::String::Utf8Value::Utf8Value"),
        ("_ZN4node12_GLOBAL__N_14loopEv", "node::(anonymous namespace)::loop"),
        ("_ZNK2v88internal10JsonParserIhE5ParseEv", "v8::internal::JsonParser::Parse"),
        ("_Z4mainv", "main"),
        ("_Z", "_Z"),
        ("_ZN", "_ZN"),
        ("_ZN99999999999999999999x", "x"),
    ],
)
def test_mangled_names_can_be_read_without_any_program(mangled: str, name: str) -> None:
    assert nested_name(mangled) == name


def test_clones_carry_the_name_of_their_function(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        "balance.part.0": "balance",
        "pcache1Fetch.constprop.0": "pcache1Fetch",
        WRITE: nested_name(WRITE),
    }
    assert demangle([*expected]) == expected
    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert demangle([*expected]) == expected


@given(st.text(alphabet="_ZNK0123456789StEICLv", max_size=60))
def test_any_mangled_name_gives_some_name(name: str) -> None:
    assert nested_name("_Z" + name)


def test_the_kernel_is_named_by_its_own_list() -> None:
    kernel = KernelSymbols(
        ["ffffffff81000100 T do_syscall_64", "ffffffff81000000 t a [m]", "0000 t hidden", "x"]
    )
    assert kernel.find(0xFFFFFFFF81000180) == "do_syscall_64"
    assert kernel.find(0xFFFFFFFF80000000) is None


# -- addresses to stacks ----------------------------------------------------------------------------------


def symbolizer(tmp_path: Path, *, stripped: bool = False) -> Symbolizer:
    node, addon = tmp_path / "host-node", tmp_path / "host-addon"
    (node / "bin").mkdir(parents=True)
    addon.mkdir()
    (node / "bin/node").write_bytes(elf([(WRITE, FUNC, TEXT_ADDRESS, 0x100)]))
    (addon / "better.node").write_bytes(
        elf(
            [("Bind", FUNC, TEXT_ADDRESS, 0x100), ("walFind.part.0", FUNC, TEXT_ADDRESS + 0x100, 0x100)],
            stripped=stripped,
        )
    )
    codes = CodeMap()
    codes.add(Code(0x30000, 0x30100, "JS:*run"))
    memory = Memory(
        [
            Mapping(0x30000, 0x50000, 0, "//anon"),
            Mapping(0x10000, 0x12000, 0x1000, "/node/bin/node"),
            Mapping(0x20000, 0x22000, 0x1000, "/addon/better.node"),
            Mapping(0x40000, 0x41000, 0x1000, "/usr/lib/libc.so.6"),
            Mapping(0x60000, 0x61000, 0, "[vdso]"),
        ],
        [
            Mount(source=node, target=PurePosixPath("/node")),
            Mount(source=addon, target=PurePosixPath("/addon")),
        ],
    )
    return Symbolizer(memory, codes, core={"walFind"})


def test_addresses_become_frames_of_their_place(tmp_path: Path) -> None:
    raw = RawStack("main", (0x10010, 0x20010, 0x20110, 0x30010, 0x30200, 0x40020, 0x60010, 0x90000))
    (named,) = symbolizer(tmp_path).stacks({raw: 3}).items()
    assert named == (
        Stack(
            "main",
            (
                Frame("unknown", "[unknown]"),
                Frame("libc", "[vdso]"),
                Frame("libc", "[libc.so.6]"),
                Frame("js", "[generated code]"),
                Frame("js", "JS:*run"),
                Frame("core", "walFind"),
                Frame("addon", "Bind"),
                Frame("node", "v8::internal::String::WriteUtf8"),
            ),
        ),
        3,
    )


def test_a_mapping_inside_another_leaves_both_ends_of_it(tmp_path: Path) -> None:
    names = symbolizer(tmp_path)
    # libc was mapped into the middle of V8's room for code.
    stacks = names.stacks({RawStack("main", (a,)): 1 for a in (0x3FFFF, 0x40000, 0x41000)})
    assert {stack.frames[0].origin: count for stack, count in stacks.items()} == {"js": 2, "libc": 1}


def test_a_return_address_belongs_to_the_call_before_it(tmp_path: Path) -> None:
    names = symbolizer(tmp_path)
    inside = names.stacks({RawStack("main", (0x10000, 0x20100)): 1})
    assert [frame.symbol for stack in inside for frame in stack.frames] == [
        "Bind",
        "v8::internal::String::WriteUtf8",
    ]


def test_a_function_given_by_its_first_address_is_found(tmp_path: Path) -> None:
    (stack,) = symbolizer(tmp_path).stacks({RawStack("main", (0x30010, 0x20000)): 1})
    assert stack.frames[0] == Frame("addon", "Bind")


def test_a_stripped_addon_is_told_apart_from_a_stub(tmp_path: Path) -> None:
    raw = {RawStack("main", (0x20F00,)): 1}
    (full,) = symbolizer(tmp_path / "full").stacks(raw)
    (stripped,) = symbolizer(tmp_path / "stripped", stripped=True).stacks(raw)
    assert full.frames == (Frame("libc", "[better.node]"),)
    assert stripped.frames == (STRIPPED_ADDON,)


def test_mappings_are_read_as_the_kernel_lists_them() -> None:
    text = (
        "10000-12000 r-xp 00001000 08:01 1      /node/bin/with space\n"
        "30000-32000 rw-p 00000000 00:00 0\n"
        "40000-42000 rwxp 00000000 00:00 0 \n"
        "garbage x\nzz-yy r-xp 0 0 0\n"
    )
    assert read_maps(text) == (
        Mapping(0x10000, 0x12000, 0x1000, "/node/bin/with space"),
        Mapping(0x40000, 0x42000, 0, "//anon"),
    )
