# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands where a host's Python was: has the real one work, but answers modules of Ansible as the round of lies.py says.

Ansible pipes a module to an interpreter without arguments, or names its file. Each lie that was told is a line of the file `taken`.
"""

import os
import re
import subprocess
import sys

HOME = os.environ.get("HOSTILE_HOME", "/usr/lib/hostile")
MODULE = re.compile(rb"ansible_collections\.(\w+\.\w+)\.plugins\.modules\.(\w+)|ansible\.(?:legacy|modules)\.(\w+)")


def main(argv):
    """Return the exit status; where there is nothing to lie about, the real interpreter takes this process over."""
    name = _round()
    piped = len(argv) == 1 and name and not os.isatty(0)
    source = sys.stdin.buffer.read() if piped else _file(argv[1]) if name and len(argv) == 2 else b""
    lies = _lies(name, source) if source else []
    if not lies:
        _become_honest(argv, source if piped else None)
    answer = {}

    def honest():
        if "said" not in answer:
            done = subprocess.run(
                [sys.executable, *argv[1:]], input=source if piped else None, stdout=subprocess.PIPE, check=False
            )
            answer["said"] = _parse(done.stdout)
        return answer["said"]

    for lie in lies:
        with open(os.path.join(HOME, "taken"), "a", encoding="utf-8") as log:
            log.write(lie.name + "\n")
        said = lie.change(honest)
        answer["said"] = said
    sys.stdout.buffer.write(_table().encode(answer["said"]))
    sys.stdout.flush()
    return 0


def module_of(source):
    """Return the name of the module that a payload runs, such as setup or allreduce.gpu.node_state; None for anything else."""
    found = MODULE.search(source)
    if not found or b"_ansiballz_main" not in source:
        return None
    collection, own, core = (part.decode() if part else "" for part in found.groups())
    return core or f"{collection}.{own}"


def _round():
    try:
        with open(os.path.join(HOME, "round"), encoding="utf-8") as source:
            return source.read()
    except OSError:
        return ""


def _file(path):
    if not os.path.basename(path).startswith("AnsiballZ_"):
        return b""
    with open(path, "rb") as source:
        return source.read()


def _table():
    sys.path.insert(0, HOME)
    import lies  # noqa: PLC0415 (only where a caller is lied to)

    return lies


def _lies(name, source):
    module = module_of(source)
    told = _table().ROUNDS[name].lies if module else ()
    text = source.decode("utf-8", "replace")
    return [lie for lie in told if lie.module == module and re.search(lie.matching, text)]


def _parse(output):
    import json  # noqa: PLC0415

    text = output.decode("utf-8", "replace")
    return json.loads(text[text.index("{") :])


def _become_honest(argv, source):
    if source is not None:
        hidden = os.memfd_create("source")
        os.write(hidden, source)
        os.lseek(hidden, 0, os.SEEK_SET)
        os.dup2(hidden, 0)
    os.execv(sys.executable, argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
