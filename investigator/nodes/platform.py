"""What a measured process sees of the machine: kernel, C library, and the limits it lives in."""

from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from investigator.engine.interface import Engine, Mount, Task
from investigator.text import clean_text

_TIMEOUT_S: Final = 60.0
# Like `uname -srvm`: the name of the host stays out. Limits: cgroup v2, then v1; "max" means none.
_SCRIPT: Final = """\
const { readFileSync } = require('fs');
const os = require('os');
const first = (...files) => {
  for (const file of files) {
    try { return readFileSync(file, 'utf8').trim(); } catch { /* the other version of cgroups, or none */ }
  }
  return '';
};
const libc = () => {
  const { glibcVersionRuntime } = process.report.getReport().header;
  return glibcVersionRuntime ? `glibc ${glibcVersionRuntime}` : '';
};
if (process.report) process.report.excludeNetwork = true;
JSON.stringify({
  uname: [os.type(), os.release(), os.version(), os.machine ? os.machine() : os.arch()].join(' '),
  libc: process.report ? libc() : '',
  cpus: os.availableParallelism ? os.availableParallelism() : os.cpus().length,
  memory_limit: first('/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes'),
  cpu_quota: first('/sys/fs/cgroup/cpu.max', '/sys/fs/cgroup/cpu/cpu.cfs_quota_us'),
  pids_limit: first('/sys/fs/cgroup/pids.max', '/sys/fs/cgroup/pids/pids.max'),
})
"""


class PlatformFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts are empty where the system does not tell."""

    uname: str
    """As ``uname -srvm`` prints it; never with the name of the host."""
    libc: str
    """``glibc 2.36``: the one that the measured processes run on, which need not be the host's."""
    cpus: int
    """Processors that Node sees."""
    memory_limit: str
    """Of the control group, in bytes; ``max`` for none, empty where there is no such file."""
    cpu_quota: str
    """Of the control group, as the kernel writes it: ``max 100000``, or ``-1`` for none."""
    pids_limit: str
    """Of the control group."""


def describe_platform(engine: Engine, directory: Path, cpus: str | None) -> PlatformFacts | None:
    """Ask `bin/node` of an unpacked build, in a task like those that are measured; None without an answer.

    Raises:
        EngineMissingError, HostUnfitError: the engine.
    """
    mount = Mount(source=directory, target=PurePosixPath("/node"))
    outcome = engine.run(
        Task(
            command=(str(engine.inside(mount) / "bin/node"), "-p", _SCRIPT),
            purpose="describe the platform",
            mounts=(mount,),
            timeout_s=_TIMEOUT_S,
            cpus=cpus,
        )
    )
    try:
        answer = msgspec.json.decode(outcome.stdout, type=PlatformFacts) if outcome.ok else None
    except msgspec.MsgspecError:
        return None
    if answer is None:
        return None
    texts = {
        field: clean_text(value, 200)
        for field, value in msgspec.structs.asdict(answer).items()
        if isinstance(value, str)
    }
    return msgspec.structs.replace(answer, **texts)
