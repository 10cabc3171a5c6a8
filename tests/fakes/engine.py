"""An engine that runs nothing: it answers from a script and keeps the tasks it was given."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePosixPath

from investigator.engine.interface import EngineName, Mount, Outcome, Started, Task

Answer = Outcome | BaseException | Callable[[Task], Outcome]

OK = Outcome(exit_code=0)


class FakeEngine:
    """Gives the answers of `script` in turn, then `default` for ever.

    An answer is an outcome, an exception to raise, or a function that makes an outcome of the task: for tasks
    that would leave files, it writes them to ``task.mounts[n].source``.
    """

    def __init__(
        self,
        script: Iterable[Answer] = (),
        *,
        default: Answer = OK,
        name: EngineName = "docker",
        facts: Mapping[str, str] | None = None,
    ) -> None:
        self.tasks: list[Task] = []
        self.closed = False
        self._script = list(script)
        self._default = default
        self._name: EngineName = name
        self._facts = {"engine": name, "base": "fake", **(facts or {})}

    @property
    def name(self) -> EngineName:
        return self._name

    @property
    def scratch(self) -> PurePosixPath:
        return PurePosixPath("/scratch")

    def inside(self, mount: Mount) -> PurePosixPath:
        return mount.target if self._name == "docker" else PurePosixPath(mount.source)

    def run(self, task: Task, started: Started | None = None) -> Outcome:
        self.tasks.append(task)
        answer = self._script.pop(0) if self._script else self._default
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Outcome) else answer(task)

    def facts(self) -> Mapping[str, str]:
        return self._facts

    def close(self) -> None:
        self.closed = True

    @property
    def purposes(self) -> list[str]:
        """What was run, in order."""
        return [task.purpose for task in self.tasks]
