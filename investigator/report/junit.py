"""The answer of `investigate validate` as JUnit XML, the form that CI systems show as tests.

One test case for each operation whose loss must come back, one for each other operation, and one for the fix
as a whole. ``failure`` fails the fix, ``error`` is a target that could not be decided, ``skipped`` another
operation that could not.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import msgspec

from investigator.report.validation import OTHER_WORDS, WORDS, change, recovered
from investigator.text import clean_text
from investigator.validate.shapes import Other, Recovery, Validation

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write, https://www.w3.org/TR/xml/#charsets."""
_FAILING = {"slower", "failed", "invalid"}
_SKIPPED = {"undecided", "not_measured"}


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    name: str
    state: str
    """``passed``, ``failure``, ``error`` or ``skipped``."""
    message: str
    details: str


def render(validation: Validation, *, run_id: str, started_at: str, measuring_s: float) -> bytes:
    """Write the file: UTF-8 with declaration.

    Args:
        validation: the answer.
        run_id: name of the run folder.
        started_at: ISO 8601.
        measuring_s: length of all rounds.
    """
    cases = tuple(_cases(validation))
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.state == "failure" for case in cases)),
        "errors": str(sum(case.state == "error" for case in cases)),
        "skipped": str(sum(case.state == "skipped" for case in cases)),
        "time": f"{measuring_s:.1f}",
    }
    root = ET.Element("testsuites", {"name": "investigate validate", **counts})
    suite = ET.SubElement(
        root,
        "testsuite",
        {
            "name": _plain(f"investigate validate: {validation.fix}"),
            **counts,
            "timestamp": _plain(started_at),
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(validation, run_id):
        ET.SubElement(properties, "property", {"name": name, "value": _plain(value)})
    for case in cases:
        element = ET.SubElement(
            suite,
            "testcase",
            {"classname": f"investigate.{case.group}", "name": _plain(case.name), "time": "0"},
        )
        if case.state != "passed":
            found = ET.SubElement(element, case.state, {"message": _plain(case.message)})
            if case.state != "skipped":
                found.set("type", _plain(case.message.partition(":")[0])[:60])
                found.text = _plain(case.details)
        else:
            ET.SubElement(element, "system-out").text = _plain(case.details)
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _properties(validation: Validation, run_id: str) -> Iterator[tuple[str, str]]:
    yield "run", run_id
    yield "outcome", WORDS[validation.outcome]
    yield "baseline", validation.baseline
    yield "regressed", validation.regressed
    yield "fix", validation.fix
    yield "criterion", validation.criterion


def _cases(validation: Validation) -> Iterator[_Case]:
    states = {"pass": "passed", "fail": "failure", "invalid": "failure", "cannot_tell": "error"}
    yield _Case(
        group="fix",
        name="the fix as a whole",
        state=states[validation.outcome],
        message=f"{WORDS[validation.outcome]}: {'; '.join(validation.problems)}",
        details=validation.headline,
    )
    for target in validation.targets:
        yield _Case(
            group="recovers",
            name=target.op,
            state=states[target.outcome],
            message=f"{WORDS[target.outcome]}: {target.reason}",
            details=_figures(target),
        )
    for other in validation.others:
        yield _other(other)


def _other(other: Other) -> _Case:
    state = "failure" if other.outcome in _FAILING else "skipped" if other.outcome in _SKIPPED else "passed"
    return _Case(
        group="not_slower",
        name=other.op,
        state=state,
        message=other.reason or OTHER_WORDS[other.outcome],
        details=f"fix against regressed: {change(other.change)}; {OTHER_WORDS[other.outcome]}",
    )


def _figures(target: Recovery) -> str:
    lines = (
        f"came back: {recovered(target)}",
        f"loss, regressed against baseline: {change(target.loss)}",
        f"left, fix against baseline: {change(target.remaining)}",
        f"rounds: {target.rounds}",
        *target.warnings,
    )
    return "\n".join(lines)


def _plain(text: str) -> str:
    """What XML can hold; ElementTree escapes the rest."""
    return _FORBIDDEN.sub("", "\n".join(clean_text(line, 2000) for line in text.split("\n")))
