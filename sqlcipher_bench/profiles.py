"""Cipher schemes and PRAGMA profiles: the production profile of the published suite and its nine variations.

The production values themselves stand in ``queries.sql`` (section ``pragmas``), where the JavaScript
operations and the C program find them; a test keeps the two equal. A variation is a set of parameters: what
``--param`` and ``--cipher`` would say.
"""

import msgspec

CIPHERS = ("chacha20", "aegis", "ascon128", "sqlcipher", "aes256cbc", "aes128cbc", "rc4")
"""Schemes that are compiled into better-sqlite3-multiple-ciphers (SQLite3 Multiple Ciphers), by the names
that ``PRAGMA cipher`` takes. Older releases of the addon lack the youngest (aegis, ascon128): the database
answers that itself."""

NO_CIPHER = "none"

PRAGMAS = (
    "encoding",
    "auto_vacuum",
    "journal_mode",
    "secure_delete",
    "synchronous",
    "foreign_keys",
    "temp_store",
    "busy_timeout",
    "wal_autocheckpoint",
    "cache_size",
    "mmap_size",
)
"""Names that ``--param`` may change in the built-in operations; values are checked where they are applied."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration of the published suite."""

    name: str
    cipher: str = "chacha20"
    pragmas: dict[str, str] = {}
    """Differences from the production profile; for production itself, everything it sets."""


PRODUCTION = Profile(
    name="production",
    pragmas={
        "encoding": "UTF-8",
        "auto_vacuum": "FULL",
        "journal_mode": "WAL",
        "secure_delete": "ON",
        "synchronous": "NORMAL",
        "foreign_keys": "ON",
        "temp_store": "1",
        "busy_timeout": "30000",
    },
)

VARIATIONS = (
    Profile(name="temp_store_memory", pragmas={"temp_store": "2"}),
    Profile(name="synchronous_off", pragmas={"synchronous": "OFF"}),
    Profile(name="synchronous_extra", pragmas={"synchronous": "EXTRA"}),
    Profile(name="auto_vacuum_none", pragmas={"auto_vacuum": "NONE"}),
    Profile(name="auto_vacuum_incremental", pragmas={"auto_vacuum": "INCREMENTAL"}),
    Profile(name="wal_autocheckpoint_1000", pragmas={"wal_autocheckpoint": "1000"}),
    Profile(name="cache_size_64mb", pragmas={"cache_size": "-64000"}),
    Profile(name="mmap_256mb", pragmas={"mmap_size": "268435456"}),
    Profile(name="no_encryption", cipher=NO_CIPHER),
)
"""The nine variations. The published ``no_encryption`` also changes the addon, to plain better-sqlite3."""
