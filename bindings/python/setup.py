# SPDX-License-Identifier: MIT
"""Builds the extension module and takes libdsec.so along in the wheel.

Beside a checkout of dsec the library is built first. Elsewhere DSEC_LIBRARY names the library and DSEC_INCLUDE the
directory that holds dsec/dsec.h.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent.parent
SONAME = re.compile(r"\(SONAME\).*\[(.+)\]")

sys.path.insert(0, str(HERE))
import cdef  # noqa: E402

from cffi import FFI  # noqa: E402


def in_checkout() -> bool:
    return (REPO / "include/dsec/dsec.h").is_file() and (REPO / "Makefile").is_file()


def find() -> tuple[pathlib.Path, pathlib.Path]:
    """The library, and the directory of its headers."""
    library, include = os.environ.get("DSEC_LIBRARY"), os.environ.get("DSEC_INCLUDE")
    if library and include:
        return pathlib.Path(library).resolve(), pathlib.Path(include).resolve()
    if library or include or not in_checkout():
        raise SystemExit("dsec: set both DSEC_LIBRARY=/path/libdsec.so and DSEC_INCLUDE=/path/include, or build in a "
                         "checkout of dsec")
    # A make that runs us has descriptors for its jobs that pip does not hand on.
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "-C", str(REPO), "lib"], env=env, check=True, stdout=sys.stderr)
    return REPO / "build/libdsec.so", REPO / "include"


def soname(library: pathlib.Path) -> str:
    """The name that the extension will ask the loader for."""
    try:
        out = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as e:
        raise SystemExit(f"dsec: cannot read {library}: {e}") from None
    found = SONAME.search(out)
    if not found:
        raise SystemExit(f"dsec: {library} has no SONAME")
    return found.group(1)


def version(include: pathlib.Path) -> str:
    text = (include / "dsec/types.h").read_text()
    found = re.search(r'^#define DSEC_VERSION "([^"]+)"', text, re.MULTILINE)
    if not found:
        raise SystemExit(f"dsec: {include}/dsec/types.h has no DSEC_VERSION")
    return found.group(1)


class Build(build):
    """Starts from nothing: a file that is gone from the source must not live on in the wheel."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildExt(build_ext):
    """Puts the library beside the extension, where its run path of $ORIGIN finds it."""

    def run(self) -> None:
        super().run()
        top = HERE if self.inplace else pathlib.Path(self.build_lib)
        shutil.copy2(LIBRARY, top / "dsec" / soname(LIBRARY))


def extension(library: pathlib.Path, include: pathlib.Path, tmp: pathlib.Path) -> object:
    ffi = FFI()
    ffi.cdef(cdef.make(str(include)))
    ffi.set_source("dsec._dsec", cdef.SOURCE, include_dirs=[str(include)], extra_objects=[str(library)],
                   extra_link_args=["-Wl,-rpath,$ORIGIN"])
    tmp.mkdir(parents=True, exist_ok=True)
    return ffi.distutils_extension(str(tmp))


LIBRARY, INCLUDE = find()
BASE = REPO / "build/python" if in_checkout() else HERE / "build"  # nothing is written into the checkout's sources
BASE.mkdir(parents=True, exist_ok=True)

setup(
    version=version(INCLUDE),
    ext_modules=[extension(LIBRARY, INCLUDE, BASE / "cffi")],
    cmdclass={"build": Build, "build_ext": BuildExt},
    options={"build": {"build_base": str(BASE)}, "egg_info": {"egg_base": str(BASE)}},
)
