# SPDX-License-Identifier: MIT
"""What cffi is told about the library, made from its public headers at build time, so that it never goes stale.

The headers go through the C preprocessor with empty system headers, as for a compiler that knows no attributes. Names
of enumerations become constants whose value the C compiler fills in.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile

ENUM = re.compile(r"\benum\s*\{(.*?)\}\s*;", re.DOTALL)
SYSTEM = ("stddef.h", "stdint.h")

# Beside the headers: buffers that the library hands over are released with free().
EXTRA = "void free(void *);\n"

SOURCE = """
#include <stdlib.h>
#include <dsec/dsec.h>
"""


def _preprocess(include: str) -> str:
    compiler = os.environ.get("CC", "cc").split()
    with tempfile.TemporaryDirectory(prefix="dsec-cdef-") as empty:
        for name in SYSTEM:
            open(os.path.join(empty, name), "w").close()
        command = [*compiler, "-E", "-P", "-nostdinc", "-U__GNUC__", "-I", empty, "-I", include, "-x", "c", "-"]
        done = subprocess.run(command, input="#include <dsec/dsec.h>\n", capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"dsec: {' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def _constants(match: re.Match[str]) -> str:
    names = [entry.split("=")[0].strip() for entry in match.group(1).split(",")]
    return "".join(f"#define {name} ...\n" for name in names if name)


def make(include: str) -> str:
    """The declarations of the headers below `include`."""
    return ENUM.sub(_constants, _preprocess(include)) + EXTRA
