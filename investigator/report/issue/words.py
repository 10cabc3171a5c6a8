"""Names and phrases: what an operation does for somebody who has never seen this tool, and the title."""

from investigator import units
from investigator.analysis import Comparison
from investigator.naming import addon_name
from investigator.operations import find
from investigator.plan import Environment
from investigator.report.issue.material import Material
from investigator.report.issue.public import plain

TITLE_LIMIT = 220
"""Characters; GitHub takes 256, and the mark of a cut needs some."""

_ROWS = "50 rows of 4 columns"
_TEXTS = {
    "ascii": "ASCII characters",
    "latin1": "Latin-1 characters, every eighth beyond ASCII",
    "twobyte": "Cyrillic characters (two bytes each in V8)",
}
_LENGTHS = {"20": "20", "200": "200", "2k": "2,000", "10k": "10,000"}
_BYTES = {"3k": "3,000", "30k": "30,000", "100k": "100,000"}

_DOES = {
    "open_key": "opening an encrypted database and reading its schema",
    "select_point": "reading one row of 4 columns by its id",
    "select_range": f"reading {_ROWS} as objects",
    "select_range_raw": f"reading {_ROWS} as arrays",
    "select_iterate": f"iterating over {_ROWS}",
    "select_uncached": f"reading {_ROWS} with a page cache too small for them",
    **{f"select_blob_{key}": f"reading a BLOB of {size} bytes as a Buffer" for key, size in _BYTES.items()},
    **{
        f"bind_text_{kind}_{key}": f"binding a string of {length} {what}"
        for kind, what in _TEXTS.items()
        for key, length in _LENGTHS.items()
    },
    "select_udf": "50 calls of a JavaScript function from SQL",
    "insert_row": "inserting one row of about 3 kB",
    "insert_batch": "inserting 100 rows of about 3 kB in one transaction",
    "update_row": "updating one column of one row by its id",
    "delete_row": "deleting one row of about 3 kB by its id",
    "json_parse": "JSON.parse of a 20,000-row API response",
    "json_stringify": "JSON.stringify of a 20,000-row API response",
    "sort_numbers": "sorting 200,000 integers with a comparator",
    "string_concat": "concatenating 50,000 strings",
    "regex_emails": "a regular expression over 100,000 e-mail addresses",
    "sha256_8mb": "SHA-256 of 8 MB with node:crypto",
    "map_fill": "filling a Map with 200,000 string keys",
    "rows_twin": f"making the objects for {_ROWS} in JavaScript",
}

_COLUMNS = "SELECT id, subject, sender, date FROM messages"
_RANGE = f"{_COLUMNS} WHERE mailbox = ? AND date > ? ORDER BY date DESC LIMIT 50"
_BIND = "db.prepare('SELECT length(?)').pluck().get(text)"
_INSERT = "db.prepare('INSERT INTO messages (8 columns) VALUES (...)').run(...)"
_CALL = {
    "open_key": "new Database(file), PRAGMA key, SELECT count(*) FROM sqlite_master",
    "select_point": f"db.prepare('{_COLUMNS} WHERE id = ?').get(id)",
    "select_range": f"db.prepare('{_RANGE}').all(mailbox, since)",
    "select_range_raw": f"db.prepare('{_RANGE}').raw().all(mailbox, since)",
    "select_iterate": f"for (const row of db.prepare('{_RANGE}').iterate(mailbox, since)) rows.push(row)",
    "select_uncached": f"db.prepare('{_RANGE}').all(mailbox, since), PRAGMA cache_size = 10",
    "select_blob": "db.prepare('SELECT content FROM attachments WHERE id = ?').pluck().get(id)",
    "bind_text": _BIND,
    "select_udf": "db.prepare('SELECT sum(call_js(date)) FROM (50 rows)').pluck().get(mailbox, since)",
    "insert_row": _INSERT,
    "insert_batch": f"100 times {_INSERT} between BEGIN and COMMIT",
    "update_row": "db.prepare('UPDATE messages SET flags = ? WHERE id = ?').run(flags, id)",
    "delete_row": "db.prepare('DELETE FROM messages WHERE id = ?').run(id)",
    "json_parse": "JSON.parse(text)",
    "json_stringify": "JSON.stringify(response)",
    "sort_numbers": "numbers.slice().sort((a, b) => a - b)",
    "string_concat": "for (const part of parts) text += part",
    "regex_emails": "for (const address of addresses) if (EMAIL.test(address)) valid += 1",
    "sha256_8mb": "createHash('sha256').update(bytes).digest('hex')",
    "map_fill": "for (let i = 0; i < keys.length; i++) map.set(keys[i], i)",
    "rows_twin": "rows.push({ id, subject: subject.slice(2), sender: sender.slice(2), date })",
}


def does(material: Material, op: str) -> str:
    """What one call of an operation does, as a noun phrase: ``binding a string of 20 ASCII characters``."""
    if is_own(material, op):
        return f"a call of the workload {op}"
    return _DOES.get(op) or f"a call of {op}, a step of this tool's own probe addon"


def call(material: Material) -> str:
    """The code of one call; empty for a workload of the user's."""
    op = material.op
    if is_own(material, op):
        return ""
    return _CALL.get(op) or next((text for stem, text in _CALL.items() if op.startswith(f"{stem}_")), "")


def is_own(material: Material, op: str) -> bool:
    """Whether the operation is a file of the user's, which may have any name."""
    known = next((operation for operation in material.plan.operations if operation.name == op), None)
    return find(op) is None or (known is not None and known.group.startswith("workload:"))


def version(environment: Environment, *, by_addon: bool = False) -> str:
    """How a side is called in a sentence: ``v24.11.1``; where addons are compared, the addon's release."""
    label = f" ({environment.label})" if environment.label else ""
    if by_addon and environment.addon is not None:
        return f"{addon_name(environment.addon)}{label}"
    return f"v{environment.node.version}{label}"


def sides(material: Material) -> tuple[str, str]:
    """Names of baseline and candidate."""
    return (
        version(material.baseline, by_addon=material.by_addon),
        version(material.candidate, by_addon=material.by_addon),
    )


def longer(comparison: Comparison) -> str:
    """``takes 2.3 times as long``, ``takes 24 % longer``, ``takes 65 % less time``."""
    change = comparison.wall.change_pct
    if change >= 100.0:
        return f"takes {comparison.ratio:.1f} times as long"
    shown = units.format_percent(abs(change), signed=False)
    return f"takes {shown} longer" if change > 0 else f"takes {shown} less time"


def compared(material: Material) -> str:
    """``takes 2.3 times as long on v24.11.1 as on v22.21.1``."""
    low, high = sides(material)
    pair = (material.baseline.addon, material.candidate.addon)
    if material.by_addon and pair[0] is not None and pair[1] is not None and pair[0].name == pair[1].name:
        low = low.removeprefix(f"{pair[0].name} ")
    comparison = material.published.comparison
    joiner = "as" if comparison.wall.change_pct >= 100.0 else "than"
    return f"{longer(comparison)} on {high} {joiner} on {low}"


def _on_v8(environment: Environment) -> str:
    """``V8 13.6 (Node.js v24.11.1)``."""
    v8 = ".".join(environment.node.versions.get("v8", "?").split(".")[:2])
    return f"V8 {v8} (Node.js {version(environment)})"


def title_for_v8(material: Material) -> str:
    """The title in terms of V8 versions, where Node versions are compared; plain text."""
    if material.by_addon:
        return title(material)
    comparison = material.published.comparison
    joiner = "as" if comparison.wall.change_pct >= 100.0 else "than"
    pair = f"on {_on_v8(material.candidate)} {joiner} on {_on_v8(material.baseline)}"
    text = f"{does(material, material.op)} {longer(comparison)} {pair} ({material.op})"
    return plain(text[:1].upper() + text[1:], TITLE_LIMIT)


def title(material: Material) -> str:
    """Operation, size and versions in one line; plain text."""
    in_brackets = [material.op]
    if material.published.comparison.wall.change_pct >= 100.0:
        in_brackets.append(units.format_percent(material.published.comparison.wall.change_pct))
    if material.by_addon:
        in_brackets.append(f"Node.js v{material.candidate.node.version}")
    text = f"{does(material, material.op)} {compared(material)} ({', '.join(in_brackets)})"
    package = material.candidate.addon
    if package is not None and not material.by_addon and material.published.comparison.family == "sqlite":
        return plain(f"{package.name}: {text}", TITLE_LIMIT)
    return plain(text[:1].upper() + text[1:], TITLE_LIMIT)
