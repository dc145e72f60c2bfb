# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import sys

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import probes


def test_a_program_that_is_missing():
    code, lines = probes.run(["allreduce-no-such-program"])
    assert code is None
    assert lines[0].startswith("allreduce-no-such-program does not start: ")


def test_a_program_that_takes_too_long():
    assert probes.run([sys.executable, "-c", "import time; time.sleep(30)"], timeout=0.2)[0] is None


def test_lines_of_both_outputs_without_empty_ones():
    code, lines = probes.run(
        [sys.executable, "-c", "import sys; print('a'); print(); print('b', file=sys.stderr); sys.exit(3)"]
    )
    assert (code, sorted(lines)) == (3, ["a", "b"])


def test_imports_answer_for_each_module(tmp_path, monkeypatch):
    monkeypatch.setattr(probes, "ENVIRONMENTS", str(tmp_path))
    (tmp_path / "main" / "bin").mkdir(parents=True)
    (tmp_path / "main" / "bin" / "python").symlink_to(sys.executable)
    answer = probes.probe_environment("main", ["json", "no_such_module"], None)
    assert answer["json"] == {"version": "2.0.9"}
    assert answer["no_such_module"]["error"].startswith("ModuleNotFoundError")


@pytest.mark.parametrize("name", ["gone", "silent"])
def test_an_environment_that_cannot_answer_says_why(tmp_path, monkeypatch, name):
    monkeypatch.setattr(probes, "ENVIRONMENTS", str(tmp_path))
    (tmp_path / "silent" / "bin").mkdir(parents=True)
    (tmp_path / "silent" / "bin" / "python").symlink_to("/bin/false")
    assert name in probes.probe_environment(name, ["torch"], None)["error"]


def test_names_and_unknown_users():
    assert "127.0.0.1" in probes.resolve("localhost")
    assert probes.resolve("no-such-host.invalid") == []
    peer = probes.probe_peer("localhost", "127.0.0.1", "no-such-user-here")
    assert peer["reason"] == "there is no user no-such-user-here on this node"
    assert "ssh" not in peer


def test_no_peers():
    assert probes.probe_peers({}, "nobody") == {}
