"""What the user named, by files and numbers: refused before there is a run, then copied into its folder."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from investigator import addons, host, patches, selection, workloads
from investigator.errors import UsageError
from investigator.spec import Spec, cpu_numbers, with_paths
from investigator.store import RunFolder
from investigator.text import clean_text


def check_inputs(spec: Spec) -> None:
    """Refuse operations, files and CPUs that the run cannot have, before there is a run.

    Raises:
        UsageError: an operation that nothing has, a workload, patch or addon that is missing or not what it
            should be, or a CPU that this process may not use.
    """
    selection.built_in(spec)
    with tempfile.TemporaryDirectory(prefix="investigate-io-") as folder:
        workloads.copy_workloads(spec.workloads, Path(folder) / "workloads")
    selection.check(spec)
    for option, file in _patch_files(spec):
        shown = f"{option} {clean_text(file, 200)}"
        patches.check_patch(_patch_text(file, option).decode("utf-8", errors="replace"), shown)
    fix = [(fix_request(spec), f"--fix {spec.fix.build}")] if spec.fix and own_addon(spec) else []
    own = zip(addon_requests(spec), (f"--addon {text}" for text in spec.addon_items), strict=True)
    for request, text in (*own, *fix):
        if spec.command == "sqlite" and request.name == "path:":
            path = Path(request.selector or "").expanduser()
            if not path.exists():
                raise UsageError(f"{clean_text(text, 200)} does not exist; give a directory or a tarball.")
    _check_cpus(spec.cpus)


def _patch_files(spec: Spec) -> Iterator[tuple[str, str]]:
    """Option and file of each patch."""
    if spec.patch is not None:
        yield "--patch", spec.patch
    if spec.fix is not None and spec.fix.kind == "patch":
        yield "--fix", spec.fix.build


def own_addon(spec: Spec) -> bool:
    """Whether the fix is an addon beside the one of the other environments."""
    return spec.fix is not None and spec.fix.kind == "addon" and spec.axis == "node"


def fix_request(spec: Spec) -> addons.AddonRequest:
    """What ``--fix`` asks for, where it is an addon on the regressed Node.

    Raises:
        UsageError: it cannot be read, or there is none.
    """
    if spec.fix is None or not spec.fix.build:
        raise UsageError("the spec's [fix] has no build; `investigate validate` makes one that has.")
    return addons.parse_addon(spec.fix.build)


def addon_requests(spec: Spec) -> tuple[addons.AddonRequest, ...]:
    """What ``--addon`` and ``--patch`` ask for: one addon, or those that are compared.

    Raises:
        UsageError: an item cannot be read, or stands twice.
    """
    if spec.axis == "addon":
        return addons.parse_addons(spec.addons, spec.patch)
    return (addons.parse_addon(spec.addon, spec.patch),)


def _check_cpus(text: str | None) -> None:
    usable = host.usable_cpus()
    missing = [number for number in cpu_numbers(text) if number not in usable] if text is not None else []
    if missing:
        raise UsageError(
            f"--cpus {text} names CPU {missing[0]}, which this process cannot use; "
            f"it can use {','.join(map(str, usable))[:200]}."
        )


def _patch_text(name: str, option: str) -> bytes:
    path = Path(name).expanduser()
    try:
        if path.is_file() and path.stat().st_size > patches.MAX_BYTES:
            size = f"{patches.MAX_BYTES >> 20} MiB"
            raise UsageError(f"{option} {clean_text(name, 200)} is larger than {size}.")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{option} {clean_text(name, 200)} cannot be read: {error.strerror}.") from error


def keep_inputs(spec: Spec, folder: RunFolder) -> Spec:
    """Copy workloads and patch into the run folder; the stored spec names the copies.

    Relative ``path:`` entries count from the run folder in the stored spec, as `spec.load_spec` reads them.
    """
    names = workloads.copy_workloads(spec.workloads, folder.path / "workloads") if spec.workloads else ()
    stored = msgspec.structs.replace(spec, workloads=tuple(f"workloads/{n}" for n in names))
    if spec.patch is not None:
        patch = folder.write("addon.patch", _patch_text(spec.patch, "--patch")).name
        stored = msgspec.structs.replace(stored, patch=patch)
    if spec.fix is not None and spec.fix.kind == "patch":
        patch = folder.write("fix.patch", _patch_text(spec.fix.build, "--fix")).name
        stored = msgspec.structs.replace(stored, fix=msgspec.structs.replace(spec.fix, build=patch))
    return with_paths(stored, lambda name: _rebased(name, folder.path))


def _rebased(name: str, start: Path) -> str:
    path = Path(name).expanduser()
    return name if path.is_absolute() else os.path.relpath(path.resolve(), start.resolve())


def from_here(spec: Spec, folder: RunFolder) -> Spec:
    """The stored spec with its ``path:`` entries as they count from the working directory."""

    def place(name: str) -> str:
        path = Path(name).expanduser()
        # `load_spec` has put the folder in front already; the text of the file itself has none.
        inside = path.is_relative_to(folder.path)
        if path.is_absolute() and not inside:
            return name
        return os.path.relpath((path if inside else folder.path / path).resolve())

    return with_paths(spec, place)
