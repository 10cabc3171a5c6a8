"""What stands around the programs: pinned packages, the runner's facts, the container, a page to read."""

import json
from collections.abc import Mapping, Sequence

import msgspec

from investigator import npm_client, units
from investigator.addons import NODE_SQLITE, AddonPackage
from investigator.plan import Environment
from investigator.repro.fragments import TEMPLATES
from investigator.repro.manifest import COMMAND, Manifest, Program, slug
from investigator.repro.shapes import Draft
from investigator.text import clean_text, code_span, escape_markdown

ROUNDS = 10
"""Processes for each side: what upstream asks for at least."""
PLATFORMS = ("linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64")
_RUNNER = ("run.sh", "run.mjs", "Dockerfile")


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side as the runner sees it: an entry of repro.json."""

    title: str
    version: str
    """Of Node; part of the names under which npm installs it."""
    fetched: bool
    """Whether npm has this Node: else it comes as an argument."""
    flags: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    addon: Mapping[str, object] | None = None
    """``name``, ``alias`` (None where npm does not have it) and ``prebuilt``; None where there is none."""

    @property
    def addon_fetched(self) -> bool:
        """Whether nothing has to be given for the addon."""
        return self.addon is None or self.addon["alias"] is not None


def side_of(environment: Environment, title: str, *, addon: bool) -> Side:
    """An environment for the runner; `addon` where a program wants it."""
    package = environment.addon if addon else None
    known = None
    if package is not None and package.name != NODE_SQLITE:
        known = {
            "name": slug(package.name),
            "alias": _addon_alias(package) if _is_released(package) else None,
            "prebuilt": environment.flavor == "prebuilt",
        }
    return Side(
        title=clean_text(title, 120),
        version=environment.node.version if _is_npm(environment) else slug(environment.node.version),
        fetched=_is_npm(environment),
        flags=environment.node_flags,
        variables=environment.variables,
        addon=known,
    )


def _is_npm(environment: Environment) -> bool:
    return environment.node.source == "npm" and npm_client.is_version(environment.node.version)


def _is_released(package: AddonPackage) -> bool:
    """A directory or a patched package is in no registry; npm's own checksum tells one that is."""
    return (
        package.patch_sha256 is None
        and package.integrity.startswith("sha512-")
        and npm_client.is_version(package.version)
    )


def _addon_alias(package: AddonPackage) -> str:
    return f"{package.name.removeprefix('@').replace('/', '-')}-{package.version}"


def package_json(
    sides: Sequence[Side], environments: Sequence[Environment], released: Mapping[str, Sequence[str]]
) -> dict[str, object]:
    """package.json: every Node and addon under an alias with its exact release.

    Args:
        sides: both sides.
        environments: the same two, in the same order.
        released: by platform, the releases of Node that npm has for it.
    """
    nodes: dict[str, str] = {}
    addons: dict[str, str] = {}
    for side, environment in zip(sides, environments, strict=True):
        if side.fetched:
            for platform in PLATFORMS:
                if side.version in released.get(platform, ()):
                    alias = f"node-{side.version}-{platform}"
                    nodes[alias] = f"npm:node-{platform}@{npm_client.check_version(side.version)}"
        if side.addon is not None and side.addon["alias"] is not None and environment.addon is not None:
            name = npm_client.check_name(environment.addon.name)
            version = npm_client.check_version(environment.addon.version)
            addons[str(side.addon["alias"])] = f"npm:{name}@{version}"
    return {
        "name": "repro",
        "version": "1.0.0",
        "private": True,
        "description": "Reproduction of one change between two releases",
        # npm's own Node: among the packages are others that call themselves node.
        "scripts": {"start": '"$npm_node_execpath" run.mjs'},
        "dependencies": addons,
        "optionalDependencies": nodes,
    }


def files_of(
    programs: Sequence[Draft], sides: Sequence[Side], manifest: Mapping[str, object], *, disk: bool = False
) -> dict[str, bytes]:
    """The folder's files by relative name, but for the lock file and the page to read.

    Args:
        programs: those that are in the folder.
        sides: both sides.
        manifest: what package.json holds.
        disk: whether databases lie on the disk, as in the measurement.
    """
    facts = {
        "rounds": ROUNDS,
        "disk": disk,
        "programs": [
            {
                "name": draft.name,
                "title": draft.title,
                "script": draft.script,
                "compile": draft.compile,
                "addon": draft.addon,
            }
            for draft in programs
        ],
        "sides": dict(zip(("baseline", "candidate"), map(msgspec.to_builtins, sides), strict=True)),
    }
    files = {name: (TEMPLATES / name).read_bytes() for name in _RUNNER}
    files[".dockerignore"] = b"node_modules\nwork\n"
    files["repro.json"] = _json(facts)
    files["package.json"] = _json(manifest)
    for draft in programs:
        files |= {f"{draft.name}/{name}": content for name, content in draft.files.items()}
    return files


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=True).encode() + b"\n"


def needs(sides: Sequence[Side], environments: Sequence[Environment]) -> tuple[str, ...]:
    """Arguments that only the reader can give, one sentence each."""
    told = []
    for name, side, environment in zip(("baseline", "candidate"), sides, environments, strict=True):
        if not side.fetched:
            told.append(
                f"The {name}'s Node is a build that npm does not have ({environment.node.source}): give its "
                f"directory, with bin/node and include/node, as --{name}-node DIR."
            )
        if not side.addon_fetched:
            patched = environment.addon is not None and environment.addon.patch_sha256 is not None
            told.append(
                f"The {name}'s addon is {'a patched package' if patched else 'one of its own'} that npm does "
                f"not have: give the package's directory as --{name}-addon DIR."
            )
    return tuple(told)


# -- the page -----------------------------------------------------------------------------------------------


def readme(manifest: Manifest, programs: Sequence[Draft]) -> str:
    """README.md of the folder."""
    compiled = any(draft.compile or draft.addon for draft in programs)
    rows = "\n".join(_row(program) for program in manifest.shipped)
    needs_text = "".join(f"\n- {escape_markdown(text)}" for text in (*manifest.needs, *manifest.notes))
    compiling = ", compiles the C++ for each side" if compiled else ""
    compiling += " (SQLite takes a minute or two)" if any(draft.addon for draft in programs) else ""
    tools = "npm (with Node 18.3 or newer)" + (", a C++ compiler, make and Python 3" if compiled else "")
    return f"""# {escape_markdown(manifest.op, 80)}: {escape_markdown(manifest.baseline_name)} against \
{escape_markdown(manifest.candidate_name)}

Time per call changes by **{units.format_percent(manifest.change_pct)}** \
[{units.format_interval(manifest.ci_low_pct, manifest.ci_high_pct)}] (+ is slower). To see it:

```sh
{COMMAND}            # needs {tools}
{COMMAND} --docker   # or all of it in a container; BASE=IMAGE names another base
```

It installs the releases that package-lock.json pins (no script of a package runs){compiling}, and runs \
every program in {ROUNDS} processes for each side, by turns. Names of programs after the command run only \
those.
{needs_text}

| program | what it does | showed here |
|---|---|---|
{rows}

RESULT.txt is what was printed when this folder was made.
"""


def _row(program: Program) -> str:
    change = units.format_percent(program.change_pct)
    interval = units.format_interval(program.ci_low_pct, program.ci_high_pct)
    return f"| {code_span(program.name)} | {escape_markdown(program.title)} | {change} [{interval}] |"
