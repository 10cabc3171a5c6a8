"""How much has to be planted for so many percent: measured, by operation and place, before the trials.

Work takes the same time however often it is done, so one large plant tells what a small one takes; it is
large so that the noise of the pilot is a small part of it.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from investigator.errors import HostUnfitError
from investigator.observer import Observer
from investigator.results import Finished
from investigator.selftest.bench import Candidate, Workshop, identifiers, measure, screen_plan
from investigator.selftest.places import Place
from investigator.store import RunFolder

ROUNDS = (6, 12)
"""Before the first look, and where that decides nothing."""
AIM_PCT = 40.0
"""Large against the noise of the pilot, and not so large that units come in rows, where each costs less."""
LOW_PCT, HIGH_PCT = 20.0, 120.0
"""Between these a pilot is taken as it is; else it is repeated with another plant."""
MAX_HALF_WIDTH = 0.12
"""Of the interval, as part of the change. A pilot that knows less would plant wrong sizes: it is repeated."""
TRIES = 4


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What one millionth of a unit of work costs in one operation."""

    place: str
    op: str
    millionths: int
    """What the pilot planted."""
    change_pct: float
    """What it measured."""
    ci_low_pct: float
    ci_high_pct: float

    @property
    def uncertainty(self) -> float:
        """Half the width of the interval, as part of the change."""
        half = (self.ci_high_pct - self.ci_low_pct) / 2
        return half / self.change_pct if self.change_pct > 0 else math.inf

    def millionths_for(self, size_pct: float) -> int:
        """What has to be planted for a size in percent of the operation's time."""
        return max(1, round(self.millionths * size_pct / self.change_pct))


def rates(
    workshop: Workshop, folder: RunFolder, op: str, places: Sequence[Place], observer: Observer
) -> tuple[Rate, ...]:
    """Pilots of one operation for all its places, against one baseline.

    Raises:
        HostUnfitError: a plant has no effect that could be scaled.
    """
    found: dict[str, Rate] = {}
    best: dict[str, Rate] = {}
    planted = {place.name: place.pilots[op] for place in places}
    for attempt in range(1, TRIES + 1):
        todo = [place for place in places if place.name not in found]
        if not todo:
            break
        finished = _measure(workshop, folder, op, attempt, todo, planted, observer)
        for place in todo:
            rate = _rate(finished, place, op, planted[place.name])
            best[place.name] = min(rate, best.get(place.name, rate), key=lambda r: r.uncertainty)
            if LOW_PCT <= rate.change_pct <= HIGH_PCT:
                if rate.uncertainty <= MAX_HALF_WIDTH:
                    found[place.name] = rate
            else:
                planted[place.name] = _next(rate)
    for place in places:
        rate = found.setdefault(place.name, best[place.name])
        if rate.uncertainty > MAX_HALF_WIDTH:
            observer.warning(
                f"the pilot of {place.name} on {op} knows its size only within "
                f"{rate.uncertainty * 100:.0f} %; this machine is restless."
            )
    if missing := [name for name, rate in found.items() if rate.ci_low_pct <= 0]:
        raise HostUnfitError(
            f"the planted slowdown {missing[0]} shows no effect on {op} that could be scaled; this machine "
            "is too restless for the self-test, or the plant does not work here."
        )
    return tuple(found[place.name] for place in places)


def _measure(
    workshop: Workshop,
    folder: RunFolder,
    op: str,
    attempt: int,
    places: Sequence[Place],
    planted: Mapping[str, int],
    observer: Observer,
) -> Finished:
    nested = RunFolder(folder.path / f"pilot-{op}-{attempt}")
    candidates = [Candidate(label=p.name, place=p, millionths=planted[p.name]) for p in places]
    stored = screen_plan(
        workshop,
        run_id=nested.name,
        op=op,
        seed=1,
        command="sqlite",
        patch="sized",
        candidates=candidates,
        rounds=ROUNDS,
    )
    return measure(stored, nested, workshop.engine, observer)[1]


def _rate(finished: Finished, place: Place, op: str, millionths: int) -> Rate:
    pair = finished.analysis.pair(op, identifiers(finished.stored)[place.name])
    if pair is None:
        reason = next((f.reason for f in finished.analysis.failures), "it was not measured")
        raise HostUnfitError(f"the pilot of {place.name} on {op} has no result: {reason}")
    return Rate(
        place=place.name,
        op=op,
        millionths=millionths,
        change_pct=pair.wall.change_pct,
        ci_low_pct=pair.wall.ci_low_pct,
        ci_high_pct=pair.wall.ci_high_pct,
    )


def _next(rate: Rate) -> int:
    """What the next pilot plants: as much as comes near the aim, ten times more where nothing was seen."""
    factor = AIM_PCT / rate.change_pct if rate.change_pct > AIM_PCT / 10 else 10.0
    return max(1, round(rate.millionths * factor))
