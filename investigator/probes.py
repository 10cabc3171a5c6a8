"""The probe addons of an environment: what crosses the boundary, and what does not, each by itself.

Three kinds of native code are compiled against the environment's Node, beside the addon under test:

* ``boundary``: primitives of the API between JavaScript and C++, in V8's own API and in Node-API;
* ``core``: the SQL of the operations in C loops, linked with the object file of the addon's own SQLite;
* ``replay``: the addon's *own sources*, compiled with its own flags, on a SQLite of a few hundred lines that
  computes nothing and plays recorded rows. What a call costs there is what the addon and Node do for it, in exactly
  the sequence that the addon's release makes on this Node: no table of releases can be wrong about it, and a
  patch is part of it.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from investigator.protocol import Dialect


class ProbeBuild(msgspec.Struct, frozen=True, kw_only=True):
    """Compiled probes of one environment, from the cache or fresh."""

    key: str
    """Content address: Node digest, addon build, compiler, sources of the probes."""
    directory: Path
    """Cache entry with all binaries and their logs."""
    boundary: str
    """The primitives in V8's API, relative to `directory`; also the clock of the main thread."""
    boundary_napi: str | None
    """The primitives in Node-API; None where this Node's is too old."""
    core: str | None
    """The loops in C; None where there is no addon, or none that brings its SQLite."""
    replay: str | None
    """The addon on a SQLite that plays recorded rows; None: see `reason`."""
    dialect: Dialect | None
    """API that the addon's binary calls; None without a replay."""
    reason: str = ""
    """Why there is no replay, one sentence."""
    core_reason: str = ""
    """Why there is no core module, one sentence."""
    row_builder: str | None = None
    """How the addon makes row objects, as its binary shows: ``set`` (a property at a time), ``bulk`` (names and values
    at once), ``factory`` (a JavaScript function); None where that is not known."""
    flags: Mapping[str, str] = {}
    """Command line of the compiler per source file, and of the linker per binary."""
    sha256: Mapping[str, str] = {}
    """Digest of each binary, by file name."""
    elapsed_s: float = 0.0
    """What the build took when it was made."""
