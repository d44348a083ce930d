# SPDX-License-Identifier: MIT
"""Isolated sandboxes by the thousand, linked into the trainer.

    import dsec

    with dsec.Sandbox.create("container", cpu=2, memory="2G") as sb:
        sb.files.write("/root/t.py", "print(6 * 7)")
        r = sb.run("python3 /root/t.py", timeout=10)
        print(r.exit_code, r.stdout)

dsec.AsyncSandbox is the same with await. Times are seconds, sizes bytes.
"""

from ._aio import AsyncExec, AsyncFiles, AsyncSandbox
from ._dsec import ffi as _ffi
from ._dsec import lib as _lib
from ._errors import Error, ExecError, OptionError, SandboxLost, UnknownOutcome, WaitTimeout
from ._node import Node, NodeStats, ProbeItem, SandboxInfo, State, probe
from ._result import Reason, Result
from ._sandbox import Capability, Chunk, Exec, Files, Sandbox, SandboxStats

__version__: str = _ffi.string(_lib.dsec_version()).decode()

__all__ = [
    "AsyncExec",
    "AsyncFiles",
    "AsyncSandbox",
    "Capability",
    "Chunk",
    "Error",
    "Exec",
    "ExecError",
    "Files",
    "Node",
    "NodeStats",
    "OptionError",
    "ProbeItem",
    "Reason",
    "Result",
    "Sandbox",
    "SandboxInfo",
    "SandboxLost",
    "SandboxStats",
    "State",
    "UnknownOutcome",
    "WaitTimeout",
    "probe",
]
