"""Sheets and claims to an audit: which changes are meant, what the figures support, one plain sentence."""

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from investigator import units
from investigator.audit.book import Book
from investigator.audit.checks import check
from investigator.audit.claims import Claim, Measure, stated_claim
from investigator.audit.evidence import Evidence, Finding
from investigator.audit.figures import Sheet
from investigator.audit.operations import operation_for
from investigator.audit.weigh import Weighed, alike, locate, log_change, weigh
from investigator.errors import UsageError

AUDIT_SCHEMA = 1
MOST_VERSIONS_PAIRWISE = 6
"""With more versions, each is only compared with the oldest and with its predecessor."""
MOST_VERSIONS = 200
MOST_CHANGES = 2_000
_MEASURED = {"rate": " per second", "time": " (time)", "unknown": ""}


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was read."""

    name: str
    format: str
    versions: tuple[str, ...]
    figures: int


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """What the figures say to one change."""

    weighed: Weighed
    text: str
    """One sentence."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The whole audit of published figures, before anything is measured."""

    conclusion: str
    """The one plain sentence."""
    sources: tuple[Source, ...]
    changes: tuple[Conclusion, ...]
    """The claimed ones, or without a claim every one that the figures suggest, largest first."""
    findings: tuple[Finding, ...]


def audit(
    sheets: Sequence[Sheet],
    claims: Sequence[Claim],
    *,
    op: str | None = None,
    baseline: str | None = None,
    measure: Measure = "rate",
) -> Audit:
    """Judge published figures.

    Args:
        sheets: the files; none where there are only claims.
        claims: those of the command line; without any, those that the files state, else every change.
        op: an operation of the files, or one of this tool's that measures it; None takes what fits the
            claims.
        baseline: version that everything is compared with; None takes what fits the claims.
        measure: what a percentage of unknown unit is read as.

    Raises:
        UsageError: an operation or version that the files do not have.
    """
    if not sheets:
        return _only_claims(claims, baseline, op)
    book = Book(sheets)
    if len(book.versions) > MOST_VERSIONS:
        count = len(book.versions)
        raise UsageError(
            f"the files name {count:,} versions, at most {MOST_VERSIONS} are audited; choose fewer."
        )
    ops = _wanted_ops(book, op)
    base = None if baseline is None else _known(book, baseline, "--baseline")
    meant = [msgspec.structs.replace(c, version=_known(book, c.version, "--claim")) for c in claims]
    meant = meant or list(_stated(book, sheets, ops, base, measure))
    weighed = [found for claim in meant for found in _claimed(book, claim, ops, base)]
    weighed.sort(key=lambda w: -abs(log_change(w.asked_pct)))
    weighed = weighed or list(_suggested(book, ops, base))
    if not weighed:
        raise UsageError(
            "no operation in these files was measured on two versions; there is nothing to compare."
        )
    evidence = Evidence(book=book, weighed=tuple(weighed))
    changes = tuple(Conclusion(weighed=w, text=conclude(w)) for w in weighed)
    return Audit(
        conclusion=_headline(changes),
        sources=tuple(
            Source(
                name=s.name,
                format=s.format,
                versions=tuple(dict.fromkeys(row.version for row in s.rows)),
                figures=len(s.figures),
            )
            for s in sheets
        ),
        changes=changes,
        findings=check(evidence),
    )


def conclude(w: Weighed) -> str:
    """What the figures say to one change, as one sentence."""
    asked = w.claim.text if w.claim is not None else units.format_percent(w.asked_pct)
    pair = f"for {w.op}{_MEASURED[w.unit]} on {w.candidate} against {w.baseline}"
    span = "" if w.span is None else f"{units.format_interval(w.span.low_pct, w.span.high_pct)} %"
    if w.support == "supported":
        return f"the figures support {asked} {pair}: {span} by alternating runs, on that machine and day"
    if w.support == "contradicted":
        given = _over(w) if w.settings > 1 else span or units.format_percent(w.alternative_pct)
        return f"the figures contradict {asked} {pair}: they give {given}"
    if w.support == "within_session":
        given = f"agree on about {asked} {pair} ({_over(w)})" if w.settings > 1 else f"give {span} {pair}"
        return f"the figures {given}, but cannot tell a change of Node from whatever else changed in between"
    if w.settings > 1:
        other, best = units.format_percent(w.alternative_pct), units.format_percent(w.best_pct)
        data = f"the same data give {_over(w)}, best against best {best}"
        return f"the figures cannot tell {asked} from {other} {pair}: {data}"
    if w.claim is None and alike(0.0, w.asked_pct):
        return f"the figures show no change {pair} ({asked}){f': their noise allows {span}' if span else ''}"
    bare = "each side is one figure, and nothing says how far one version differs from itself"
    why = f"their noise allows {span}" if span else bare
    return f"the figures cannot tell {asked} from no change {pair}: {why}"


def _over(w: Weighed) -> str:
    low, high = units.format_percent(w.low_pct), units.format_percent(w.high_pct)
    return f"{low} to {high} over {w.settings} settings"


def _headline(changes: Sequence[Conclusion]) -> str:
    first = changes[0]
    text = first.text[0].upper() + first.text[1:]
    if len(changes) == 1:
        return f"{text}."
    if first.weighed.claim is not None:
        rest = "; ".join(change.text for change in changes[1:3])
        more = f"; and {len(changes) - 3} more" if len(changes) > 3 else ""
        return f"{text}; {rest}{more}."
    told = sum(change.weighed.support == "supported" for change in changes)
    return (
        f"Of {len(changes)} changes that the figures suggest they support {told or 'none'} beyond what "
        f"else may have changed; of the largest: {first.text}."
    )


def _only_claims(claims: Sequence[Claim], baseline: str | None, op: str | None) -> Audit:
    words = ", ".join(f"{claim.text} on {claim.version}" for claim in claims)
    against = f" against {baseline}" if baseline else ", against a version that is not named"
    what = f" for {op}" if op else ""
    text = (
        f"A change alone ({words}{what}{against}) can be told from nothing: there is no figure, spread, "
        "number of runs, order, machine or addon release beside it; --rerun measures it."
    )
    finding = Finding(
        check="claim_only",
        kind="missing",
        text="there are no figures, only the claimed change",
        places=(),
    )
    return Audit(conclusion=text, sources=(), changes=(), findings=(finding,))


def _wanted_ops(book: Book, op: str | None) -> tuple[str, ...]:
    if op is None:
        rates = tuple(name for name in book.ops if book.unit(name) == "rate")
        return rates or book.ops
    lower = op.lower()
    chosen = [name for name in book.ops if lower in {name.lower(), operation_for(name)}]
    if not chosen:
        raise UsageError(
            f"--op {op[:80]!r} is not in these files for two versions; they have "
            f"{', '.join(book.ops[:20]) or 'none'}."
        )
    return tuple(chosen)


def _known(book: Book, version: str, option: str) -> str:
    found = book.find_version(version.removeprefix("v"))
    if found is None:
        raise UsageError(
            f"{option} names {version[:80]!r}, but the files have {', '.join(book.versions[:20])}; name "
            "one of them."
        )
    return found


def _stated(
    book: Book, sheets: Sequence[Sheet], ops: Sequence[str], baseline: str | None, measure: Measure
) -> Iterator[Claim]:
    """Changes that the files themselves state of the operations that are looked at."""
    for sheet in sheets:
        for stated in sheet.stated:
            claim = stated_claim(
                stated.version, stated.op, stated.change_pct, book.unit(stated.op), stated.place, measure
            )
            if claim is not None and stated.op in ops and stated.version != baseline:
                yield claim


def _claimed(book: Book, claim: Claim, ops: Sequence[str], baseline: str | None) -> list[Weighed]:
    """The pair that a claim means: where two figures give it, else every operation against the baseline."""
    candidates = [op for op in ops if claim.op in {None, op}]
    pairs = [
        (op, base)
        for op in candidates
        for base in ([baseline] if baseline else book.versions_of(op))
        if base != claim.version
    ]
    giving = [(op, base) for op, base in pairs if locate(book, op, base, claim.version, claim)]
    # A table that names no baseline means its first row.
    fallback = baseline or _first_version(book, claim)
    chosen = giving[:1] or [(op, base) for op, base in pairs if base == fallback]
    found = [weigh(book, op, base, claim.version, claim) for op, base in chosen]
    return [weighed for weighed in found if weighed is not None]


def _first_version(book: Book, claim: Claim) -> str:
    rows = (
        row.version
        for sheet in book.sheets
        for row in sheet.rows
        if claim.place is None or sheet.name == claim.place.file
    )
    first = next(rows, book.versions[0])
    return first if first != claim.version else next((v for v in book.versions if v != claim.version), first)


def _suggested(book: Book, ops: Sequence[str], baseline: str | None) -> Iterator[Weighed]:
    found = []
    for op in ops:
        versions = book.versions_of(op)
        if baseline is not None or len(versions) > MOST_VERSIONS_PAIRWISE:
            base = baseline or versions[0]
            pairs = [(base, version) for version in versions if version != base]
            if baseline is None:
                pairs = list(dict.fromkeys([*pairs, *itertools.pairwise(versions)]))
        else:
            pairs = list(itertools.combinations(versions, 2))
        found += [
            w for old, new in pairs[:MOST_CHANGES] if (w := weigh(book, op, old, new, None)) is not None
        ]
    found.sort(key=lambda w: -abs(log_change(w.published_pct)))
    yield from found[:MOST_CHANGES]
