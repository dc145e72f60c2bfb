# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock is packages with one version and their SHA-256. Whatever else an installer would obey is refused."""

import re
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.pins import (
    LONGEST,
    LockError,
    lock_problem,
    read_pins,
)
from hypothesis import example, given
from hypothesis import strategies as st

A, B = "a" * 64, "b" * 64
# As uv pip compile --generate-hashes writes it, with and without --no-annotate.
LOCK = f"""# Solved on gpu-1 by role allreduce.gpu.frameworks for: torch==2.13.0, größe
# request: 0123456789abcdef
filelock==4.3.1 \\
    --hash=sha256:{A} \\
    --hash=sha256:{B}
    # via torch
nvidia-cublas-cu12==12.4.5.8 ; sys_platform == 'linux' and platform_machine != "arm64" \\
    --hash=sha256:{A}

Torch[opt]==2.13.0+cpu --hash=sha256:{B}
epoch==1!2.0.post1.dev3 --hash=sha256:{B}
"""


def test_what_uv_writes_is_read():
    found = {name: (pin.version, set(pin.hashes)) for name, pin in read_pins(LOCK).items()}
    assert found == {
        "filelock": ("4.3.1", {A, B}),
        "nvidia-cublas-cu12": ("12.4.5.8", {A}),
        "torch": ("2.13.0+cpu", {B}),
        "epoch": ("1!2.0.post1.dev3", {B}),
    }


PIN = f"evil==1 --hash=sha256:{A}"
REFUSED = [
    # Options, in each of their forms.
    *(f"{option}\n{PIN}" for option in (
        "--index-url https://evil.example", "--index-url=https://evil.example", "-i https://evil.example", "--extra-index-url x",
        "--find-links /tmp", "-f /tmp", "--no-index", "--trusted-host evil.example", "--pre", "--no-binary :all:", "--only-binary=:none:",
        "-e /tmp/x", "--editable=/tmp/x", "-r /etc/passwd", "--requirement /etc/passwd", "-c /tmp/x", "--constraint /tmp/x",
        "--require-hashes", "  --index-url https://evil.example", "\\\n--index-url https://evil.example", "--", "-")),
    f"{PIN} --index-url https://evil.example", f"{PIN} -f /tmp", f"{PIN} --global-option=x", f'{PIN} --config-settings="a=b"',
    f"{PIN} \\\n --find-links /tmp", f"{PIN} ; -f /tmp", f"--find-links /tmp {PIN}",
    # Addresses and paths.
    *(f"{place} --hash=sha256:{A}" for place in (
        "evil @ https://evil.example/evil-1-py3-none-any.whl", "evil@https://evil.example/x.whl", "https://evil.example/evil-1.whl",
        "git+https://evil.example/x", "file:///tmp/evil-1.whl", "/tmp/evil-1.whl", "./evil-1.whl", "../evil", "~/evil", "evil-1.whl",
        "evil==1@https://evil.example", "evil @ file:///x ; python_version > '3'")),
    # Versions that leave a choice.
    *(f"{pin} --hash=sha256:{A}" for pin in (
        "evil", "evil>=1", "evil==1.*", "evil===1", "evil~=1", "evil==1,==2", "evil!=1", "evil==", "evil == 1", "evil==one two", "evil==x",
        "evil=1", "==1", "evil[==1", "evil[a]b==1", "evil==1;", "evil==1; nonsense", "evil==1 ; os_name", "a b==1", "evil==1 evil2==2")),
    # Hashes that are none.
    "evil==1", *(f"evil==1 {text}" for text in (
        f"--hash=md5:{'a' * 32}", f"--hash=sha1:{'a' * 40}", f"--hash=sha512:{'a' * 128}", f"--hash=sha256:{A[:-1]}", f"--hash=sha256:{A}a",
        f"--hash=sha256:{A.upper()}", f"--hash sha256:{A}", f"--hash=SHA256:{A}", "--hash=sha256:", f"--hash=sha256:{A},sha256:{B}",
        f"--hash=sha256:{A} --hash=md5:{'b' * 32}", f"--hash=sha256:{A} evil", f"# --hash=sha256:{A}", f"-–hash=sha256:{A}",
        f"––hash=sha256:{A}", f"--hash=sha256:{A[:32]}\\\n{A[:32]}")),
    # Variables, comments, line ends, characters that look like others.
    "${EVIL}", f"${{EVIL}}==1 --hash=sha256:{A}", f"evil==${{V}} --hash=sha256:{A}", f"evil==1 ; ${{M}} --hash=sha256:{A}",
    f"{PIN} # --index-url https://evil.example", f"{PIN}#", "# a comment\\\n--index-url https://evil.example",
    "# a comment\u2028--index-url https://evil.example", "# a comment\x0b--index-url https://evil.example",
    "# a comment\x85--index-url https://evil.example", "# a comment\r--index-url https://evil.example", "# a\0",
    f"evil==1 \\\n# a comment\n--hash=sha256:{A}", f"{PIN}\r", f"{PIN}\r\n", f"evil==1\t--hash=sha256:{A}", f"{PIN}\\", "\\", "\f",
    f"\ufeff{PIN}", f"evıl==1 --hash=sha256:{A}", f"evil==１ --hash=sha256:{A}", f"evil‐x==1 --hash=sha256:{A}", "\0", "\x1b[2J",
    f"evil==1\u00a0--hash=sha256:{A}", f"{PIN}\n{PIN}", f"{PIN}\nE_vil==2 --hash=sha256:{A}".replace("E_vil", "EVIL"),
    f"-evil==1 --hash=sha256:{A}", f"evil-==1 --hash=sha256:{A}", f"evil==1{'1' * 5000} --hash=sha256:{A}",
    f"evil==1 ; {'(' * 5000}os_name == 'x'{')' * 5000} --hash=sha256:{A}", f"evil==1 ;{' ' * 100000}--hash=sha256:{A}", "<html>",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_an_installer_would_obey_is_refused(text):
    began = time.monotonic()
    for whole in (text, f"{text}\n", f"{LOCK}{text}\n"):
        with pytest.raises(LockError) as refused:
            read_pins(whole)
        assert refused.value.problem.code in ("lock_line", "lock_twice")
        assert refused.value.problem.subject.isprintable() and len(refused.value.problem.subject) < 300
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "filler", [" ", "a", "-", "=", "(", "#", "\n", "\\\n", "a==1\n", "[a", ";", "--hash=sha256:" + A + " "]
)
def test_a_text_of_any_kind_is_read_or_refused_in_a_moment(filler):
    began = time.monotonic()
    text = "a==1 " + filler * ((LONGEST - 10) // len(filler))
    problem = lock_problem(text, [])
    assert problem is None or problem.code in ("lock_line", "lock_twice", "lock_long")
    assert lock_problem(text + "#" * LONGEST, []).code == "lock_long"
    assert time.monotonic() - began < 20


PIECES = st.sampled_from(
    ["a==1", "b==2.0", f"--hash=sha256:{A}", f"--hash=sha256:{B}", f"--hash=md5:{A[:32]}", " ", "\\\n", "\n", "\r", "\u2028", "#", "-e", "-r",
     "--index-url", "--find-links", "=", "https://evil.example/a.whl", "@", "/tmp/x", "${HOME}", ";", "python_version > '3'", "\t", "–", "\0", "\x0b"]
)  # fmt: skip
SAFE = re.compile(rf"[ab]==(?:1|2\.0)(?: *; *python_version > '3')?(?: +--hash=sha256:(?:{A}|{B}))+")


@given(st.lists(PIECES, max_size=20).map("".join))
@example(f"a==1 \\\n --hash=sha256:{A}\n # x\nb==2.0 --hash=sha256:{B}\n")
def test_all_that_an_installer_reads_of_a_lock_is_pins_with_hashes(text):
    """Read again as pip and uv do: lines end where either says so, and go on after a backslash."""
    try:
        pins = read_pins(text)
    except LockError:
        return
    read = 0
    for line in text.replace("\\\n", " ").splitlines():
        if line.strip() and not line.strip().startswith("#"):
            assert SAFE.fullmatch(line.strip()), line
            read += 1
    assert read == len(pins)


@given(st.text(max_size=200))
def test_texts_of_any_characters_are_pins_or_refused(text):
    try:
        pins = read_pins(text)
    except LockError as error:
        assert error.problem.subject.isprintable()
        return
    assert not pins or "--hash=sha256:" in text


@pytest.mark.parametrize(
    ("requirements", "unmet"),
    [
        ([], None),
        (["torch==2.13.0", "filelock>=4,<5", "NVIDIA_cublas.cu12"], None),
        (["torch[opt]<2.13"], "torch[opt]<2.13"),
        (["filelock", "numpy"], "numpy"),
        (["epoch<1"], "epoch<1"),
    ],
)
def test_a_lock_answers_what_was_asked_for(requirements, unmet):
    problem = lock_problem(LOCK, requirements)
    assert (problem.code, problem.subject) == ("lock_unmet", unmet) if unmet else problem is None
