"""`investigate selftest`: all trials of a subset, resumable after every round, with a report at the end."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from investigator import cache
from investigator.analysis import Comparison
from investigator.attribution.layers import Attribution
from investigator.engine.choose import choose_engine
from investigator.engine.interface import Engine
from investigator.errors import InterruptedRunError, StoredFileError, UsageError
from investigator.measure import Bench
from investigator.nodes import describe, parse, sources
from investigator.nodes.interface import NodeBuild
from investigator.observer import Observer
from investigator.results import Finished
from investigator.selftest.bench import Candidate, Workshop, identifiers, measure, measuring_s, screen_plan
from investigator.selftest.judge import Outcome, judge, place_of
from investigator.selftest.pilot import Rate, rates
from investigator.selftest.report import SELFTEST_SCHEMA, SelftestReport, render_markdown
from investigator.selftest.trials import Options, Screen, Trial, checked, screens
from investigator.store import RunFolder, single_process

KIND = "selftest"
FILE = "selftest.json"


class Attribute(Protocol):
    """Explains findings of a screen: measures what is not measured yet, and tells what is known of each."""

    def __call__(
        self, bench: Bench, finished: Finished, wanted: Sequence[Comparison]
    ) -> Sequence[Attribution]:
        """Attributions of `wanted`, all of them findings of `finished`, which `bench` has measured."""


def run_selftest(
    options: Options, out: Path, observer: Observer, attribute: Attribute | None = None
) -> SelftestReport:
    """Run all trials that `options` name, or go on with those of a folder.

    Args:
        options: which trials; those of a folder that exists must be the same.
        out: folder of the self-test; each screen is a run folder in it.
        observer: told of everything.
        attribute: the explain phase; None judges detection and size only.

    Returns:
        The report, which also lies in `out` as selftest.json and selftest.md.

    Raises:
        InvestigateError: with what was measured until then in the folder; the same call goes on.
    """
    folder = RunFolder(out)
    if not _fits(folder, checked(options)):
        raise UsageError(f"{out} holds a self-test with other options; choose another folder.")
    with single_process(cache.cache_root() / "measuring.lock", "this machine"):
        out.mkdir(parents=True, exist_ok=True)
        try:
            engine = choose_engine(options.engine, options.base_image, observer)
            try:
                return _Session(options, folder, engine, observer, attribute).run()
            finally:
                engine.close()
        except KeyboardInterrupt as error:
            raise InterruptedRunError(
                f"interrupted; finished rounds are kept, go on with `investigate selftest --out {out}`."
            ) from error


def read_report(folder: RunFolder) -> SelftestReport:
    """The report as far as it goes.

    Raises:
        StoredFileError: missing, damaged, or written by a newer tool.
    """
    return folder.read_json(FILE, KIND, SELFTEST_SCHEMA, SelftestReport)


def _fits(folder: RunFolder, options: Options) -> bool:
    """Whether a folder is new, or holds a self-test of the same trials."""
    if not (folder.path / FILE).exists():
        if folder.path.is_dir() and any(folder.path.iterdir()):
            raise StoredFileError(f"{folder.path} holds something, but no {FILE}; choose another folder.")
        return True
    return screens(read_report(folder).options) == screens(options)


class _Session:
    """One call of the self-test: what is known, and what is still to be done."""

    def __init__(
        self,
        options: Options,
        folder: RunFolder,
        engine: Engine,
        observer: Observer,
        attribute: Attribute | None,
    ) -> None:
        self.options = options
        self.folder = folder
        self.observer = observer
        self.attribute = attribute if options.explain else None
        self.started_s = time.monotonic()
        self.screens = screens(options)
        self.done: dict[int, tuple[Outcome, ...]] = {}
        self.rates: dict[tuple[str, str], Rate] = {}
        if (folder.path / FILE).exists():
            known = read_report(folder)
            self.rates = {(rate.place, rate.op): rate for rate in known.rates}
            self.done = _by_screen(self.screens, known.outcomes)
        self.workshop = Workshop(engine, node_of(options, engine, observer), observer)

    def run(self) -> SelftestReport:
        """Pilots where they are needed, then screens."""
        self._store()
        todo = [screen for screen in self.screens if not self._finished(screen)]
        measured_s: list[float] = []
        for position, screen in enumerate(todo):
            self.observer.note(
                f"screen {position + 1} of {len(todo)}: {screen.op}, {len(screen.trials)} trials"
                f"{_remaining(measured_s, len(todo) - position)}"
            )
            clock = time.monotonic()
            self._screen(screen)
            measured_s.append(time.monotonic() - clock)
            self._store()
        return self._store()

    def _finished(self, screen: Screen) -> bool:
        """Whether nothing of a screen is left: its findings count only if somebody explains them now."""
        outcomes = self.done.get(screen.number)
        if outcomes is None:
            return False
        return self.attribute is None or all(o.named is not None or not o.finding for o in outcomes)

    def _screen(self, screen: Screen) -> None:
        self._learn(screen)
        nested = RunFolder(self.folder.path / screen.name)
        stored = screen_plan(
            self.workshop,
            run_id=screen.name,
            op=screen.op,
            seed=screen.seed,
            command=screen.command,
            patch=screen.patch,
            candidates=[self._candidate(trial) for trial in screen.trials],
        )
        bench, finished = measure(stored, nested, self.workshop.engine, self.observer)
        names = identifiers(finished.stored)
        each_s = measuring_s(nested) / len(screen.trials)
        told: list[Attribution] = []
        while True:
            self.done[screen.number] = tuple(
                judge(screen.number, trial, names[trial.label], finished.analysis, told, elapsed_s=each_s)
                for trial in screen.trials
            )
            self._store()
            target = next(self._unexplained(screen, finished, told), None)
            if self.attribute is None or target is None:
                return
            told += self.attribute(bench, finished, (target,))

    def _unexplained(
        self, screen: Screen, finished: Finished, told: Sequence[Attribution]
    ) -> Iterator[Comparison]:
        """Findings that are left, as long as there is time."""
        if self.options.minutes is not None and self._elapsed_min() >= self.options.minutes:
            return
        known = {(a.op, a.candidate) for a in told}
        for c in finished.analysis.comparisons:
            if c.finding and c.op == screen.op and (c.op, c.candidate) not in known:
                yield c

    def _elapsed_min(self) -> float:
        return (time.monotonic() - self.started_s) / 60

    def _learn(self, screen: Screen) -> None:
        """Pilots of all places that this self-test plants in the operation of a screen."""
        wanted = [
            place
            for name in dict.fromkeys(t.place for s in self.screens if s.op == screen.op for t in s.trials)
            if (place := place_of(Trial(place=name, op=screen.op, size_pct=None, seed=1))).sized
            and (name, screen.op) not in self.rates
        ]
        if wanted:
            self.observer.note(f"pilot of {screen.op}: {', '.join(place.name for place in wanted)}")
            for rate in rates(self.workshop, self.folder, screen.op, wanted, self.observer):
                self.rates[rate.place, rate.op] = rate
            self._store()

    def _candidate(self, trial: Trial) -> Candidate:
        place = place_of(trial)
        amount = place.millionths
        if trial.size_pct is not None:
            amount = self.rates[trial.place, trial.op].millionths_for(trial.size_pct)
        return Candidate(label=trial.label, place=place, millionths=amount)

    def _store(self) -> SelftestReport:
        report = SelftestReport(
            options=self.options,
            rates=tuple(self.rates.values()),
            planned=sum(len(screen.trials) for screen in self.screens),
            outcomes=tuple(o for number in sorted(self.done) for o in self.done[number]),
        )
        self.folder.write_json(FILE, KIND, SELFTEST_SCHEMA, report)
        self.folder.write("selftest.md", render_markdown(report).encode())
        return report


def node_of(options: Options, engine: Engine, observer: Observer) -> NodeBuild:
    """The Node build that the self-test runs on.

    Raises:
        UsageError: none, or more than one, answers to the name.
        HostUnfitError: the registry does not answer.
    """
    target = sources.platform_for(engine.name)
    resolved = sources.resolve_all(parse.parse_versions((options.node,)), target, observer)
    found = sources.fetch_all(
        resolved, lambda directory: describe.describe_node(engine, directory), target, observer
    )
    if len(found) != 1:
        raise UsageError(f"the self-test takes one Node; {options.node[:80]!r} names {len(found)}.")
    return found[0]


def _by_screen(planned: Sequence[Screen], outcomes: Sequence[Outcome]) -> dict[int, tuple[Outcome, ...]]:
    """Outcomes of the screens all of whose trials have one."""
    found: dict[int, tuple[Outcome, ...]] = {}
    for screen in planned:
        rows = tuple(o for o in outcomes if o.screen == screen.number)
        if len(rows) == len(screen.trials):
            found[screen.number] = rows
    return found


def _remaining(measured_s: Sequence[float], screens_left: int) -> str:
    if not measured_s:
        return ""
    return f"; about {sum(measured_s) / len(measured_s) * screens_left / 60:.0f} minutes remain"
