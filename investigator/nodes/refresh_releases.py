"""Make releases.toml again: ``python -m investigator.nodes.refresh_releases 18 20 22 24 26``.

Reads the headers of the first and the last release of each major given, and halves the way between two
releases that differ until it has the release in which something changed. Each takes one download, which is
kept in the cache; expect half a gigabyte.
"""

import sys
from datetime import UTC, datetime

from investigator import npm_client
from investigator.nodes import layout
from investigator.nodes.interface import NodeRequest
from investigator.nodes.npm import NpmNodes
from investigator.nodes.sources import platform_for

_HEAD = """\
# V8, ABI (NODE_MODULE_VERSION) and highest Node-API version of Node releases, read from the headers in the
# release packages on {date}. A span holds from `first` to the next span of the same major. Only a table for
# the eye: what is measured is what a binary says of itself. To refresh it:
#   python -m investigator.nodes.refresh_releases {majors}
"""


_SPAN = """
[[span]]
first = "{first}"
v8 = "{v8}"
abi = "{abi}"
napi = "{napi}"
"""


def main(majors: list[int]) -> None:
    """Write the table to standard output."""
    source = NpmNodes(platform=platform_for("docker"))
    releases = [npm_client.precedence(version) for version in npm_client.versions(source.package)]
    date = datetime.now(UTC).date()
    sys.stdout.write(_HEAD.format(date=date, majors=" ".join(map(str, majors))))
    for major in majors:
        line = [str(version) for version in releases if version.major == major and not version.prerelease]
        for index in _changes(source, line, 0, len(line) - 1, first=True):
            facts = _facts(source, line[index])
            sys.stdout.write(_SPAN.format(first=line[index], v8=facts[0], abi=facts[1], napi=facts[2]))
            sys.stdout.flush()


def _changes(source: NpmNodes, line: list[str], low: int, high: int, *, first: bool) -> list[int]:
    """Indexes of the releases that differ from the one before; `low` itself where `first`."""
    found = [low] if first else []
    if _facts(source, line[low]) == _facts(source, line[high]):
        return found
    if high - low == 1:
        return [*found, high]
    middle = (low + high) // 2
    return [
        *found,
        *_changes(source, line, low, middle, first=False),
        *_changes(source, line, middle, high, first=False),
    ]


def _facts(source: NpmNodes, version: str) -> tuple[str, str, str]:
    resolved = source.resolve(NodeRequest(source="npm", selector=version))
    facts = layout.read_headers(source.fetch(resolved), version)
    return facts.v8, facts.abi, facts.napi


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]])
