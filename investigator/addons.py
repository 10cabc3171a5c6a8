"""The addon under test: which release, and its unpacked package. Nothing of it is run or built here."""

from pathlib import Path
from typing import Literal

import msgspec

AddonKind = Literal["package", "node:sqlite"]


class AddonPackage(msgspec.Struct, frozen=True, kw_only=True):
    """An addon release, fetched with its scripts disabled and unpacked."""

    name: str
    """npm name, or ``node:sqlite``."""
    version: str
    """``12.11.1``; for ``node:sqlite`` the empty string (its version is the Node build's)."""
    kind: AddonKind = "package"
    directory: Path | None = None
    """The unpacked package (read-only for everybody); None for ``node:sqlite``."""
    integrity: str = ""
    """npm's integrity value; for ``path:`` a digest of the tree."""
    engines: str = "*"
    """The package's own ``engines.node`` range."""
    encrypted: bool = True
    """Whether it has ciphers at all (better-sqlite3 and node:sqlite have none)."""
    patch_sha256: str | None = None
    """Digest of the patch that was applied to `directory`, if any."""

    @property
    def short(self) -> str:
        """Short form for environment identifiers: ``bsm12.11.1``, ``bs312.4.1``, ``nodesqlite``."""
        prefix = {
            "better-sqlite3-multiple-ciphers": "bsm",
            "better-sqlite3": "bs3-",
            "node:sqlite": "nodesqlite",
        }.get(self.name, f"{self.name}-")
        return f"{prefix}{self.version}"
