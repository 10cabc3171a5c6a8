"""A registry in a folder, and an npm client (a real program) that knows the three commands in use.

The program writes every call into ``calls.jsonl`` beside the registry, so that tests see the arguments and
the environment. A file ``down`` in the folder makes it behave as npm does without a network.
"""

import base64
import hashlib
import io
import json
import os
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from investigator import addons, npm_client

_PROGRAM = """\
#!{python}
import json, os, re, shutil, sys
from pathlib import Path

root = Path({root!r})
arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
with (root / "calls.jsonl").open("a") as log:
    log.write(json.dumps({{"argv": sys.argv[1:], "cwd": os.getcwd(), "env": sorted(os.environ)}}) + "\\n")

def fail(code, summary):
    print(json.dumps({{"error": {{"code": code, "summary": summary, "detail": ""}}}}))
    print("npm error code " + code, file=sys.stderr)
    raise SystemExit(1)

if (root / "down").exists():
    fail("ECONNREFUSED", "request to the registry failed, reason: connect ECONNREFUSED")
if (root / "garbage").exists():
    print("<html>captive portal</html>")
    raise SystemExit(0)
packages = json.loads((root / "packages.json").read_text())
command = arguments[0]
if command == "install":
    wanted = json.loads(Path("package.json").read_text())["dependencies"]
    lock = {{"": {{}}}}
    for name in wanted:
        if name not in packages:
            fail("E404", "Not Found - GET the registry/" + name)
        version = list(packages[name])[-1]
        lock["node_modules/" + name] = {{"version": version}}
        folder = Path("node_modules", name)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text(json.dumps({{"name": name, "version": version}}))
    Path("package-lock.json").write_text(json.dumps({{"packages": lock}}))
    print("{{}}")
    raise SystemExit(0)
name, at, selector = arguments[1][1:].partition("@")
name = arguments[1][0] + name
if name not in packages:
    fail("E404", "Not Found - GET the registry/" + name)
releases = packages[name]
if command == "view" and not selector:
    print(json.dumps({{"versions": list(releases), "time": {{v: "2026-01-02T03:04:05Z" for v in releases}}}}))
elif command == "view":
    exact = [v for v in releases if v == selector]
    chosen = exact or [v for v in releases if "-" not in v and selector.startswith(">")]
    if not chosen:
        fail("E404", "No match found for version " + selector)
    rows = []
    for version in chosen:
        row = {{"version": version}}
        for field in arguments[3:]:
            if releases[version].get(field) is not None:
                row[field] = releases[version][field]
        rows.append(row)
    print(json.dumps(rows if len(rows) > 1 else rows[0]))
elif command == "pack":
    if selector not in releases:
        fail("ETARGET", "No matching version found for " + arguments[1])
    target = Path(sys.argv[sys.argv.index("--pack-destination") + 1])
    file = name.lstrip("@").replace("/", "-") + "-" + selector + ".tgz"
    shutil.copyfile(root / file, target / file)
    print(json.dumps([{{"name": name, "version": selector, "filename": file,
                       "integrity": releases[selector]["dist.integrity"]}}]))
"""


class FakeNpm:
    """Fill it with `publish`; `calls` tells what was asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._packages: dict[str, dict[str, dict[str, object]]] = {}
        (root / "bin").mkdir(parents=True)
        npm = root / "bin/npm"
        npm.write_text(_PROGRAM.format(python=sys.executable, root=str(root)))
        npm.chmod(0o755)
        (root / "bin/node").write_text("#!/bin/sh\nexit 1\n")
        (root / "bin/node").chmod(0o755)
        self._save()

    def publish(
        self, name: str, version: str, files: Mapping[str, bytes] | None = None, *, engines: str | None = None
    ) -> None:
        """Add a release; `files` are paths below ``package/``."""
        content = tarball({f"package/{path}": data for path, data in (files or {}).items()})
        (self.root / f"{name.lstrip('@').replace('/', '-')}-{version}.tgz").write_bytes(content)
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        release: dict[str, object] = {"dist.integrity": f"sha512-{digest}", "engines.node": engines}
        self._packages.setdefault(name, {})[version] = release
        self._save()

    def publish_addon(
        self,
        name: str,
        version: str,
        *,
        engines: str | None = None,
        napi: int | None = None,
        **manifest: object,
    ) -> None:
        """Add an addon release with a small but complete package."""
        described = {"name": name, "version": version, **manifest}
        if engines is not None:
            described["engines"] = {"node": engines}
        define = f"'defines': ['NAPI_VERSION={napi}']," if napi is not None else ""
        files = {
            "package.json": json.dumps(described).encode(),
            "binding.gyp": f"{{'targets': [{{ {define} 'target_name': 'x' }}]}}".encode(),
            "lib/index.js": b"'use strict';\nmodule.exports = 1;\n",
            "src/addon.cpp": b"one\ntwo\nthree\n",
        }
        self.publish(name, version, files, engines=engines)

    def tamper(self, name: str, version: str) -> None:
        """Change a tarball after its promise was made."""
        path = self.root / f"{name}-{version}.tgz"
        path.write_bytes(path.read_bytes() + b"x")

    def go_down(self) -> None:
        """Stop answering."""
        (self.root / "down").touch()

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call so far: argv, cwd, env."""
        path = self.root / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def _save(self) -> None:
        (self.root / "packages.json").write_text(json.dumps(self._packages))


def install_fake_npm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNpm:
    """Put a fake npm on PATH and an empty cache beside it; nothing is remembered from other tests."""
    fake = FakeNpm(folder / "registry")
    monkeypatch.setenv("PATH", f"{fake.root / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("INVESTIGATE_CACHE", str(folder / "cache"))
    for remembered in (npm_client.client, npm_client._listing, addons._releases):
        remembered.cache_clear()
    return fake


def tarball(files: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    """Make a tar archive; files below ``bin/`` are executable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755 if "/bin/" in name else 0o644
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def node_release(version: str, *, abi: int = 137, v8: str = "13.6", top: str = "package") -> dict[str, bytes]:
    """The files of a Node release: a program that only says who it is, and headers of the real form."""
    major, minor, patch = version.partition("-")[0].split(".")
    v8_major, v8_minor = v8.split(".")
    node_header = (
        f"#define NODE_MAJOR_VERSION {major}\n#define NODE_MINOR_VERSION {minor}\n"
        f"#define NODE_PATCH_VERSION {patch}\n#define NODE_MODULE_VERSION {abi}\n"
        "#define NODE_API_SUPPORTED_VERSION_MAX 10\n"
    )
    v8_header = f"#define V8_MAJOR_VERSION {v8_major}\n#define V8_MINOR_VERSION {v8_minor}\n"
    answer = {
        "versions": {"node": version, "v8": f"{v8}.1", "modules": str(abi), "napi": "10"},
        "config": "{}",
    }
    files = {
        "bin/node": f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n".encode(),
        "bin/npm": b"not wanted",
        "include/node/node.h": b"// node\n",
        "include/node/node_version.h": node_header.encode(),
        "include/node/v8-version.h": v8_header.encode(),
        "include/node/config.gypi": b"{}",
        "include/node/uv/unix.h": b"// uv\n",
        "LICENSE": b"MIT\n",
        "share/doc/node/gdbinit": b"not wanted",
    }
    prefix = f"{top}/" if top else ""
    return {f"{prefix}{path}": content for path, content in files.items()}
