"""An engine whose compiler is simulated: it leaves the files that node-gyp, make and gcc would leave."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath

from investigator.engine.interface import EngineName, Mount, Outcome, Started, Task

COMPILER = "g++ (Debian 12.2.0-14) 12.2.0"
LOG = """\
gyp info spawn make
  /tool/bin/node /recipe/cc.mjs gcc -o Release/obj.target/sqlite3/gen/sqlite3/sqlite3.o \
Release/obj/gen/sqlite3/sqlite3.c '-DNDEBUG' -I{node}/include/node -fPIC -pthread -m64 -O3 -O3 -c
  g++ -o Release/obj.target/better_sqlite3/src/better_sqlite3.o ../src/better_sqlite3.cpp \
-I{node}/include/node -O3 -std=c++20 -c
  g++ -o Release/obj.target/better_sqlite3.node -shared -Wl,--start-group x.o sqlite3.a -Wl,--end-group
  gcc -o Release/obj.target/test_extension/deps/test_extension.o ../deps/test_extension.c -O3 -c
gyp info ok
"""


class BuildEngine:
    """`compile` is called in place of node-gyp with the build's directory; it returns how the task ended."""

    def __init__(
        self,
        compile_: Callable[[Path, Task], Outcome] | None = None,
        *,
        base: str = "sha256:image",
        compiler: str = COMPILER,
    ) -> None:
        self.compile = compile_ or compiled
        self.base = base
        self.compiler = compiler
        self.builds: list[Task] = []
        self.tasks: list[Task] = []
        self.running = 0
        self.most_running = 0
        self.lock = threading.Lock()

    @property
    def name(self) -> EngineName:
        return "docker"

    @property
    def scratch(self) -> PurePosixPath:
        return PurePosixPath("/scratch")

    def inside(self, mount: Mount) -> PurePosixPath:
        return PurePosixPath(mount.source)

    def facts(self) -> Mapping[str, str]:
        return {"engine": "docker", "base": self.base}

    def close(self) -> None:
        pass

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        with self.lock:
            self.tasks.append(task)
        if task.command == ("g++", "--version"):
            found = bool(self.compiler)
            return Outcome(exit_code=0 if found else 127, stdout=f"{self.compiler}\nmore\n" if found else "")
        tree = next(mount.source for mount in task.mounts if str(mount.target) == "/build")
        with self.lock:
            self.builds.append(task)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        try:
            return self.compile(tree, task)
        finally:
            with self.lock:
                self.running -= 1


def compiled(tree: Path, task: Task) -> Outcome:
    """A build that ends well; the binary depends on the headers, the amalgamation does not."""
    node = next(mount.source for mount in task.mounts if str(mount.target) == "/node")
    release = tree / "package/build/Release"
    objects = release / "obj.target/sqlite3/gen/sqlite3"
    objects.mkdir(parents=True)
    (objects / "sqlite3.o").write_bytes(b"amalgamation")
    (release / "better_sqlite3.node").write_bytes(f"for {node.name}".encode())
    (release / "test_extension.node").write_bytes(b"")
    (tree / "build.log").write_text(LOG.format(node=node))
    return Outcome(exit_code=0, elapsed_s=1.5)


def failed(log: str, **how: object) -> Callable[[Path, Task], Outcome]:
    """A build that leaves `log` and ends with status 1, or as `how` says."""

    def compile_(tree: Path, task: Task) -> Outcome:
        (tree / "build.log").write_text(log)
        return Outcome(**{"exit_code": 1, **how})  # type: ignore[arg-type]

    return compile_
