"""Pieces of the programs' texts: data, database, loop and clock; from templates and our own sources."""

import json
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath

from investigator import resources
from investigator.errors import StoredFileError
from investigator.repro.shapes import Question
from sqlcipher_bench import mailbox
from sqlcipher_bench.profiles import NO_CIPHER, PRAGMAS, PRODUCTION

TEMPLATES = Path(__file__).parent / "templates"
PASSES = 8
"""Twice the usual: a reproduction has fewer processes than a run."""
OF_THE_FILE = ("encoding", "auto_vacuum")
PASSPHRASE = "a public passphrase for synthetic mail"  # noqa: S105 - as public as the data

_IMPORT = re.compile(r"""^import \{[^}]*\} from '(?P<from>[^']+)';\n""", re.M)
TEXTS = re.compile(r"bind_text_(?P<encoding>ascii|latin1|twobyte)_(?P<length>\d+)(?P<thousand>k?)")
UNITS = {
    "ascii": ("ASCII", 1, "0x61 + ((7 * j + k) % 26)"),
    "latin1": ("Latin-1, every eighth character é", 1, "j % 8 === 7 ? 0xe9 : 0x61 + ((7 * j + k) % 26)"),
    "twobyte": ("Cyrillic, two bytes a character", 2, "0x430 + ((7 * j + k) % 32)"),
}
_WORD = re.compile(r"-?[A-Za-z0-9][A-Za-z0-9_-]{0,31}")


# -- the program as a whole --------------------------------------------------------------------------------


def program(question: Question, body: str, run: str = "run(i)") -> bytes:
    """A whole script: `body` with its imports, the loop over `run`, and the clock."""
    imports = "".join(sorted(set(re.findall(r"^import .*\n", body, re.M))))
    rest = re.sub(r"^import .*\n", "", body, flags=re.M)
    restores = re.search(r"^const restore\b", body, re.M) is not None
    pace = question.pace
    call = (
        f"await time({{ warmup: {pace.warmup_calls}, calls: {pace.pass_calls}, passes: {PASSES}, loop"
        f"{', restore' if restores else ''} }});\n"
    )
    head = "// Prints nanoseconds per call. Run it under two releases of Node; ../run.sh does, by turns.\n"
    loop = template("loop.js").replace("run(i)", run)
    rest = re.sub(r"\n{3,}", "\n\n", f"{rest}{loop}\n{call}{template('timing.js')}")
    return f"{head}{imports}\n{rest.lstrip()}".encode()


@lru_cache(maxsize=32)
def template(name: str) -> str:
    """Text of a template."""
    return (TEMPLATES / name).read_text("utf-8")


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


# -- strings ------------------------------------------------------------------------------------------------


def texts_text(texts: re.Match[str]) -> str:
    """Four strings of an operation that binds text."""
    what, width, unit = UNITS[texts["encoding"]]
    head = f"const LENGTH = {length_of(texts)};\nconst WIDTH = {width};\n"
    return head + template("texts.js").replace("@@WHAT@@", what).replace("@@UNIT@@", unit)


def length_of(texts: re.Match[str]) -> int:
    """Characters of its strings."""
    return int(texts["length"]) * (1000 if texts["thousand"] else 1)


# -- the database -------------------------------------------------------------------------------------------


def on_database(question: Question, database: str, cipher: str) -> str:
    """The operation on a database: `database` imports or defines the class, `cipher` may be ``none``."""
    operation, spec = question.operation, question.plan.spec
    key = [] if cipher == NO_CIPHER else [f"PRAGMA cipher = '{cipher}'", f"PRAGMA key = '{PASSPHRASE}'"]
    settings = PRODUCTION.pragmas | {k: v for k, v in spec.params.items() if k in PRAGMAS}
    if not all(_WORD.fullmatch(word) for word in (cipher, *settings.values())):
        raise StoredFileError(
            "the run's spec has a cipher or a PRAGMA that is neither a word nor a number; measure it again."
        )
    pragmas = {name: f"PRAGMA {name} = {_quoted(value)}" for name, value in settings.items()}
    texts = TEXTS.fullmatch(operation.name)
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
        opened = template("database.js").partition("\ndb.exec(SCHEMA)")[0]
        opened = re.sub(r"(?s)// A mailbox.*?(?=const directory)", "", opened)
        opened = re.sub(r"(?s)function open\(.*?\n}\n\n", "", opened)
        run = "const statement = db.prepare(SQL).pluck();\nconst run = (i) => statement.get(texts[i & 3]);\n"
        return f"{imports}{declared}{texts_text(texts)}{opened}\n{run}"
    return f"{imports}{declared}{template('database.js')}\n{_bodies()[operation.name]}\n{mailbox_text()}"


def _quoted(value: str) -> str:
    """A setting's value as SQL; the run's own check has let only words and numbers through."""
    return f"'{value}'" if "-" in value[1:] else value


def _literal(value: object) -> str:
    """A JavaScript literal; long SQL as a template that can be read."""
    if isinstance(value, str) and "\n" in value and not set("`\\$") & set(value):
        return f"`\n{value}\n`"
    return json.dumps(value, ensure_ascii=True)


def mailbox_text() -> str:
    """The function that makes the mails, with its words."""
    words, accented = mailbox._WORDS.split(), mailbox._ACCENTED.split()  # noqa: SLF001 - the same data
    filled = {
        "WORDS": words,
        "ACCENTED": [*words[20:], *accented],
        "NAMES": mailbox._NAMES.split(),  # noqa: SLF001
        "SURNAMES": mailbox._SURNAMES.split(),  # noqa: SLF001
    }
    text = template("mailbox.js")
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
    return _sections(template("operations.js"), "//")


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
