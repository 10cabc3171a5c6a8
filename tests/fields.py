"""The fields of a stored format as a Markdown table, read from the struct that writes it.

The documentation of a format is the docstring under each field; a README that repeats it is checked against
this table.
"""

import ast
import inspect
import textwrap

import msgspec

from investigator.text import escape_markdown


def field_table(struct: type[msgspec.Struct]) -> str:
    """Write one row a field, in the order of the file: name, type, meaning."""
    documented = {name: (kind, text) for name, kind, text in _documented(struct)}
    rows = ["| field | type | meaning |", "|---|---|---|"]
    for name in struct.__struct_fields__:
        kind, text = documented.get(name, ("", ""))
        rows.append(f"| `{name}` | {escape_markdown(kind)} | {escape_markdown(text, 1000)} |")
    return "\n".join(rows)


def _documented(struct: type[msgspec.Struct]) -> list[tuple[str, str, str]]:
    body = ast.parse(textwrap.dedent(inspect.getsource(struct))).body[0]
    statements = body.body if isinstance(body, ast.ClassDef) else []
    found = []
    for statement, after in zip(statements, [*statements[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found.append((statement.target.id, ast.unparse(statement.annotation), _docstring(after)))
    return found


def _docstring(statement: ast.stmt | None) -> str:
    """Text of a bare string, without the backticks of reStructuredText."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        value = statement.value.value
        return inspect.cleandoc(value).replace("`", "") if isinstance(value, str) else ""
    return ""
