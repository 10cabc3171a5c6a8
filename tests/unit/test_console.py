import errno
import io
import os
import subprocess
import sys
import threading
from typing import Never

import pytest
from rich.table import Table
from rich.text import Text

from investigator.console import Console
from investigator.errors import HostUnfitError
from investigator.observer import Estimate, NullObserver, Observer
from tests.unit.report_synthetic import HOSTILE


class FakeTerminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class BrokenPipe(io.StringIO):
    writes = 0

    def write(self, text: str) -> Never:
        self.writes += 1
        raise BrokenPipeError

    def flush(self) -> Never:
        raise BrokenPipeError


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def run_through(console: Observer, clock: Clock | None = None) -> None:
    console.stage_started("build", 3)
    for _ in range(3):
        console.step("build", "node24.11.1")
    console.stage_started("measure", 8)
    for number in (1, 2):
        for _ in range(4):
            if clock:
                clock.now_s += 10
            console.activity("node24.11.1 sqlite")
            console.step("measure")
        console.round_finished(
            number, 2, [Estimate(op="bind_text_ascii_10k", candidate="24.11.1", change_pct=112.3)]
        )


def piped(*, quiet: bool = False) -> tuple[Console, io.StringIO, io.StringIO]:
    out, err = io.StringIO(), io.StringIO()
    return Console(quiet=quiet, environment={}, clock=Clock(), stdout=out, stderr=err), out, err


def test_a_null_observer_is_an_observer() -> None:
    run_through(NullObserver())


def test_in_a_pipe_there_is_one_plain_line_a_stage_and_a_round() -> None:
    console, out, err = piped()
    run_through(console)
    console.close()
    assert err.getvalue().splitlines() == [
        "build: 3 steps",
        "measure: 8 steps",
        "measure · round 1 of 2 · 4/8 · 0:00, about 0:00 left · bind_text_ascii_10k 24.11.1 +112 %",
        "measure · round 2 of 2 · 8/8 · 0:00 · bind_text_ascii_10k 24.11.1 +112 %",
    ]
    assert out.getvalue() == ""


def test_on_a_terminal_the_line_is_live_and_leaves_one_line_a_stage() -> None:
    err, clock = FakeTerminal(), Clock()
    environment = {"TERM": "xterm", "COLUMNS": "100"}
    with Console(stdout=io.StringIO(), stderr=err, environment=environment, clock=clock) as console:
        run_through(console, clock)
        line = "measure · round 1 of 2 · 4/8 · 0:50, about 0:50 left · bind_text_ascii_10k 24.11.1 +112 %"
        assert line in err.getvalue()
    assert "build · 3 of 3 · 0:00" in err.getvalue()
    assert err.getvalue().rstrip().endswith("measure · 8 of 8 · 1:20")


def test_the_live_line_has_no_thread_and_is_not_drawn_more_often_than_ten_times_a_second() -> None:
    err, clock = FakeTerminal(), Clock()
    before = threading.active_count()
    console = Console(stdout=io.StringIO(), stderr=err, environment={"TERM": "xterm"}, clock=clock)
    console.stage_started("measure", 1000)
    size = len(err.getvalue())
    for _ in range(1000):
        console.step("measure")
    assert len(err.getvalue()) == size
    clock.now_s = 1.0
    console.step("measure")
    assert len(err.getvalue()) > size
    assert threading.active_count() == before
    console.close()


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "unknown"}])
def test_a_dumb_terminal_gets_plain_lines(environment: dict[str, str]) -> None:
    err = FakeTerminal()
    run_through(Console(stdout=io.StringIO(), stderr=err, environment=environment))
    assert "\x1b[2K" not in err.getvalue()
    assert "\r" not in err.getvalue()


def test_quiet_keeps_warnings_and_errors_only() -> None:
    console, out, err = piped(quiet=True)
    run_through(console)
    console.note("chosen: 12.11.1")
    console.warning("no container engine")
    console.error("nothing could be built")
    console.result('{"a": 1}')
    assert err.getvalue() == "warning: no container engine\nerror: nothing could be built\n"
    assert out.getvalue() == '{"a": 1}\n'


def test_nothing_in_the_environment_forces_colour_into_a_pipe() -> None:
    out, err = io.StringIO(), io.StringIO()
    environment = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TTY_COMPATIBLE": "1", "TERM": "xterm-256color"}
    console = Console(stdout=out, stderr=err, environment=environment)
    run_through(console)
    console.error("boo")
    console.result(Text("red", style="bold red"))
    assert "\x1b" not in out.getvalue() + err.getvalue()


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_honoured_on_a_terminal(environment: dict[str, str], coloured: bool) -> None:
    out = FakeTerminal()
    console = Console(stdout=out, stderr=io.StringIO(), environment={"TERM": "xterm-256color", **environment})
    console.result(Text("red", style="red"))
    assert ("\x1b[31m" in out.getvalue()) is coloured
    assert "red" in out.getvalue()


def test_outside_texts_are_neither_markup_nor_control() -> None:
    console, out, err = piped()
    console.note(HOSTILE)
    console.warning(HOSTILE + "x" * 1_000_000)
    console.stage_started(HOSTILE, 2)
    console.round_finished(1, 2, [Estimate(op=HOSTILE, candidate=HOSTILE, change_pct=float("nan"))])
    assert len(err.getvalue().splitlines()) == 4
    assert err.getvalue().replace("\n", "").isprintable()
    assert "[bold red]boo[/bold red]" in err.getvalue()
    assert len(err.getvalue()) < 5000
    assert out.getvalue() == ""


def test_a_reader_that_went_away_is_no_error() -> None:
    broken = BrokenPipe()
    console = Console(stdout=broken, stderr=io.StringIO(), environment={})
    console.result("text")
    console.result(Table("a"))
    assert broken.writes == 1


def test_a_vanished_stderr_does_not_stop_a_run() -> None:
    console = Console(stdout=io.StringIO(), stderr=BrokenPipe(), environment={})
    run_through(console)
    console.warning("x")
    console.error("x")


def test_a_character_the_stream_lacks_becomes_a_question_mark() -> None:
    raw = io.BytesIO()
    console = Console(stdout=io.TextIOWrapper(raw, encoding="ascii"), stderr=io.StringIO(), environment={})
    console.result(Text("10 µs"))
    assert raw.getvalue() == b"10 ?s\n"


def test_a_program_whose_reader_went_away_ends_quietly() -> None:
    program = (
        "import sys\n"
        "from investigator.console import Console\n"
        "console = Console()\n"
        "sys.stdin.read()\n"
        "console.result('line')\n"
        "console.result('line')\n"
        "raise SystemExit(7)\n"
    )
    reading, writing = os.pipe()
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    os.close(reading)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (7, b"")


def test_many_threads_may_report() -> None:
    console, _, err = piped()
    console.stage_started("build", 400)

    def build() -> None:
        for _ in range(100):
            console.step("build", "x")

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    console.round_finished(1, 1)
    assert "400/400" in err.getvalue()


class FullDisk(io.StringIO):
    def flush(self) -> Never:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_result_that_does_not_fit_on_the_disk_is_an_error() -> None:
    console = Console(stdout=FullDisk(), stderr=io.StringIO(), environment={})
    with pytest.raises(HostUnfitError, match="standard output whole: No space left"):
        console.result("x")


@pytest.mark.parametrize("columns", ["0", "-5", "", "abc", "1", "\u0663\u0663"])
def test_a_width_that_is_none_is_as_if_it_were_not_set(columns: str) -> None:
    shown = []
    for environment in ({"COLUMNS": columns}, {}):
        out = io.StringIO()
        Console(stdout=out, stderr=io.StringIO(), environment=environment).result(Text("word " * 60))
        shown.append(out.getvalue())
    assert shown[0] == shown[1]
    assert "word" in shown[0]


def test_closed_streams_are_no_traceback() -> None:
    program = f"exec {sys.executable} -m investigator show none <&- >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", program], check=False).returncode == 2
