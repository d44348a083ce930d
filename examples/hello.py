#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The smallest use of dsec from Python: one sandbox, one file, a few commands."""

import dsec

with dsec.Sandbox.create("container", image="host", memory="256M") as sb:
    sb.files.write("/root/answer.py", "print(6 * 7)\n")

    r = sb.run("python3 /root/answer.py", timeout=10)  # text goes through the sandbox's shell
    print(f"exit code {r.exit_code}, said: {r.stdout}", end="")

    r = sb.run(["sleep", "60"], timeout=0.5)  # a list does not
    print(f"a command that takes too long: {r.reason.name}")

    r = sb.run("rm -rf /root; ls -A /root | wc -l")  # its own files, not those of this machine
    print(f"files left in the sandbox's /root: {r.stdout}", end="")
