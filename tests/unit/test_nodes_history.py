"""The order of releases: lines that branch, ports, nightlies by date."""

import pytest

from investigator.errors import UsageError
from investigator.nodes.history import Release, channel, is_before, path

VERSIONS = (
    "22.0.0", "22.9.0", "22.10.0", "22.21.1", "23.0.0", "23.11.0", "23.11.1",
    "24.0.0", "24.0.1", "24.10.0", "24.11.1", "24.19.0", "25.0.0", "25.7.0",
)  # fmt: skip
RELEASES = tuple(Release(version=version) for version in reversed(VERSIONS))


def way(old: str, new: str, lines: tuple[int, ...] = ()) -> list[str]:
    return [release.version for release in path(RELEASES, old, new, lines)]


def test_within_a_line_it_is_the_line() -> None:
    assert way("24.0.0", "24.19.0") == ["24.0.0", "24.0.1", "24.10.0", "24.11.1", "24.19.0"]


def test_across_lines_what_was_only_ported_is_left_out() -> None:
    assert way("22.0.0", "24.11.1") == [
        "22.0.0", "22.9.0", "23.0.0", "23.11.0", "24.0.0", "24.0.1", "24.10.0", "24.11.1",
    ]  # fmt: skip


def test_an_end_beyond_the_branch_point_has_the_point_beside_it() -> None:
    assert way("22.21.1", "24.0.1") == ["22.21.1", "22.9.0", "23.0.0", "23.11.0", "24.0.0", "24.0.1"]
    assert way("23.11.1", "24.0.1") == ["23.11.1", "23.11.0", "24.0.0", "24.0.1"]


def test_the_newer_end_keeps_its_own_line_whole() -> None:
    assert way("24.19.0", "25.7.0") == ["24.19.0", "24.10.0", "25.0.0", "25.7.0"]


def test_one_line_alone() -> None:
    assert way("22.21.1", "24.11.1", (24,)) == ["22.21.1", "24.0.0", "24.0.1", "24.10.0", "24.11.1"]


def test_dates_of_a_site_decide_where_there_are_any() -> None:
    dated = (
        Release(version="40.0.0", published="2030-04-01"),
        Release(version="40.5.0", published="2030-09-01"),
        Release(version="40.6.0", published="2030-10-20"),
        Release(version="41.0.0", published="2030-10-20"),
        Release(version="41.1.0", published="2030-11-20"),
    )
    found = [release.version for release in path(dated, "40.0.0", "41.1.0")]
    assert found == ["40.0.0", "40.5.0", "41.0.0", "41.1.0"]


def test_a_line_without_dates_or_a_known_point_stays_whole() -> None:
    unknown = tuple(Release(version=v) for v in ("40.0.0", "40.5.0", "40.6.0", "41.0.0"))
    assert len(path(unknown, "40.0.0", "41.0.0")) == 4


def test_nightlies_are_ordered_by_date() -> None:
    names = (
        "25.0.0-nightly20250601aaaaaaaaaa",
        "24.0.0-nightly20250301bbbbbbbbbb",
        "25.0.0-nightly20250510cccccccccc",
        "26.0.0-nightly20251101dddddddddd",
        "24.0.0-v8-canary20250401eeeeeeeeee",
        "24.3.0",
    )
    found = path(tuple(Release(version=v) for v in names), names[1], names[3])
    assert [release.version for release in found] == [names[1], names[2], names[0], names[3]]


def test_releases_and_nightlies_do_not_mix() -> None:
    with pytest.raises(UsageError, match="one history"):
        path(RELEASES, "24.0.0", "25.0.0-nightly20250601aaaaaaaaaa")


def test_the_newer_end_must_be_newer() -> None:
    with pytest.raises(UsageError, match="not newer"):
        path(RELEASES, "24.0.0", "23.0.0")


def test_channels() -> None:
    names = ("24.0.0", "24.0.0-nightly20250301ab", "24.0.0-v8-canary20250401ee", "1.0.0-rc.1")
    assert [channel(v) for v in names] == [
        "", "nightly", "v8-canary", "rc",
    ]  # fmt: skip
    assert is_before("1.0.0-rc.1", "1.0.0-rc.2")
    assert not is_before("24.10.0", "24.9.0")
