"""The core operations against their JavaScript twins, as far as they can be compared without a compiler."""

import re

import pytest

from investigator import resources
from investigator.operations import CORE, SQLITE, find

NATIVE = resources.root() / "sqlcipher_bench/native"
MODULE = (resources.root() / "sqlcipher_bench/operations/core.mjs").read_text()
BENCH = (NATIVE / "bench.c").read_text()


def test_every_operation_has_a_twin_in_javascript_and_in_c() -> None:
    wanted = [operation.name for operation in SQLITE]
    assert [operation.name for operation in CORE] == [f"core.{name}" for name in wanted]
    assert re.findall(r"^  'core\.(\w+)': ", MODULE, re.MULTILINE) == wanted
    assert re.findall(r'\.name = "(\w+)"', BENCH) == wanted


def test_operations_that_change_rows_put_them_back() -> None:
    writers = re.findall(r"^  'core\.\w+': writer\('(\w+)'\)", MODULE, re.MULTILINE)
    assert writers == ["insert_row", "insert_batch", "update_row", "delete_row"]
    assert len(re.findall(r"\.connection = WRITER", BENCH)) == len(writers)


def test_twins_are_measured_like_their_operations() -> None:
    for operation in SQLITE:
        twin = find(f"core.{operation.name}")
        assert twin is not None
        assert (twin.family, twin.workload, twin.essential) == ("core", twin.name, False)
        assert twin.cold_calls == operation.cold_calls


@pytest.mark.parametrize(
    ("name", "file", "pattern"),
    [
        ("BATCH_ROWS", "write.mjs", r"const BATCH = (\d+);"),
        ("UPDATED", "write.mjs", r"const UPDATED = (\d+);"),
        ("UNCACHED_PAGES", "select.mjs", r"const UNCACHED_PAGES = (\d+);"),
        ("DAY_S", "select.mjs", r"date % (\d+)"),
        ("STRIDE", "select.mjs", r"index \* (\d+)"),
        ("TEXTS", "lib/text.mjs", r"const COUNT = (\d+);"),
    ],
)
def test_c_and_javascript_use_the_same_numbers(name: str, file: str, pattern: str) -> None:
    program = (NATIVE / "bench.h").read_text() + BENCH
    defined = re.search(rf'^#define {name} "?(\d+)"?$', program, re.MULTILINE)
    used = re.search(pattern, (resources.root() / "sqlcipher_bench/operations" / file).read_text())
    assert defined is not None
    assert used is not None
    assert defined.group(1) == used.group(1)


def test_the_core_module_needs_no_cpp_and_an_old_node_api() -> None:
    source = (NATIVE / "core_addon.c").read_text()
    assert "#define NAPI_VERSION 8\n" in source
    assert '"C"' not in source
