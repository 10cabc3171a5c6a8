"""Causes from experiments on simulated workers: a swap that moves the change, one that does not."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from investigator import experiments
from investigator.causes.build import BuildComparison, BuildDifference
from investigator.causes.changes import NodeChanges, VersionChange
from investigator.causes.regions import Place, SourceRegion
from investigator.causes.source import SourceComparison
from investigator.experiments import ROUNDS, find_causes
from investigator.measure import Bench, read_rounds
from investigator.store import RunFolder, create_run
from investigator.tested import CAUSES_SCHEMA, ONE_CPU, CausesRecord, SwapRun
from investigator.tested import tested as told
from tests.fakes.worker_engine import WorkerEngine
from tests.unit.report_synthetic import attribution
from tests.unit.test_measure import BASE, OTHER, bench_of

SWAPPED = f"{OTHER}-patch01234567"
OP = "select_range"
REGION = SourceRegion(
    kind="branch",
    baseline=Place(file="src/util/data.cpp", first_line=100, last_line=120),
    candidate=Place(file="src/util/data.cpp", first_line=122, last_line=140),
    condition="NODE_MODULE_VERSION < 127",
    condition_file="src/util/data.cpp",
    condition_line=99,
    functions=("Data::GetRowJS",),
)
NOTHING = NodeChanges(
    same_binary=False,
    versions=(VersionChange(name="v8", baseline="12.4", candidate="13.6", about=""),),
    config=(
        BuildDifference(
            what="config.gypi",
            subject="variables.v8_enable_sandbox",
            baseline="0",
            candidate="",
            relevance="code",
        ),
        BuildDifference(
            what="config.gypi",
            subject="variables.node_prefix",
            baseline="/usr",
            candidate="/",
            relevance="none",
        ),
    ),
    defaults=(),
    new_flags=0,
    gone_flags=0,
)


def cost_with(swapped: float) -> Callable[[str, str], float]:
    return lambda environment, _op: {BASE: 60_000.0, OTHER: 30_000.0, SWAPPED: swapped}[environment]


def bench_with(tmp_path: Path, swapped: float) -> Bench:
    bench = bench_of(tmp_path, WorkerEngine(cost_with(swapped)))
    nested = create_run(bench.folder.path / "explain/x")
    return msgspec.structs.replace(bench, folder=nested)


def record_of(bench: Bench) -> CausesRecord:
    environment = msgspec.structs.replace(bench.plan.environment(OTHER), id=SWAPPED)
    swap = SwapRun(
        folder="swap-1",
        regions=(REGION,),
        direction="old_on_new",
        environment=environment,
        build=bench.around.builds[OTHER],
    )
    return CausesRecord(
        source=SourceComparison(axis="headers", regions=(REGION,), functions=9),
        builds=None,
        changes=NOTHING,
        swaps=(swap,),
    )


def experiment(tmp_path: Path, swapped: float) -> Bench:
    bench = bench_with(tmp_path, swapped)
    bench.folder.write_json("causes.json", "causes", CAUSES_SCHEMA, record_of(bench))
    find_causes(bench, bench, msgspec.structs.replace(attribution(), op=OP, layer="boundary", methods=()))
    return bench


def test_a_swap_that_moves_the_change_is_a_cause(tmp_path: Path) -> None:
    bench = experiment(tmp_path, 60_000.0)
    found = told(RunFolder(tmp_path), bench.folder, OP, (BASE, OTHER), ("Data::GetRowJS",))
    (cause,) = found.causes
    assert (cause.kind, cause.layer, cause.confirmed) == ("addon_source", "boundary", True)
    assert "src/util/data.cpp:122-140" in cause.text
    assert "NODE_MODULE_VERSION < 127" in cause.text
    assert cause.moved == pytest.approx(1.0, abs=0.1)
    assert found.changed == ("v8 12.4 -> 13.6", "process.config v8_enable_sandbox 0 -> none")


def test_a_swap_that_moves_nothing_is_rejected(tmp_path: Path) -> None:
    bench = experiment(tmp_path, 30_000.0)
    found = told(RunFolder(tmp_path), bench.folder, OP, (BASE, OTHER), ("Data::GetRowJS",))
    assert found.causes == ()
    assert any("src/util/data.cpp:99" in text for text in found.rejected)


def test_two_swaps_share_their_rounds_and_are_judged_apart(tmp_path: Path) -> None:
    other = f"{SWAPPED}-other"
    costs = {BASE: 60_000.0, OTHER: 30_000.0, SWAPPED: 60_000.0, other: 30_000.0}
    bench = bench_of(tmp_path, WorkerEngine(lambda environment, _op: costs[environment]))
    bench = msgspec.structs.replace(bench, folder=create_run(bench.folder.path / "explain/x"))
    record = record_of(bench)
    (first,) = record.swaps
    assert first.environment is not None
    second = msgspec.structs.replace(first, environment=msgspec.structs.replace(first.environment, id=other))
    record = msgspec.structs.replace(record, swaps=(first, second))
    bench.folder.write_json("causes.json", "causes", CAUSES_SCHEMA, record)
    find_causes(bench, bench, msgspec.structs.replace(attribution(), op=OP, layer="boundary", methods=()))
    rounds = read_rounds(RunFolder(bench.folder.path / "swap-1"))
    measured = [{m.invocation.environment for m in record.invocations} for record in rounds]
    assert measured == [{BASE, OTHER, SWAPPED, other}] * ROUNDS
    found = told(RunFolder(tmp_path), bench.folder, OP, (BASE, OTHER), ("Data::GetRowJS",))
    assert [cause.moved for cause in found.causes] == [pytest.approx(1.0, abs=0.1)]
    assert any("moves only" in text for text in found.rejected)


@pytest.mark.parametrize(("rebuilt_ns", "confirmed"), [(60_000.0, True), (30_000.0, False)])
def test_a_rebuild_is_judged_by_what_it_moves(tmp_path: Path, rebuilt_ns: float, confirmed: bool) -> None:
    bench = bench_with(tmp_path, rebuilt_ns)
    record = record_of(bench)
    (swap,) = record.swaps
    rebuild = msgspec.structs.replace(swap, regions=(), what="sqlite3.o", layer="native_core")
    record = msgspec.structs.replace(record, swaps=(), rebuilds=(rebuild,))
    bench.folder.write_json("causes.json", "causes", CAUSES_SCHEMA, record)
    find_causes(bench, bench, msgspec.structs.replace(attribution(), op=OP, layer="native_core", methods=()))
    found = told(RunFolder(tmp_path), bench.folder, OP, (BASE, OTHER), ())
    if confirmed:
        (cause,) = found.causes
        assert (cause.kind, cause.layer, cause.confirmed) == ("build", "native_core", True)
        assert cause.moved == pytest.approx(1.0, abs=0.1)
    else:
        assert found.causes == ()
        assert any("sqlite3.o, taken from the baseline's build" in text for text in found.rejected)


def test_a_build_that_differs_and_could_not_be_made_again_is_told_as_open(tmp_path: Path) -> None:
    bench = bench_with(tmp_path, 30_000.0)
    lost = SwapRun(folder="swaps", regions=(), what="flags of x.cpp", reason="it does not compile")
    record = msgspec.structs.replace(record_of(bench), swaps=(), rebuilds=(lost,))
    bench.folder.write_json("causes.json", "causes", CAUSES_SCHEMA, record)
    found = told(RunFolder(tmp_path), bench.folder, OP, (BASE, OTHER), ())
    assert found.warnings == ("the build differs in flags of x.cpp; not tested: it does not compile",)
    assert found.causes == ()


def test_source_that_the_profile_does_not_show_is_no_cause(tmp_path: Path) -> None:
    bench = experiment(tmp_path, 60_000.0)
    found = told(RunFolder(tmp_path), bench.folder, OP, (BASE, OTHER), ("Statement::JS_run",))
    assert found.causes == ()


def test_experiments_go_on_where_they_were_left(tmp_path: Path) -> None:
    bench = experiment(tmp_path, 60_000.0)
    swap = RunFolder(bench.folder.path / "swap-1")
    assert len(read_rounds(swap)) == ROUNDS
    engine = bench.engine
    assert isinstance(engine, WorkerEngine)
    before = len(engine.jobs)
    find_causes(bench, bench, msgspec.structs.replace(attribution(), op=OP, layer="boundary", methods=()))
    assert len(engine.jobs) == before


def test_collector_and_engine_get_flags_and_one_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(experiments, "usable_cpus", lambda: (0, 1))
    monkeypatch.setattr(experiments, "ablate", lambda _bench, _op, _candidate, *, kinds: asked.append(kinds))
    bench = bench_with(tmp_path, 30_000.0)
    record = msgspec.structs.replace(record_of(bench), swaps=())
    bench.folder.write_json("causes.json", "causes", CAUSES_SCHEMA, record)
    find_causes(bench, bench, msgspec.structs.replace(attribution(), op=OP, layer="gc", methods=()))
    assert asked == [("gc",)]
    assert len(read_rounds(RunFolder(bench.folder.path / ONE_CPU))) == ROUNDS
    found = told(RunFolder(tmp_path), bench.folder, OP, (BASE, OTHER), ())
    assert any(text.endswith("the change is -50 %") for text in found.warnings)


@pytest.mark.parametrize(
    ("differences", "equal", "text"),
    [
        ((), True, "the build: the addon's binary is bit-identical on both sides"),
        ((), False, "the build: same compiler and flags"),
        (
            ("-std=gnu++17", "-std=gnu++20"),
            False,
            "flags, but for -std=gnu++17 -> -std=gnu++20",
        ),
    ],
)
def test_a_build_is_called_equal_only_where_it_is(
    tmp_path: Path, differences: tuple[str, str] | tuple[()], equal: bool, text: str
) -> None:
    found = (
        [
            BuildDifference(
                what="flag",
                subject="x.cpp",
                baseline=differences[0],
                candidate=differences[1],
                relevance="language",
            )
        ]
        if differences
        else []
    )
    bench = bench_with(tmp_path, 30_000.0)
    builds = BuildComparison(differences=tuple(found), sqlite_object_equal=True, binary_equal=equal)
    record = msgspec.structs.replace(record_of(bench), builds=builds, swaps=())
    bench.folder.write_json("causes.json", "causes", CAUSES_SCHEMA, record)
    rejected = told(RunFolder(tmp_path), bench.folder, OP, (BASE, OTHER), ()).rejected
    assert any(said.endswith(text) for said in rejected)
