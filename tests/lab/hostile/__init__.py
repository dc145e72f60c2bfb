# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab host that an attacker took over: its Python answers Ansible's modules with prepared lies."""

import shlex
from pathlib import Path

HERE = Path(__file__).parent
HOME = "/usr/lib/hostile"  # liar.py has it too, which runs alone
PYTHON = "/usr/bin/python3.11"  # where the name leads to that Ansible finds
HONEST = f"{PYTHON}-honest"


def takeover(other: str) -> str:
    """Return the shell script by which a host becomes hostile; it lies as soon as a round is begun. other: address of another host."""
    files = {f"{HOME}/lies.py": (HERE / "lies.py").read_text(encoding="utf-8").replace("@other@", other)}
    files[f"{PYTHON}.new"] = f"#!{HONEST} -IS\n" + (HERE / "liar.py").read_text(encoding="utf-8")
    lines = ["set -e", f"mkdir -p {HOME}", f"[ -e {HONEST} ] || cp -a {PYTHON} {HONEST}"]
    lines += [f"printf %s {shlex.quote(text)} > {path}" for path, text in files.items()]
    return "\n".join(
        [*lines, f"chmod 755 {PYTHON}.new", f"mv {PYTHON}.new {PYTHON}", f"rm -f {HOME}/round {HOME}/taken"]
    )


def begin(name: str) -> str:
    """Return the command that begins a round; none: the host is honest again."""
    return f"rm -f {HOME}/taken {HOME}/round" + (f"; printf %s {shlex.quote(name)} > {HOME}/round" if name else "")
