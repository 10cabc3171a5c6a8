"""The programs that may show a finding, as text: what each does, best first. Nothing is run here.

A program is a folder with one script that prints ``{"ns_per_call": ...}`` and needs none of this project.
What comes from outside (names, parameters, a cipher) reaches a script as a JSON literal or file, never as
code.
"""

import json
import re

from investigator.addons import NODE_SQLITE, AddonPackage
from investigator.errors import StoredFileError
from investigator.npm_client import precedence
from investigator.repro.fragments import (
    PASSES,
    TEXTS,
    UNITS,
    inlined,
    length_of,
    on_database,
    program,
    template,
    texts_text,
)
from investigator.repro.shapes import Draft, Question
from investigator.spec import CIPHER_ADDON
from sqlcipher_bench.profiles import NO_CIPHER

MAX_NATIVE_LINES = 60
"""What an upstream maintainer reads without being asked twice (upstream checklist)."""

_WITHOUT_FLAG = ("22.13.0", "23.4.0")
"""From these on node:sqlite needs no flag: in line 22, and in line 23."""


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
        raise StoredFileError(f"the run's plan has no addon for {question.operation.name[:80]}.")
    return addon


# -- pure JavaScript --------------------------------------------------------------------------------------


def _js(question: Question) -> Draft:
    operation = question.operation
    source = inlined(operation.module)
    body = f"{source}\nconst state = setup({{ seed: {question.plan.spec.seed} }});\n"
    text = program(question, body, run="run(state, i)")
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
    texts = TEXTS.fullmatch(question.operation.name)
    if texts is None or question.plan.spec.axis == "addon":
        return None
    what, _, _ = UNITS[texts["encoding"]]
    body = f"{texts_text(texts)}\nconst encoder = new TextEncoder();\n"
    return Draft(
        name="snippet-js",
        kind="js",
        title=f"a string of {length_of(texts):,} characters ({what}) to UTF-8 by TextEncoder, no addon",
        script="snippet.mjs",
        files={"snippet.mjs": program(question, body, run="encoder.encode(texts[i & 3])")},
    )


# -- an addon of a few lines ------------------------------------------------------------------------------


def _native(question: Question) -> Draft | None:
    """A few lines of C++ that make the addon's calls; None where no such few lines are known."""
    if question.plan.spec.axis == "addon" or _addon(question).kind != "package":
        return None
    texts = TEXTS.fullmatch(question.operation.name)
    if texts is not None:
        return _utf8(question, texts)
    if question.operation.name == "select_range" and _addon(question).napi is None:
        return _rows(question)
    return None


def _utf8(question: Question, texts: re.Match[str]) -> Draft:
    what, _, _ = UNITS[texts["encoding"]]
    body = f"{texts_text(texts)}\n{_require_snippet()}const {{ convert }} = {_BUILT};\n"
    napi = _addon(question).napi is not None
    api = "Node-API" if napi else "V8's API"
    text = template("napi.cc" if napi else "utf8.cc").replace("@@COUNT@@\n", template("count.cc"))
    return Draft(
        name="snippet-napi" if napi else "snippet-v8",
        kind="napi_addon" if napi else "v8_addon",
        title=f"a string of {length_of(texts):,} characters ({what}) to UTF-8 through {api}, then counted",
        script="snippet.mjs",
        compile=True,
        files={
            "snippet.cc": text.encode(),
            "snippet.mjs": program(question, body, run="convert(texts[i & 3])"),
            "binding.gyp": template("binding.gyp").encode(),
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
            "snippet.cc": template("rows.cc").replace("@@BULK@@", bulk).encode(),
            "snippet.mjs": program(question, body, run="all()"),
            "binding.gyp": template("binding.gyp").encode(),
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
    body = on_database(question, database, NO_CIPHER).replace(".pluck()", "")
    body = re.sub(r"^const statement = (.*)\.raw\(\);$", _RAW, body, flags=re.M)
    return Draft(
        name="snippet-sqlite",
        kind="node_sqlite",
        title=f"{name} through node:sqlite, not encrypted",
        script="snippet.mjs",
        files={"snippet.mjs": program(question, body)},
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
        files={"real.mjs": program(question, on_database(question, database, cipher))},
    )


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
        "calls": question.pace.pass_calls,
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
            "workload.mjs": (template("workload.mjs") + template("timing.js")).encode(),
            "settings.json": json.dumps(settings, indent=1).encode(),
        },
    )
