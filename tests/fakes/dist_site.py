"""A download site with the layout of the official one, on a local port, for as long as a test takes."""

import functools
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.fakes.fake_npm import node_release, tarball


class DistSite:
    """Folder and address of a site."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = ""
        self.redirects: dict[str, str] = {}
        self.cut: dict[str, int] = {}
        """Bytes after which the answer to a path breaks off."""
        self.login: str | None = None
        """What the header Authorization must be."""
        self.requested: list[str] = []
        self._index: list[dict[str, object]] = []

    def publish(
        self,
        version: str,
        *,
        lts: str | bool = False,
        suffix: str = ".tar.gz",
        platform: str = "linux-x64",
        content: bytes | None = None,
    ) -> Path:
        """Add a release in the real layout, made up or with `content` as its archive; where that lies."""
        folder = self.root / f"v{version}"
        folder.mkdir(parents=True, exist_ok=True)
        stem = f"node-v{version}-{platform}"
        mode = "w:xz" if suffix == ".tar.xz" else "w:gz"
        archive = folder / f"{stem}{suffix}"
        archive.write_bytes(content or tarball(node_release(version, top=stem), mode))
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        with (folder / "SHASUMS256.txt").open("a") as sums:
            sums.write(
                f"{'0' * 64}  node-v{version}.pkg\n{digest}  {archive.name}\n{'1' * 64}  win-x64/node.exe\n"
            )
        entry: dict[str, object] = {"version": f"v{version}", "date": "2026-01-01", "files": [], "lts": lts}
        self._index = [entry, *(other for other in self._index if other["version"] != f"v{version}")]
        (self.root / "index.json").write_text(json.dumps(self._index))
        return archive


@contextmanager
def serve(root: Path) -> Iterator[DistSite]:
    """Serve a folder on a free local port."""
    root.mkdir(parents=True, exist_ok=True)
    site = DistSite(root)

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requested.append(self.path)
            if site.login is not None and self.headers.get("Authorization") != site.login:
                self.send_error(401)
            elif self.path in site.cut:
                whole = Path(self.translate_path(self.path)).read_bytes()
                self.send_response(200)
                self.send_header("Content-Length", str(len(whole)))
                self.end_headers()
                self.wfile.write(whole[: site.cut[self.path]])
            elif self.path in site.redirects:
                self.send_response(302)
                self.send_header("Location", site.redirects[self.path])
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(root)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
