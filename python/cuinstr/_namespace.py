"""Shuts a process in: no network, no processes but its own, no files but the system's, Python's and a scratch folder."""

from __future__ import annotations

import ctypes
import os
import pathlib
import signal
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterable

_NEW_MOUNTS, _NEW_IPC, _NEW_USERS, _NEW_PROCESSES, _NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
# What a process needs of the system. Nothing of anybody's home, of /tmp or of other folders of data is among it.
_SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/gnu", "/dev", "/proc", "/sys", "/run/nvidia-persistenced"]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str | None, target: str, kind: str | None, flags: int) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    _checked(_libc().mount(*encoded, ctypes.c_ulong(flags), None), f"mount {target}")


def _visible(more: Iterable[str]) -> list[str]:
    """Folders that stay: each once, and none within another."""
    home = os.environ.get("CUDA_HOME")
    # Of Python's path only packages: the folder that a program was started in is on it, too, and may hold the reference.
    installed = [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    own = os.path.dirname(os.path.abspath(__file__))
    packages = [*site.getsitepackages(), *installed, own, sys.prefix, sys.base_prefix, *([home] if home else []), *more]
    wanted = {os.path.realpath(path) for path in packages if os.path.isabs(path) and os.path.isdir(path)}
    links = {path for path in _SYSTEM if os.path.islink(path)}
    wanted |= {path for path in _SYSTEM if os.path.isdir(path) and path not in links}
    return [path for path in sorted(wanted) if not any(path != other and path.startswith(other + "/") for other in wanted)]


def enter(scratch: str, more: Iterable[str] = ()) -> tuple[str, list[str]]:
    """Shuts this process in, and everything that it forks; `scratch` becomes its `/tmp`. Says where `scratch` is now, and what the system does not
    allow."""
    user, group = os.getuid(), os.getgid()
    alone = _NEW_MOUNTS | _NEW_IPC | _NEW_NETWORK
    try:
        if user == 0:
            _checked(_libc().unshare(alone), "unshare")
        else:
            _checked(_libc().unshare(alone | _NEW_USERS), "unshare")
            pathlib.Path("/proc/self/setgroups").write_text("deny")
            pathlib.Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            pathlib.Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError as error:
        return scratch, [f"no namespaces ({error}): candidates see the network and all files"]
    try:
        _files(scratch, _visible(more))
    except OSError as error:
        return scratch, [f"files are not hidden ({error})"]
    # Last, since this process can start one process only from here on, where that one has ended.
    _checked(_libc().unshare(_NEW_PROCESSES), "unshare")
    return "/tmp", []


def shut_in(scratch: str, *readable: str) -> None:
    """The same for a process that is to go on in its folder, with the files that its search paths lead to. It is not the first of its namespace, which
    no signal from within would end. Where the system does not allow that, it goes on as it is."""
    here = os.getcwd()
    paths = [os.environ.get(name, "").split(os.pathsep) for name in ("PATH", "LD_LIBRARY_PATH")]
    _, missing = enter(scratch, [*readable, *paths[0], *paths[1]])
    if missing:
        return
    for _ in range(2):
        if os.fork():
            os.wait()
            os._exit(0)
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    hide_processes()
    os.environ["TMPDIR"] = "/tmp"
    os.makedirs(here, exist_ok=True)
    os.chdir(here)


def refused() -> str:
    """What the system does not allow a process that wants to be shut in; nothing if it allows all."""
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([sys.executable, "-I", __file__, scratch], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else f"no process can be shut in: {done.stderr.strip()[-200:]}"


def hide_processes() -> list[str]:
    """In the first process that was forked since: what shows processes shows its own."""
    try:
        _mount("none", "/proc", "proc", 0)
    except OSError as error:
        return [f"/proc shows other processes ({error})"]
    return []


def _files(scratch: str, visible: list[str]) -> None:
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    root = os.path.join(scratch, ".root")
    os.mkdir(root)
    _mount("none", root, "tmpfs", 0)
    # First, since Python itself may lie below /tmp.
    os.mkdir(root + "/tmp")
    _mount(scratch, root + "/tmp", None, _BIND)
    for path in visible:
        os.makedirs(root + path, exist_ok=True)
        _mount(path, root + path, None, _BIND | _RECURSIVE)
        if path not in ("/dev", "/proc", "/sys"):
            try:
                _mount(None, root + path, None, _BIND | _REMOUNT | _READ_ONLY)
            except OSError:
                # A folder that is mounted with other flags is left as it is; what this user may not write stays so.
                pass
    for path in _SYSTEM:
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
    os.chroot(root)
    os.chdir("/tmp")
    # The shared memory of others is a way to them.
    if os.path.isdir("/dev/shm"):
        try:
            _mount("none", "/dev/shm", "tmpfs", 0)
        except OSError:
            pass


if __name__ == "__main__":
    print("; ".join(enter(sys.argv[1])[1]))
