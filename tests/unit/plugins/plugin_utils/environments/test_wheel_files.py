# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What uv on a node says of the wheels is those of the lock, under names that are no paths, or it is refused."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.pins import read_pins
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.wheel_files import (
    offered_wheels,
    planned_wheels,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import ProblemError
from hypothesis import given
from hypothesis import strategies as st

from tests.support.wheel import wheel

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
LOCK = f"""alpha==1.0 --hash=sha256:{A} --hash=sha256:{C}
torch==2.13.0+cpu --hash=sha256:{B}
windows-only==3 ; sys_platform == 'win32' --hash=sha256:{C}
"""
ALPHA = {"file": "alpha-1.0-py3-none-any.whl", "sha256": A, "url": "https://index.example/a/alpha-1.0-py3-none-any.whl"}
TORCH = {
    "file": "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", "sha256": B, "url": "file:///srv/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl",
}  # fmt: skip


def toml(*packages):
    return 'lock-version = "1.0"\ncreated-by = "uv"\n' + "\n".join(packages)


def package(name, version, *wheels):
    return f'[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [{", ".join(wheels)}]\n'


def file(url, digest, key="url"):
    return f'{{ {key} = "{url}", size = 3, upload-time = 2026-11-23T18:01:12Z, hashes = {{ sha256 = "{digest}" }} }}'


OWN = (
    package("alpha", "1.0", file(ALPHA["url"], A)),
    package("torch", "2.13.0+cpu", file("/srv/torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", B, "path")),
)


def test_the_wheels_of_a_lock():
    assert planned_wheels(toml(*OWN), LOCK) == [{**ALPHA, "bytes": 3}, {**TORCH, "bytes": 3}]


def test_what_uv_says_of_wheels_in_a_directory(tmp_path):
    uv = Path(sys.executable).parent / "uv"
    uv = str(uv) if uv.exists() else shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    wheel(tmp_path, "alpha", "1.0")
    wheel(tmp_path, "be_ta", "2.0+local")
    (tmp_path / "in.txt").write_text("alpha\nbe-ta\n")
    command = [
        uv,
        "pip",
        "compile",
        "--quiet",
        "--no-config",
        "--no-cache",
        "--offline",
        "--no-index",
        "--find-links",
        str(tmp_path),
        "--no-header",
    ]
    options = {"cwd": tmp_path, "text": True, "capture_output": True}
    lock = subprocess.run([*command, "--generate-hashes", "--no-annotate", "in.txt"], check=True, **options).stdout
    assert set(read_pins(lock)) == {"alpha", "be-ta"}
    pylock = subprocess.run(
        [*command, "--no-deps", "--format", "pylock.toml", "-"], input=lock, check=True, **options
    ).stdout
    found = planned_wheels(pylock, lock)
    assert [one["file"] for one in found] == ["alpha-1.0-py3-none-any.whl", "be_ta-2.0+local-py3-none-any.whl"]
    assert all(one["url"].startswith(f"file://{tmp_path}/") for one in found)


@pytest.mark.parametrize(
    "pylock",
    [
        "", "{", "packages = 3", "packages = [3]", "lock-version = '1.0'", "[packages]\nname = 'alpha'", "a = " + "[" * 100_000, "#" * (5 << 20),
        toml(OWN[0]), toml(OWN[1]), toml(*OWN, OWN[0]), toml(*OWN, package("evil", "1", file("https://evil.example/evil-1-py3-none-any.whl", A))),
        *(toml(OWN[1], package("alpha", "1.0", one)) for one in (
            file(ALPHA["url"], B), file(ALPHA["url"], ""), file("https://index.example/alpha-1.1-py3-none-any.whl", A),
            file("https://index.example/evil-1.0-py3-none-any.whl", A), file("https://index.example/..%2F..%2Falpha-1.0-py3-none-any.whl", A),
            file("https://index.example/alpha-1.0-py3-none-any.whl%0A", A), file("https://index.example/%2e%2e", A),
            file("https://index.example/", A), file("https://[index.example/alpha-1.0-py3-none-any.whl", A),
            file("ftp://index.example/alpha-1.0-py3-none-any.whl", A), file("alpha-1.0-py3-none-any.whl", A, "path"),
            file("https://index.example/alpha-1.0.tar.gz", A), "{ }", "{ url = 3 }",
            f'{{ url = "{ALPHA["url"]}" }}', f'{{ url = "{ALPHA["url"]}", hashes = 3 }}',
            "3")),
        toml(OWN[1], '[[packages]]\nname = "alpha"\nwheels = 3\n'), toml(OWN[1], '[[packages]]\nname = "alpha"\n'), toml(OWN[1], "[[packages]]\nname = 3\n"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(pylock):
    with pytest.raises(ProblemError) as refused:
        planned_wheels(pylock, LOCK)
    (problem,) = refused.value.problems
    assert problem.code in ("wheels_unreadable", "wheels_other") and problem.subject.isprintable()


PARTS = st.sampled_from(
    [
        "alpha-1.0-py3-none-any.whl",
        "/",
        "..",
        "%2F",
        "%00",
        "?",
        "#",
        "alpha-1.0",
        "evil",
        ".whl",
        ";",
        " ",
        "%2e",
        "\\\\",
    ]
)


@given(
    st.lists(PARTS, min_size=1, max_size=6).map("".join), st.sampled_from([A, B, C]), st.sampled_from(["url", "path"])
)
def test_a_name_is_no_path_and_a_digest_is_one_of_the_lock(tail, digest, key):
    url = f"https://index.example/{tail}" if key == "url" else f"/srv/{tail}"
    try:
        found = planned_wheels(toml(OWN[1], package("alpha", "1.0", file(url, digest, key))), LOCK)
    except ProblemError:
        return
    assert [one["file"] for one in found] == [ALPHA["file"], TORCH["file"]]
    assert found[0]["sha256"] in (A, C)


@pytest.mark.parametrize(
    "said",
    [
        None, {}, [], [{"bytes": 1}], [{"bytes": 1}] * 3, [{"bytes": 1}, {}], [{"bytes": 1}, {"bytes": 0}], [{"bytes": 1}, {"bytes": -1}],
        [{"bytes": 1}, {"bytes": "2"}], [{"bytes": 1}, {"bytes": True}], [{"bytes": 1}, {"bytes": 2.5}], [{"bytes": 1}, {"bytes": float("nan")}],
        [{"bytes": 1}, {"bytes": 1 << 60}], [{"bytes": 1}, 2], "ab",
    ],
)  # fmt: skip
def test_sizes_that_are_none_are_refused(said):
    with pytest.raises(ProblemError):
        offered_wheels([ALPHA, TORCH], said)


def test_of_what_was_downloaded_only_the_sizes_count():
    said = [{"bytes": 3, "file": "/etc/shadow", "sha256": C}, {"bytes": 4}]
    assert offered_wheels([ALPHA, TORCH], said) == [
        {"file": ALPHA["file"], "sha256": A, "bytes": 3},
        {"file": TORCH["file"], "sha256": B, "bytes": 4},
    ]
