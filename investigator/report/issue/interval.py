"""Between which releases it happened: from the run's own versions, or from a bisection."""

from collections.abc import Iterator

import msgspec

from investigator import npm_client
from investigator.analysis import Comparison
from investigator.plan import Environment
from investigator.report.issue.again import bisect
from investigator.report.issue.material import Material
from investigator.report.issue.words import version

_GOOD, _BAD, _OPEN = "good", "bad", "cannot tell"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One release of the run and what it says."""

    name: str
    number: str
    says: str
    """``good``, ``bad`` or ``cannot tell``."""


class ReleaseInterval(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about when it came, and when it went."""

    last_good: str
    first_bad: str
    first_fixed: str
    """Later release that is good again; empty where none was measured."""
    text: str
    """One sentence, not escaped."""
    readings: tuple[Reading, ...]
    """All releases of the run, oldest first."""


def release_interval(material: Material) -> ReleaseInterval:
    """Give the narrowest interval that is known; a bisection is narrower than the run."""
    of_run, found = _of_run(material), material.bisected
    if found is None:
        return of_run
    texts = (found.text or of_run.text, found.fixed_text)
    return ReleaseInterval(
        last_good=found.last_good or of_run.last_good,
        first_bad=found.first_bad or of_run.first_bad,
        first_fixed=found.first_fixed or of_run.first_fixed,
        text="; ".join(text for text in texts if text),
        readings=of_run.readings,
    )


def _of_run(material: Material) -> ReleaseInterval:
    readings = tuple(sorted(_readings(material), key=lambda reading: _order(reading.number)))
    bad = next((r for r in readings if r.says == _BAD), None)
    before = [
        r for r in readings if r.says == _GOOD and (bad is None or _order(r.number) < _order(bad.number))
    ]
    if bad is None or not before:
        text = "no release of this run is older and good: the interval is not known"
        return ReleaseInterval(last_good="", first_bad="", first_fixed="", text=text, readings=readings)
    last_bad = [r for r in readings if r.says == _BAD][-1]
    after = [r for r in readings if r.says == _GOOD and _order(r.number) > _order(last_bad.number)]
    fixed = after[0].name if after else ""
    return ReleaseInterval(
        last_good=before[-1].name,
        first_bad=bad.name,
        first_fixed=fixed,
        text=_said(before[-1].name, bad.name, fixed, later=readings[-1] is not last_bad),
        readings=readings,
    )


def bisect_command(material: Material) -> str:
    """The command line that narrows the interval."""
    interval = release_interval(material)
    numbers = {reading.name: reading.number for reading in interval.readings}
    good, bad = (
        numbers.get(name) or version(side).removeprefix("v")
        for name, side in ((interval.last_good, material.baseline), (interval.first_bad, material.candidate))
    )
    return bisect(material, good, bad)


def later_undecided(material: Material) -> tuple[str, ...]:
    """Releases of the run after the last bad one that were measured and stay open."""
    readings = release_interval(material).readings
    last_bad = max((k for k, reading in enumerate(readings) if reading.says == _BAD), default=len(readings))
    return tuple(reading.name for reading in readings[last_bad + 1 :] if reading.says == _OPEN)


def _said(good: str, bad: str, fixed: str, *, later: bool) -> str:
    again = f"; {fixed} is good again" if fixed else "" if later else "; later ones are not in this run"
    return f"last good release measured: {good}; first bad release measured: {bad}{again}"


def _readings(material: Material) -> Iterator[Reading]:
    """The releases of the run whose builds can be put into an order."""
    yield _reading(material, material.baseline, _GOOD)
    yield _reading(material, material.candidate, _BAD)
    known = {environment.id: environment for environment in material.plan.environments}
    for other in material.others:
        environment = known.get(other.candidate)
        if other.op == material.op and environment is not None and _comparable(material, environment):
            yield _reading(material, environment, _says(material, other))


def _says(material: Material, other: Comparison) -> str:
    """An improvement on the baseline is good as well: what is asked is whether it became slower."""
    same = material.published.comparison.verdict
    if other.finding and other.verdict == same:
        return _BAD
    return _GOOD if other.verdict == "no_change" or (other.finding and other.verdict != same) else _OPEN


def _comparable(material: Material, environment: Environment) -> bool:
    """A patched build of one's own stands in no order of releases."""
    return material.by_addon or environment.node.source != "path"


def _reading(material: Material, environment: Environment, says: str) -> Reading:
    number = environment.node.version
    if material.by_addon and environment.addon is not None:
        number = environment.addon.version
    return Reading(name=version(environment, by_addon=material.by_addon), number=number, says=says)


def _order(number: str) -> tuple[int, object]:
    try:
        return (0, npm_client.precedence(number))
    except ValueError:
        return (1, number)
