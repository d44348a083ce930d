#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Man pages against headers: every function has a page, prototypes agree, names exist, examples compile, lint is clean.

Run from anywhere; needs a C compiler ($CC, else cc). mandoc is used where it is installed.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
MAN = TOP / "man"
SECTIONS = {
    "3": ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "EXAMPLES", "HISTORY", "SEE ALSO"],
    "7": ["NAME", "DESCRIPTION", "EXAMPLES", "HISTORY", "SEE ALSO"],
}
ENVIRONMENT = {"DSEC_ROOT", "DSEC_IMAGES"}
# Constants that only authors of backends meet; they are explained in dsec/backend.h.
ONLY_IN_HEADER = re.compile(r"DSEC_(FRAME_|BEGIN_|END_|API$|MUST_)")
ESCAPES = {r"\-": "-", r"\e": "\\", r"\&": "", r"\(aq": "'", r"\(ha": "^", r"\(ti": "~", r"\(ga": "`", r"\(dq": '"'}

problems: list[str] = []


def problem(where: str, what: str) -> None:
    problems.append(f"{where}: {what}")


def read_headers() -> tuple[dict[str, str], set[str]]:
    """Prototypes by function name, and the names of all constants and macros."""
    functions, constants = {}, set()
    for header in sorted((TOP / "include/dsec").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
        for found in re.finditer(r"\bDSEC_API\s+([^;{]*?\b(dsec_\w+)\s*\([^;{]*\))\s*;", text):
            functions[found[2]] = found[1].replace("DSEC_MUST_CHECK", " ")
        constants.update(re.findall(r"^\s*(DSEC_\w+)(?:\s*=[^,]*)?,", text, flags=re.M))
        constants.update(re.findall(r"^#define\s+(DSEC_\w+)", text, flags=re.M))
    constants -= {name for name in constants if name.endswith("_H")}
    return functions, constants


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def plain(line: str) -> str:
    """A line of roff as a reader sees it; arguments of font macros are joined."""
    macro = re.match(r"\.(B|I|BI|BR|IB|IR|RB|RI)\s+(.*)", line)
    if macro:
        words = [quoted if quoted else bare for quoted, bare in re.findall(r'"((?:[^"]|"")*)"|(\S+)', macro[2])]
        line = (" " if macro[1] in "BI" else "").join(words)
    elif line.startswith("."):
        return ""
    line = re.sub(r"\\f[BIRP]", "", line)
    return re.sub(r"\\(?:\(..|.)", lambda m: ESCAPES.get(m[0], m[0]), line)


def sections_of(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith(".SH "):
            name = line[4:].strip('"')
            found[name] = []
        elif name:
            found[name].append(line)
    return found


def literal_blocks(lines: list[str]) -> list[str]:
    blocks, block = [], None
    for line in lines:
        if line == ".nf":
            block = []
        elif line == ".fi" and block is not None:
            blocks.append("\n".join(block) + "\n")
            block = None
        elif block is not None:
            block.append(plain(line))
    return blocks


def check_examples(path: Path, lines: list[str]) -> int:
    programs = [b for b in literal_blocks(lines) if "#include" in b]
    compiler = os.environ.get("CC", "cc").split()
    if not programs:
        problem(path.name, "EXAMPLES has no program")
    for program in programs:
        command = [*compiler, "-fsyntax-only", "-Iinclude", "-Wall", "-Wextra", "-Werror", "-x", "c", "-"]
        done = subprocess.run(command, input=program, cwd=TOP, text=True, capture_output=True, check=False)
        if done.returncode:
            problem(path.name, "an example does not compile\n" + done.stderr)
    return len(programs)


def check_synopsis(path: Path, sections: dict[str, list[str]], functions: dict[str, str], here: set[str]) -> None:
    text = " ".join(plain(line) for line in sections.get("SYNOPSIS", []))
    text = re.sub(r"#include\s*<[^>]*>", "", text)
    shown = {}
    for prototype in filter(None, (part.strip() for part in text.split(";"))):
        name = re.search(r"\b(dsec_\w+)\s*\(", prototype)
        if not name:
            problem(path.name, f"SYNOPSIS: no prototype: {prototype}")
            continue
        shown[name[1]] = prototype
    named = " ".join(plain(line) for line in sections.get("NAME", []))
    for name in sorted(here | shown.keys()):
        if name not in shown:
            problem(path.name, f"{name} is not in SYNOPSIS")
        elif name not in functions:
            problem(path.name, f"{name} is in no header")
        elif name not in here:
            problem(path.name, f"{name} has another page")
        elif squeezed(shown[name]) != squeezed(functions[name]):
            header = " ".join(functions[name].split())
            problem(path.name, f"{name} differs\n  page:   {shown[name]}\n  header: {header}")
        if not re.search(rf"\b{name}\b", named):
            problem(path.name, f"{name} is not in NAME")


def check_order(path: Path, sections: dict[str, list[str]]) -> None:
    want = SECTIONS[path.suffix[1:]]
    have = [name for name in sections if name in want]
    if have != want:
        problem(path.name, f"sections are {', '.join(have)}; they should be {', '.join(want)}")
    for name in want:
        if not any(line and line != ".PP" for line in sections.get(name, [])):
            problem(path.name, f"{name} is empty")


def check_words(path: Path, constants: set[str]) -> set[str]:
    """Names of pages and constants that are used exist. Returns the constants."""
    text = path.read_text().replace("\\-", "-")
    for name, number in re.findall(r"\.BR (\S+) \((\d)\)", text) + re.findall(r"\\fB([\w-]+)(?:\\fR)?\((\d)\)", text):
        if name.startswith("dsec") and not (MAN / f"{name}.{number}").exists():
            problem(path.name, f"there is no {name}({number})")
    used = set(re.findall(r"\bDSEC_\w+", re.sub(r"\\f[BIRP]", "", text)))
    for name in sorted(used - constants - ENVIRONMENT):
        if not name.endswith("_"):
            problem(path.name, f"{name} is in no header")
    return used


def check_lint(pages: list[Path]) -> None:
    if not shutil.which("mandoc"):
        print("skipped: mandoc is not installed, the pages are not linted")
        return
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *map(str, pages)],
                          text=True, capture_output=True, check=False)
    for line in (done.stdout + done.stderr).splitlines():
        problem("lint", line)


def main() -> int:
    functions, constants = read_headers()
    pages, links = [], {}
    for path in sorted(MAN.glob("*.[37]")):
        link = re.fullmatch(r"\.so man3/(\w+)\.3\n", path.read_text())
        if link:
            links[path.stem] = link[1]
        else:
            pages.append(path)
    for name, target in links.items():
        if not any(page.name == f"{target}.3" for page in pages):
            problem(f"{name}.3", f"{target}.3 is not a page")
    for name in sorted(functions):
        if not (MAN / f"{name}.3").exists():
            problem("man", f"{name} has no page")

    examples, used = 0, set()
    for path in pages:
        sections = sections_of(path)
        check_order(path, sections)
        used |= check_words(path, constants)
        examples += check_examples(path, sections.get("EXAMPLES", []))
        if path.suffix == ".3":
            here = {path.stem} | {name for name, target in links.items() if target == path.stem}
            check_synopsis(path, sections, functions, here)
    for name in sorted(constants - used):
        if not ONLY_IN_HEADER.match(name):
            problem("man", f"{name} is on no page")
    check_lint(pages)

    for text in problems:
        print(text)
    print(f"man: {len(functions)} functions, {len(pages)} pages, {len(links)} links, {examples} examples, "
          f"{len(problems)} problems")
    return 1 if problems or not functions else 0


if __name__ == "__main__":
    sys.exit(main())
