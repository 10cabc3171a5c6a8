"""The programs that may show a finding, as text: what each does, best first. Nothing is run here.

A program is a folder with one script that prints ``{"ns_per_call": ...}`` and needs none of this project.
What comes from outside (names, parameters, a cipher) reaches a script as a JSON literal or file, never as
code.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

import msgspec

from investigator import resources
from investigator.addons import CIPHER_ADDON, NODE_SQLITE, AddonPackage
from investigator.npm_client import precedence
from investigator.operations import Operation
from investigator.plan import Environment, Pace, Plan
from investigator.repro.manifest import ProgramKind
from sqlcipher_bench import mailbox
from sqlcipher_bench.profiles import NO_CIPHER, PRAGMAS, PRODUCTION

TEMPLATES = Path(__file__).parent / "templates"
PASSES = 8
"""Twice the usual: a reproduction has fewer processes than a run."""
MAX_NATIVE_LINES = 60
"""What an upstream maintainer reads without being asked twice (upstream checklist)."""
OF_THE_FILE = ("encoding", "auto_vacuum")
PASSPHRASE = "a public passphrase for synthetic mail"  # noqa: S105 - as public as the data

_IMPORT = re.compile(r"""^import \{[^}]*\} from '(?P<from>[^']+)';\n""", re.M)
_TEXTS = re.compile(r"bind_text_(?P<encoding>ascii|latin1|twobyte)_(?P<length>\d+)(?P<thousand>k?)")
_UNITS = {
    "ascii": ("ASCII", 1, "0x61 + ((7 * j + k) % 26)"),
    "latin1": ("Latin-1, every eighth character é", 1, "j % 8 === 7 ? 0xe9 : 0x61 + ((7 * j + k) % 26)"),
    "twobyte": ("Cyrillic, two bytes a character", 2, "0x430 + ((7 * j + k) % 32)"),
}
_WORD = re.compile(r"-?[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_WITHOUT_FLAG = ("22.13.0", "23.4.0")
"""From these on node:sqlite needs no flag: in line 22, and in line 23."""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A program that has not been run yet."""

    name: str
    """Name of its folder."""
    kind: ProgramKind
    title: str
    script: str
    """File that is run."""
    compile: bool = False
    """Whether its folder has a ``binding.gyp``."""
    addon: bool = False
    """Whether it wants the addon of its side."""
    files: Mapping[str, bytes]
    """By name in its folder; the one to read first comes first."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be reproduced."""

    plan: Plan
    operation: Operation
    pace: Pace
    """Calls as the measurement made them."""
    sides: tuple[Environment, Environment]
    """Baseline, candidate."""
    workloads: Path
    """Folder with the user's own files, as the run keeps them."""


def drafts(question: Question) -> tuple[Draft, ...]:
    """Programs that may show the finding, those that need least first; none for the probes' operations."""
    operation = question.operation
    if operation.group.startswith("workload:"):
        return (_workload(question),)
    if operation.family == "js":
        return (_js(question),)
    if operation.family != "sqlite":
        return ()
    made = (_encoder(question), _native(question), _node_sqlite(question))
    own = tuple(draft for draft in made if draft is not None)
    return own if _addon(question).kind == "node:sqlite" else (*own, _real(question))


def _addon(question: Question) -> AddonPackage:
    addon = question.sides[1].addon
    if addon is None:
        raise ValueError(f"{question.operation.name} has no addon")
    return addon


# -- pure JavaScript --------------------------------------------------------------------------------------


def _js(question: Question) -> Draft:
    operation = question.operation
    source = inlined(operation.module)
    body = f"{source}\nconst state = setup({{ seed: {question.plan.spec.seed} }});\n"
    text = _program(question, body, run="run(state, i)")
    return Draft(
        name="snippet-js",
        kind="js",
        title=f"{operation.name} in plain JavaScript",
        script="snippet.mjs",
        files={"snippet.mjs": text},
    )


def _encoder(question: Question) -> Draft | None:
    """Strings to UTF-8 by Node itself; None for operations that bind no text.

    TextEncoder asks for a length and writes, as an addon does. Buffer.from, whose memory comes and goes with
    the collector, showed half of it: +59 % where the addon had +109 %.
    """
    texts = _TEXTS.fullmatch(question.operation.name)
    if texts is None or question.plan.spec.axis == "addon":
        return None
    what, _, _ = _UNITS[texts["encoding"]]
    body = f"{_texts(texts)}\nconst encoder = new TextEncoder();\n"
    return Draft(
        name="snippet-js",
        kind="js",
        title=f"a string of {_length(texts):,} characters ({what}) to UTF-8 by TextEncoder, no addon",
        script="snippet.mjs",
        files={"snippet.mjs": _program(question, body, run="encoder.encode(texts[i & 3])")},
    )


def inlined(module: str) -> str:
    """Source of one of our own modules with what it imports from beside it, without import and export."""
    place = PurePosixPath(module)
    text = (resources.root() / module).read_text("utf-8")
    parts, builtin = [], []
    for found in _IMPORT.finditer(text):
        if found["from"].startswith("."):
            parts.append(inlined(str(_resolved(place.parent, found["from"]))))
        else:
            builtin.append(found.group())
    own = re.sub(r"^export (?=const|function)", "", _IMPORT.sub("", text), flags=re.M)
    return "".join(builtin) + "\n".join([*parts, own.strip() + "\n"])


def _resolved(folder: PurePosixPath, name: str) -> PurePosixPath:
    while name.startswith("../"):
        folder, name = folder.parent, name[3:]
    return folder / name.removeprefix("./")


# -- an addon of a few lines ------------------------------------------------------------------------------


def _native(question: Question) -> Draft | None:
    """A few lines of C++ that make the addon's calls; None where no such few lines are known."""
    if question.plan.spec.axis == "addon" or _addon(question).kind != "package":
        return None
    texts = _TEXTS.fullmatch(question.operation.name)
    if texts is not None:
        return _utf8(question, texts)
    if question.operation.name == "select_range" and _addon(question).napi is None:
        return _rows(question)
    return None


def _utf8(question: Question, texts: re.Match[str]) -> Draft:
    what, _, _ = _UNITS[texts["encoding"]]
    body = f"{_texts(texts)}\n{_require_snippet()}const {{ convert }} = {_BUILT};\n"
    napi = _addon(question).napi is not None
    api = "Node-API" if napi else "V8's API"
    return Draft(
        name="snippet-napi" if napi else "snippet-v8",
        kind="napi_addon" if napi else "v8_addon",
        title=f"a string of {_length(texts):,} characters ({what}) to UTF-8 through {api}, then counted",
        script="snippet.mjs",
        compile=True,
        files={
            "snippet.cc": _template("napi.cc" if napi else "utf8.cc").encode(),
            "snippet.mjs": _program(question, body, run="convert(texts[i & 3])"),
            "binding.gyp": _template("binding.gyp").encode(),
        },
    )


def _rows(question: Question) -> Draft:
    addon = _addon(question)
    bulk = "NODE_MODULE_VERSION >= 127" if addon.name == CIPHER_ADDON and _is_bulk(addon.version) else "0"
    body = f"{_require_snippet()}const all = {_BUILT}.id;\n"
    return Draft(
        name="snippet-v8",
        kind="v8_addon",
        title="50 row objects of 4 columns made as the addon makes them, without SQLite",
        script="snippet.mjs",
        compile=True,
        files={
            "snippet.cc": _template("rows.cc").replace("@@BULK@@", bulk).encode(),
            "snippet.mjs": _program(question, body, run="all()"),
            "binding.gyp": _template("binding.gyp").encode(),
        },
    )


_BUILT = "require('./build/Release/snippet.node')"


def _is_bulk(version: str) -> bool:
    """Releases from 12.3 on make rows in bulk where Node is 22 or newer."""
    return bool(precedence(version) >= precedence("12.3.0"))


def _require_snippet() -> str:
    return (
        "import { createRequire } from 'node:module';\n\nconst require = createRequire(import.meta.url);\n"
        "// Made by `node-gyp rebuild` from snippet.cc.\n"
    )


def _texts(texts: re.Match[str]) -> str:
    what, width, unit = _UNITS[texts["encoding"]]
    head = f"const LENGTH = {_length(texts)};\nconst WIDTH = {width};\n"
    return head + _template("texts.js").replace("@@WHAT@@", what).replace("@@UNIT@@", unit)


def _length(texts: re.Match[str]) -> int:
    return int(texts["length"]) * (1000 if texts["thousand"] else 1)


# -- on a database ----------------------------------------------------------------------------------------


def _node_sqlite(question: Question) -> Draft | None:
    """The same statement through node:sqlite, where both releases have that without a flag."""
    name = question.operation.name
    if question.plan.spec.axis == "addon" or not all(_has_sqlite(e.node.version) for e in question.sides):
        return None
    own = _addon(question).kind == "node:sqlite"
    # It binds strings in a way of its own; writing is what SQLite and the disk do, not Node.
    if not own and (not name.startswith("select_") or name == "select_range_raw"):
        return None
    database = "import { DatabaseSync as Database } from 'node:sqlite';\n"
    body = _on_database(question, database, NO_CIPHER).replace(".pluck()", "")
    body = re.sub(r"^const statement = (.*)\.raw\(\);$", _RAW, body, flags=re.M)
    return Draft(
        name="snippet-sqlite",
        kind="node_sqlite",
        title=f"{name} through node:sqlite, not encrypted",
        script="snippet.mjs",
        files={"snippet.mjs": _program(question, body)},
    )


_RAW = r"const statement = \1;\nstatement.setReturnArrays(true);"


def _has_sqlite(version: str) -> bool:
    release = precedence(version)
    in_22, in_23 = (precedence(first) for first in _WITHOUT_FLAG)
    return bool(in_22 <= release < precedence("23.0.0-0") or release >= in_23)


def _real(question: Question) -> Draft:
    addon = _addon(question)
    database = (
        "import { createRequire } from 'node:module';\n\n"
        "// run.mjs compiles the addon for each Node, and says where it and its binary are.\n"
        "const require = createRequire(import.meta.url);\n"
        f"const Addon = require(process.env.REPRO_ADDON ?? {json.dumps(addon.name)});\n"
        "class Database extends Addon {\n"
        "  constructor(name) {\n"
        "    super(name, process.env.REPRO_BINDING ? { nativeBinding: process.env.REPRO_BINDING } : {});\n"
        "  }\n"
        "}\n"
    )
    cipher = question.plan.spec.cipher if addon.encrypted else NO_CIPHER
    shown = "not encrypted" if cipher == NO_CIPHER else cipher
    return Draft(
        name="real",
        kind="real",
        title=f"{question.operation.name} through the addon itself, {shown}",
        script="real.mjs",
        addon=True,
        files={"real.mjs": _program(question, _on_database(question, database, cipher))},
    )


def _on_database(question: Question, database: str, cipher: str) -> str:
    operation, spec = question.operation, question.plan.spec
    key = [] if cipher == NO_CIPHER else [f"PRAGMA cipher = '{cipher}'", f"PRAGMA key = '{PASSPHRASE}'"]
    settings = PRODUCTION.pragmas | {k: v for k, v in spec.params.items() if k in PRAGMAS}
    if not all(_WORD.fullmatch(word) for word in (cipher, *settings.values())):
        raise ValueError("a cipher or a PRAGMA of the run is neither a word nor a number")
    pragmas = {name: f"PRAGMA {name} = {_quoted(value)}" for name, value in settings.items()}
    texts = _TEXTS.fullmatch(operation.name)
    constants = {
        "SEED": spec.seed,
        "KEY": key,
        "FILE_PRAGMAS": [text for name, text in pragmas.items() if name in OF_THE_FILE],
        "PRAGMAS": [text for name, text in pragmas.items() if name not in OF_THE_FILE],
        "SCHEMA": _without_comments((resources.root() / "sqlcipher_bench/schema.sql").read_text("utf-8")),
        "LOAD": _sql()["load_message"],
        "ATTACHMENTS": _sql()["load_attachments"],
        "SQL": _sql()[operation.name],
    }
    if texts is not None:
        # Nothing is read: an empty database with the same settings will do.
        constants = {name: constants[name] for name in ("KEY", "FILE_PRAGMAS", "PRAGMAS", "SQL")}
    imports = (
        "import { mkdtempSync, rmSync } from 'node:fs';\nimport { tmpdir } from 'node:os';\n"
        f"import {{ join }} from 'node:path';\n{database}\n"
    )
    declared = "".join(f"const {name} = {_literal(value)};\n" for name, value in constants.items())
    if texts is not None:
        opened = _template("database.js").partition("\ndb.exec(SCHEMA)")[0]
        opened = re.sub(r"(?s)// A mailbox.*?(?=const directory)", "", opened)
        opened = re.sub(r"(?s)function open\(.*?\n}\n\n", "", opened)
        run = "const statement = db.prepare(SQL).pluck();\nconst run = (i) => statement.get(texts[i & 3]);\n"
        return f"{imports}{declared}{_texts(texts)}{opened}\n{run}"
    return f"{imports}{declared}{_template('database.js')}\n{_bodies()[operation.name]}\n{_mailbox()}"


def _quoted(value: str) -> str:
    """A setting's value as SQL; the run's own check has let only words and numbers through."""
    return f"'{value}'" if "-" in value[1:] else value


def _literal(value: object) -> str:
    """A JavaScript literal; long SQL as a template that can be read."""
    if isinstance(value, str) and "\n" in value and not set("`\\$") & set(value):
        return f"`\n{value}\n`"
    return json.dumps(value, ensure_ascii=True)


def _mailbox() -> str:
    words, accented = mailbox._WORDS.split(), mailbox._ACCENTED.split()  # noqa: SLF001 - the same data
    filled = {
        "WORDS": words,
        "ACCENTED": [*words[20:], *accented],
        "NAMES": mailbox._NAMES.split(),  # noqa: SLF001
        "SURNAMES": mailbox._SURNAMES.split(),  # noqa: SLF001
    }
    text = _template("mailbox.js")
    for name, values in filled.items():
        literal = json.dumps(" ".join(values), ensure_ascii=False)
        text = text.replace(f"@@{name}@@", f"{literal}.split(' ')")
    flags = json.dumps(mailbox._FLAG_SETS)  # noqa: SLF001
    return text.replace("@@FLAGS@@", flags).replace("@@BOXES@@", json.dumps(mailbox.MAILBOXES))


@lru_cache(maxsize=1)
def _sql() -> dict[str, str]:
    return _sections((resources.root() / "sqlcipher_bench/queries.sql").read_text("utf-8"), "--")


@lru_cache(maxsize=1)
def _bodies() -> dict[str, str]:
    return _sections(_template("operations.js"), "//")


def _sections(text: str, comment: str) -> dict[str, str]:
    """Sections that begin with lines ``-- name: NAME``; several names share the text below them."""
    sections: dict[str, str] = {}
    names: list[str] = []
    lines: list[str] = []
    for line in [*text.splitlines(), f"{comment} name: "]:
        if line.startswith(f"{comment} name:"):
            if any(other.strip() for other in lines):
                sections |= dict.fromkeys(names, "\n".join(lines).strip())
                names, lines = [], []
            names.append(line.partition(":")[2].strip())
        elif names and not line.startswith(comment):
            lines.append(line)
    return sections


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line and not line.startswith("--"))


# -- a workload of the user's own -------------------------------------------------------------------------


def _workload(question: Question) -> Draft:
    operation, spec = question.operation, question.plan.spec
    addon = question.sides[1].addon
    kind = None if addon is None else "node:sqlite" if addon.name == NODE_SQLITE else addon.kind
    settings = {
        "file": operation.module,
        "workload": operation.workload,
        "seed": spec.seed,
        "params": spec.params,
        "database": None if addon is None else {"kind": kind, "encrypted": addon.encrypted},
        "cipher": spec.cipher,
        "warmup": question.pace.warmup_calls,
        "calls": question.pace.loops,
        "passes": PASSES,
    }
    return Draft(
        name="workload",
        kind="workload",
        title=f"the workload {operation.name} itself",
        script="workload.mjs",
        addon=kind == "package",
        files={
            operation.module: (question.workloads / operation.module).read_bytes(),
            "workload.mjs": (_template("workload.mjs") + _template("timing.js")).encode(),
            "settings.json": json.dumps(settings, indent=1).encode(),
        },
    )


# -- what all have in common ------------------------------------------------------------------------------


def _program(question: Question, body: str, run: str = "run(i)") -> bytes:
    """A whole script: `body` with its imports, the loop over `run`, and the clock."""
    imports = "".join(sorted(set(re.findall(r"^import .*\n", body, re.M))))
    rest = re.sub(r"^import .*\n", "", body, flags=re.M)
    restores = re.search(r"^const restore\b", body, re.M) is not None
    pace = question.pace
    call = (
        f"await time({{ warmup: {pace.warmup_calls}, calls: {pace.loops}, passes: {PASSES}, loop"
        f"{', restore' if restores else ''} }});\n"
    )
    head = "// Prints nanoseconds per call. Run it under two releases of Node; ../run.sh does, by turns.\n"
    loop = _template("loop.js").replace("run(i)", run)
    rest = re.sub(r"\n{3,}", "\n\n", f"{rest}{loop}\n{call}{_template('timing.js')}")
    return f"{head}{imports}\n{rest.lstrip()}".encode()


@lru_cache(maxsize=32)
def _template(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")
