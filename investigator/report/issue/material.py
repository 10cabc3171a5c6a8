"""What a run knows about one finding: everything an issue text is made of, nothing said yet."""

from collections.abc import Mapping

import msgspec

from investigator.analysis import Comparison
from investigator.attribution.layers import Attribution, Named
from investigator.build import AddonBuild
from investigator.causes.ablation import AblationReport
from investigator.causes.build import BuildDifference
from investigator.host import HostFacts
from investigator.nodes.platform import PlatformFacts
from investigator.plan import Environment, Plan


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One environment in the rounds that are published; times in ns per call, NaN where not known."""

    environment: Environment
    build: AddonBuild | None
    ns_per_op: float
    """Median over processes of the process value."""
    cpu_user_ns: float
    """All threads of the process, mean over passes; so are the next three."""
    cpu_system_ns: float
    gc_pause_ns: float
    switches_per_s: float
    """Involuntary context switches per second of timed passes."""
    rss_bytes: float
    """Median after a pass."""
    processes: int
    by_round: tuple[tuple[float, ...], ...]
    """Process values by arm (the second is the same environment again) and round."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One set of rounds: of the whole run, or of the finding alone."""

    comparison: Comparison
    twin: Comparison | None
    """The baseline against itself in the same rounds."""
    baseline: Side
    candidate: Side
    alone: bool
    """Whether the operation had a process of its own."""
    disturbed: int
    """Disturbed passes of both sides, of `passes`."""
    passes: int


class Reproduction(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was run on both sides and shows the effect."""

    name: str
    title: str
    """What it does, a few words."""
    files: tuple[tuple[str, str], ...]
    """Name and content, the one to read first; what could not be read is not among them."""
    command: str
    """One line, typed beside the files, that runs it with one version."""
    printed: str
    """What that printed."""
    reason: str
    """How it compares with the finding, one sentence."""
    dependency_free: bool
    """Whether it needs Node alone, or Node and a compiler."""


class Reproductions(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the reproduction of one finding."""

    shipped: tuple[Reproduction, ...]
    """The one to show first."""
    not_shown: tuple[str, ...]
    """Programs that were run and do not show the effect: what each does, and its change."""
    not_run: tuple[str, ...]
    """Programs that could not be run: what each does."""

    def best(self, *, dependency_free: bool) -> Reproduction | None:
        """The program to show: of the wanted kind if there is one, else any."""
        wanted = [program for program in self.shipped if program.dependency_free == dependency_free]
        return next(iter((*wanted, *self.shipped)), None)


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """What bisections over releases found for this operation; empty texts where there was none."""

    last_good: str = ""
    first_bad: str = ""
    v8: tuple[str, str] = ("", "")
    """Of these two, ``13.6``; empty where it is not known."""
    text: str = ""
    """One sentence: what was measured, and how sure it is."""
    first_fixed: str = ""
    """Later release that is good again."""
    fixed_text: str = ""
    """The same about that."""


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """One finding with everything around it."""

    tool: str
    started_at: str
    plan: Plan
    published: Measured
    """The rounds whose figures are published."""
    screen: Measured | None
    """The run's own rounds, where the finding was measured again; those chose it."""
    attribution: Attribution | None
    others: tuple[Comparison, ...]
    """Warm comparisons of the run with its baseline, this one left out."""
    cold: Comparison | None
    failed: tuple[str, ...]
    """Identifiers of environments that could not be built."""
    flags: tuple[AblationReport, ...]
    host: HostFacts
    platform: PlatformFacts | None
    engine: Mapping[str, str]
    addon_versions: Mapping[str, str]
    """SQLite and cipher, as the addon answered."""
    config: tuple[BuildDifference, ...] | None
    """Variables of process.config that differ; None where it was not recorded."""
    build_differences: tuple[BuildDifference, ...] | None
    """Compiler, flags that decide code or language, and SQLite's object, where they differ; None where a side
    was shipped or there is no addon."""
    reproductions: Reproductions | None = None
    bisected: Bisected | None = None

    @property
    def op(self) -> str:
        """Name of the operation."""
        return self.published.comparison.op

    @property
    def baseline(self) -> Environment:
        """The side that is compared with."""
        return self.published.baseline.environment

    @property
    def candidate(self) -> Environment:
        """The side that is judged."""
        return self.published.candidate.environment

    @property
    def by_addon(self) -> bool:
        """Whether addons are compared on one Node, not Node versions."""
        return self.plan.spec.axis == "addon"

    @property
    def layer(self) -> Named:
        """Layer that was named, or ``unknown``."""
        return "unknown" if self.attribution is None else self.attribution.layer

    @property
    def same_binary(self) -> bool:
        """Whether both sides load the very same ``.node``."""
        pair = (self.published.baseline.build, self.published.candidate.build)
        digests = {build.binding_sha256 for build in pair if build is not None}
        return None not in pair and len(digests) == 1 and "" not in digests

    @property
    def same_sqlite(self) -> bool:
        """Whether both sides run bit-identical SQLite."""
        pair = [
            side.build.sqlite3_object_sha256 if side.build else None
            for side in (self.published.baseline, self.published.candidate)
        ]
        return None not in pair and pair[0] == pair[1]
