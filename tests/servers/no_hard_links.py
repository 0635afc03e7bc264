"""A process in which hard links fail, as on FUSE mounts, vfat and shares of SMB; on Linux alone.

python -m tests.servers.no_hard_links SCRIPT
"""

import ctypes
import errno
import platform
import struct
import subprocess
import sys

_LINK_CALLS = {"x86_64": (86, 265), "aarch64": (37,)}
"""The numbers of `link` and `linkat`."""
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def forbid_hard_links(answer: int = errno.EPERM) -> None:
    """Let this process and its threads fail to make hard links, with this error."""
    calls = _LINK_CALLS[platform.machine()]
    steps = [(_LOAD, 0, 0, 0)]
    steps += [(_JUMP_IF_EQUAL, len(calls) - at, 0, call) for at, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _FAIL | answer)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(steps), code)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(
        _SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp is not available")


def printed_without_hard_links(script: str) -> str:
    """Return what a script prints in such a process, which must succeed."""
    command = [sys.executable, "-m", "tests.servers.no_hard_links", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    forbid_hard_links()
    exec(sys.argv[1])
