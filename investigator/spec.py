"""The spec: everything that defines an investigation. Command-line options make one; so does a TOML file."""

from typing import Literal

import msgspec

SPEC_SCHEMA = 1

Command = Literal["sqlite", "js"]
EngineChoice = Literal["auto", "docker", "local"]
Storage = Literal["tmpfs", "disk"]
Flavor = Literal["source", "prebuilt"]
FailOn = Literal["slower", "none"]


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """One investigation. Percentages are in percent, durations in minutes as the option names say."""

    schema: int = SPEC_SCHEMA
    command: Command = "sqlite"
    versions: tuple[str, ...]
    baseline: str | None = None
    addon: str = "better-sqlite3-multiple-ciphers"
    prebuilt: bool = False
    patch: str | None = None
    node_flags: tuple[str, ...] = ()
    ops: tuple[str, ...] = ("essential",)
    workloads: tuple[str, ...] = ()
    params: dict[str, str] = {}
    cipher: str = "chacha20"
    engine: EngineChoice = "auto"
    base_image: str | None = None
    cpus: str | None = None
    storage: Storage = "tmpfs"
    rounds: int = 8
    max_rounds: int = 16
    passes: int = 6
    margin_pct: float = 2.0
    equivalence_pct: float = 3.0
    finding_pct: float = 5.0
    budget_min: float = 5.0
    seed: int = 1
    fail_on: FailOn = "none"
