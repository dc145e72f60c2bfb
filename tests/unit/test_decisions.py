# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No code decides by the wording of a message: problems, findings and failures have codes, and text is made at the rim.

Where the words of a foreign program are read, the place stands in ALLOWED with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What variables, attributes, keys and parameters are called that hold words.
WORDS = {
    "action", "cause", "description", "err", "error", "expected", "failure", "line", "lines", "measured", "message",
    "msg", "out", "output", "problem", "problems", "reason", "reasons", "remedy", "said", "sentence", "stderr", "stdout",
    "tail", "text", "texts", "title", "warning", "warnings", "why", "words",
}  # fmt: skip
METHODS = {
    "startswith", "endswith", "removeprefix", "removesuffix", "find", "index", "count", "split", "partition", "rpartition",
}  # fmt: skip
SEARCHES = {"match", "search", "fullmatch", "findall", "finditer", "fnmatch", "fnmatchcase"}

# Who reads words, and whose they are. A key is a file, or a file and a function.
ALLOWED = {
    "plugins/module_utils/health/examination.py:reduce_file": "files that set environments, and units",
    "plugins/module_utils/health/links.py:works": "codes of gpu_health's counters",
    "plugins/module_utils/health/kernel_log.py": "the kernel log, as the driver writes it",
    "plugins/module_utils/host/cdi.py": "CDI specifications: the version in the name of a library; node-side Python reads no YAML",
    "plugins/module_utils/host/audit.py": "records of the audit log, which have no other form",
    "plugins/module_utils/host/boot.py": "files of GRUB and boot loader entries, output of grubby",
    "plugins/module_utils/training/stacks.py:frames": "stacks that Python's faulthandler writes, which have no other form",
    "plugins/module_utils/host/download.py:_problem": "http.client: a proxy's answer to CONNECT has no code of its own",
    "plugins/module_utils/host/download.py:link_to": "a page of a package index (PEP 503)",
    "plugins/module_utils/host/driver_owner.py:dgx_name": "/etc/dgx-release",
    "plugins/plugin_utils/environments/pins.py:_lines": "which characters a lock may have",
    "plugins/module_utils/packages/environments.py:parse_lock": "the digest in the header of a lock",
    "plugins/module_utils/host/fapolicyd.py:reloads": "options that fapolicyd-cli names in its help; no release has another sign",
    "plugins/module_utils/settings/firewall_facts.py:parse_listeners": "output of ss: programs that listen",
    "plugins/module_utils/host/kernel_arguments.py": "files of GRUB and boot loader entries",
    "plugins/module_utils/host/limits.py:parse": "/proc/PID/limits",
    "plugins/module_utils/host/logind.py:overriding": "files of logind",
    "plugins/module_utils/settings/nccl.py:read_foreign": "files that set environments",
    "plugins/module_utils/host/nft.py": "output of nft: the digest in our table's comment",
    "plugins/module_utils/host/probes.py:parse_nvidia_smi": "nvidia-smi; its only reader",
    "plugins/module_utils/host/ufw.py": "files of ufw, where our lines stand between two marks",
    "plugins/module_utils/host/selinux.py:configured": "/etc/selinux/config",
    "plugins/module_utils/host/tc.py": "output of tc",
    "plugins/module_utils/machine/procfs.py": "files of the driver below /proc",
    "plugins/module_utils/machine/sysfs.py": "files of the kernel below /sys",
    "plugins/module_utils/packages/conda_lock.py:_entry": "a line of an explicit lock",
    "plugins/module_utils/packages/conda_program.py:parse_version": "what conda, mamba and micromamba print of their versions",
    "plugins/module_utils/packages/hold.py:select": "dpkg has one exit code for all failures",
    "plugins/module_utils/packages/hold_apt.py": "files of apt",
    "plugins/module_utils/packages/hold_dnf.py": "files of dnf and of its plugin, output of rpm",
    "plugins/module_utils/packages/apt_sources.py": "sources.list and .sources files",
    "plugins/module_utils/packages/installed.py": "Release files, output of dpkg and rpm",
    "plugins/module_utils/settings/qos_plan.py:loadable": "rules for nft, which are ours",
    "plugins/module_utils/settings/slurm_accounting_text.py:minutes": "a time in a field of sacctmgr --parsable2",
    "plugins/module_utils/settings/slurm.py:read_named": "lines of slurm.conf",
    "plugins/module_utils/settings/slurm_conf.py": "slurm.conf, gres.conf and options of slurmd",
    "plugins/module_utils/settings/slurm_probe.py:run_job": "lines of slurm.conf, and what the job's own command prints",
    "plugins/module_utils/slurm/decision.py:is_ours": "the reason that Slurm keeps of a node, which has no code: whose it is",
    "plugins/module_utils/slurm/decision.py:is_answer_to": "the reason that slurmctld gives for an exit code",
    "plugins/module_utils/storage/manifest.py:parse": "a manifest of sha256sum",
    "plugins/module_utils/storage/tables.py": "tables of the kernel below /proc, output of wipefs",
    "plugins/plugin_utils/environments/locks.py": "the digest in the header of a lock",
    "plugins/plugin_utils/launch/node/slurm.py:look": "fields of scontrol --oneliner",
    "plugins/plugin_utils/launch/outcome.py:_lost_peer": "what NCCL, Gloo and torchrun print",
    "plugins/plugin_utils/launch/outcome.py:_gave_up": "what NCCL and Gloo print",
    "plugins/plugin_utils/packages/causes.py": "what apt, dnf, uv and pip print; their only reader",
    "plugins/plugin_utils/packages/messages.py": "what apt and dnf print: addresses and names in it",
    "plugins/plugin_utils/packages/openpgp.py": "armor of OpenPGP keys",
    "plugins/plugin_utils/topology/matrix.py": "recorded output of nvidia-smi topo -m",
    "roles/cuda_toolkit/vars/main.yml": "output of update-alternatives",
    "roles/frameworks/tasks/install.yml": "uv marks what it changes with a sign",
    "roles/horovod/vars/main.yml": "the address of the package index, as uv prints it",
}


def named(node: ast.AST) -> str:
    """Return what an expression is called: text, found.text, found["text"], found.get("text"), text.strip(), str(text)."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        key = node.slice
        return str(key.value) if isinstance(key, ast.Constant) and isinstance(key.value, str) else named(node.value)
    if isinstance(node, ast.BoolOp):
        return named(node.values[0])
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            if node.func.attr == "get" and isinstance(first, ast.Constant):
                return str(first.value)
            return named(node.func.value)
        return named(node.args[0]) if node.args else ""
    return ""


def holds_words(node: ast.AST) -> bool:
    return named(node).lower() in WORDS


def wordy(node: ast.AST) -> bool:
    """Tell whether what is looked for is a word, or the gap between words: no sign such as = that a format has."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return any(wordy(one) for one in node.elts)
    if not isinstance(node, ast.Constant):
        return True
    if not isinstance(node.value, (str, bytes)):
        return False
    text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    return text == " " or re.search(r"[A-Za-z]{3}", re.sub(r"\\\w|\(\?P<\w+>", "", text)) is not None


def is_sentence(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\w \w", node.value) is not None
    )


def decides(node: ast.AST) -> bool:
    """Tell whether an expression looks at how a message is worded."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method, arguments = node.func.attr, node.args
        if method in METHODS and holds_words(node.func.value):
            return bool(arguments) and wordy(arguments[0])
        if method in SEARCHES and any(holds_words(argument) for argument in arguments):
            return len(arguments) == 1 or any(wordy(one) for one in arguments if not holds_words(one))
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if isinstance(operator, (ast.In, ast.NotIn)) and holds_words(right) and wordy(left):
                return isinstance(left, ast.Constant)
            if isinstance(operator, (ast.Eq, ast.NotEq)) and (is_sentence(left) or is_sentence(right)):
                return True
    return False


def in_python(text: str) -> Iterator[tuple[str, str]]:
    """Yield (function, expression) of each place in a module that decides by words."""

    def visit(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
        for child in ast.iter_child_nodes(node):
            inner = place
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner = f"{place}.{child.name}".lstrip(".")
            if decides(child):
                yield inner, ast.unparse(child)
            yield from visit(child, inner)

    yield from visit(ast.parse(text), "")


# In YAML and Jinja: a test or a search of something that is called after words.
_NAMED = r"\w*(?:msg|message|stderr|stdout|reason|text|sentence|failure|failed_result|problem|said|shown)\w*\b"
IN_TEMPLATES = re.compile(
    rf"\b{_NAMED}[^{{}}]*\b(?:is (?:not )?(?:match|search|regex|contains)\b|regex_search\b|regex_findall\b|\.(?:startswith|endswith|find)\()"
    rf"|(?:'[^']*[A-Za-z]{{3}}[^']*'|\"[^\"]*[A-Za-z]{{3}}[^\"]*\") (?:not )?in [\w.]*\b{_NAMED}",
)


def in_templates(text: str) -> Iterator[str]:
    """Yield each line of YAML or Jinja that decides by words."""
    for line in text.splitlines():
        if not line.lstrip().startswith("#") and IN_TEMPLATES.search(line):
            yield line.strip()


def hits() -> dict[str, list[str]]:
    """Return what is found, by file and function."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        for place, expression in in_python(path.read_text(encoding="utf-8")):
            found.setdefault(f"{path.relative_to(ROOT)}:{place}", []).append(expression)
    for folder, pattern in (("roles", "*.yml"), ("roles", "*.j2"), ("playbooks", "*.yml"), ("plugins", "*.j2")):
        for path in sorted((ROOT / folder).rglob(pattern)):
            for line in in_templates(path.read_text(encoding="utf-8")):
                found.setdefault(str(path.relative_to(ROOT)), []).append(line)
    return found


def reason_for(place: str) -> str | None:
    return ALLOWED.get(place) or ALLOWED.get(place.partition(":")[0])


def test_no_code_decides_by_the_wording_of_a_message():
    assert {place: found for place, found in hits().items() if reason_for(place) is None} == {}


def test_what_is_allowed_is_still_there():
    places = {one for place in hits() for one in (place, place.partition(":")[0])}
    assert set(ALLOWED) <= places


@pytest.mark.parametrize(
    "code",
    [
        # What this collection did until problems had codes.
        'text.startswith("NVML cannot open GPU")',
        'driver["nvml"] != "ok" and found["reason"].startswith("pynvml")',
        'text.split(" ")[0]',
        'measured.startswith(f"{gpu} ")',
        'error.text.startswith("PCIe x")',
        '"No devices were found" in text',
        '"pynvml" in reason.lower()',
        'reason == "Not Supported"',
        're.match("The .* packages could not", result["msg"])',
        'PATTERN.search(result.get("stderr"))',
        'str(error).endswith("not found")',
        'message.find("lock") >= 0',
    ],
)
def test_a_decision_by_words_is_found(code):
    assert list(in_python(code))


@pytest.mark.parametrize(
    "code",
    [
        'problem["code"] == "gpu_not_opened"',
        'finding["severity"] in ("failed", "degraded")',
        'name.startswith("nvidia")',
        'line.split("=", 1)',
        "text in known",
        '"; ".join(reasons)',
        "text.strip().rstrip('.')",
        'state == "version_mismatch"',
    ],
)
def test_a_decision_by_a_code_is_not_found(code):
    assert not list(in_python(code))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("when: __x_failure.msg is match('The [a-z ]+ packages could not')", True),
        ("when: result.stderr | default('') is not search('key')", True),
        ("when: \"'No space' in ansible_failed_result.msg\"", True),
        ("when: __x_result.stdout.startswith('ok')", True),
        ("when: __x_problem.cause == 'disk_full'", False),
        ("that: x_checksum is match('sha256:[0-9a-f]{64}$')", False),
        ("# when: result.msg is match('x')", False),
        ("msg: 'Look into stdout for details'", False),
    ],
)
def test_decisions_in_templates(line, found):
    assert bool(list(in_templates(line))) is found
