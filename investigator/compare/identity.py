"""Which environments of two runs are the same: by what they were made of, never by label."""

import msgspec

from investigator.report.summary import SummaryEnvironment
from investigator.stored_run import StoredRun


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a pair in one run."""

    run: StoredRun
    environment: SummaryEnvironment
    family: str
    """Of the operation: pure JavaScript does not depend on the addon that lies beside it."""

    @property
    def release(self) -> str:
        """The identifier without its label: ``node24.11.1+bsm12.11.1-prebuilt``, and the flags of Node."""
        label = self.environment.label
        plain = self.environment.id.removeprefix(f"{label}:") if label else self.environment.id
        if self.family == "js" and self.run.summary.axis == "node":
            plain = plain.partition("+")[0]
        return " ".join((plain, *self.environment.node_flags))

    @property
    def node(self) -> str:
        """The part of `release` that says which Node, without the word: ``24.11.1``."""
        return self.environment.node

    @property
    def addon(self) -> str:
        """The part of `release` that says what runs on Node: ``bsm12.11.1``; empty for none."""
        return self.release.removeprefix(f"node{self.environment.node}").lstrip("+").strip()


def same(one: Side, other: Side) -> str | None:
    """Why two sides of the same release are different programs all the same; None where nothing says so."""
    node_sha256 = {side.environment.node_sha256 for side in (one, other)} - {""}
    if len(node_sha256) > 1 and _platform(one.run) == _platform(other.run):
        return f"another build of Node {one.node} (its binary has another sha256)"
    if not one.addon:
        return None
    integrity = [side.run.addon_integrity.get(side.environment.id, "") for side in (one, other)]
    if all(integrity) and integrity[0] != integrity[1]:
        return f"another content of {one.addon} under the same version"
    if not all(integrity) and (_from_path(one.run) or _from_path(other.run)):
        return "an addon out of a folder, whose content a run without raw records does not tell"
    return None


def _platform(run: StoredRun) -> tuple[str, str]:
    """Releases of one version are different binaries on different platforms."""
    return run.record.host.kernel.partition(" ")[0], run.record.host.architecture


def _from_path(run: StoredRun) -> bool:
    return any("path:" in item for item in run.spec.addon_items)


def pair_name(baseline: Side, candidate: Side) -> str:
    """Name of a pair for people: what differs, then what does not: ``22.21.1 to 24.11.1, bsm12.11.1``."""
    if baseline.addon == candidate.addon:
        tail = f", {baseline.addon}" if baseline.addon else ""
        return f"{baseline.node} to {candidate.node}{tail}"
    if baseline.node == candidate.node and baseline.addon and candidate.addon:
        return f"{baseline.addon} to {candidate.addon}, Node {baseline.node}"
    return f"{baseline.release} to {candidate.release}"
