"""Which release a selector means, given the list of releases. Pure."""

from collections.abc import Callable, Iterable
from datetime import date

import semantic_version

from investigator.errors import UsageError
from investigator.nodes.parse import CHANNEL, CHANNELS, EXACT
from investigator.text import clean_text

IsLts = Callable[[str], bool]


def select(selector: str, versions: Iterable[str], *, is_lts: IsLts, where: str) -> str:
    """Find the newest of `versions` that `selector` (as `parse_versions` made it) accepts.

    Pre-releases count for exact versions and channels only. `where` names the list in the error.

    Raises:
        UsageError: none does; it names the nearest releases.
    """
    # A list from outside may hold what has the form and is no version, such as 24.01.1.
    known = {semantic_version.Version(v): v for v in versions if semantic_version.validate(v)}
    if EXACT.fullmatch(selector):
        wanted = semantic_version.Version(selector)
        if wanted in known:
            return known[wanted]
        raise UsageError(f"{where} has no Node {selector}; {_nearest(wanted, known)}")
    fitting = [version for version in known if _accepts(selector, version, known[version], is_lts)]
    if fitting:
        return known[max(fitting)]
    releases = [version for version in known if not version.prerelease]
    if releases:
        newest = f"the newest release there is {max(releases)}"
    elif known:
        newest = f"it has pre-releases only: name one ({max(known)}), or {', '.join(CHANNELS)}"
    else:
        newest = "it has no release at all"
    raise UsageError(f"{where} has no Node that {clean_text(selector, 60)} accepts; {newest}")


def is_lts_by_date(version: str, today: date) -> bool:
    """Whether the line of `version` has long-term support, where a list does not say.

    npm's metadata does not. The rule of the release schedule: even lines, from the end of October of the year
    they came out in (20: 2023, 22: 2024, 24: 2025, ...), and they keep the name for good.
    """
    major = int(version.split(".", 1)[0])
    return major >= 4 and major % 2 == 0 and today >= date(2013 + major // 2, 10, 28)


def _accepts(selector: str, version: semantic_version.Version, text: str, is_lts: IsLts) -> bool:
    if found := CHANNEL.fullmatch(selector):
        major, channel = found.groups()
        tag = ".".join(version.prerelease)
        return tag.startswith(channel) and (major is None or version.major == int(major))
    if version.prerelease:
        return False
    if selector == "latest":
        return True
    if selector == "lts":
        return is_lts(text)
    return bool(semantic_version.NpmSpec(selector).match(version))


def _nearest(wanted: semantic_version.Version, known: Iterable[semantic_version.Version]) -> str:
    releases = [version for version in known if not version.prerelease]
    below = max((version for version in releases if version < wanted), default=None)
    above = min((version for version in releases if version > wanted), default=None)
    near = [str(version) for version in (below, above) if version is not None]
    if not near:
        return "it has no release at all"
    return f"the nearest {'are' if len(near) > 1 else 'is'} {' and '.join(near)}"
