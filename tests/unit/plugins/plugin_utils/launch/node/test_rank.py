# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import json
import os
import subprocess
import sys

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.request import NODE_FILES


def test_a_rank_becomes_the_script_with_logs_named_after_it(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "rank.py").write_text((NODE_FILES / "rank.py").read_text())
    (tmp_path / "launch.json").write_text('{"engine": "torchrun", "min_nodes": 2}')
    (tmp_path / "train.py").write_text(
        "import os, sys\nprint(sys.argv, __name__)\nprint(os.getpid(), file=sys.stderr)\nsys.exit(3)\n"
    )
    environment = {**os.environ, "RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "TORCHELASTIC_RESTART_COUNT": "2"}
    argv = [sys.executable, str(tmp_path / "rank.py"), "train.py", "--a", "b c"]
    process = subprocess.Popen(argv, env=environment, cwd=tmp_path)
    assert process.wait() == 3
    logs = tmp_path / "logs"
    assert (logs / "rank5.out").read_text() == "['train.py', '--a', 'b c'] __main__\n"
    # The same process, so that torchrun's signals and exit codes are the script's own.
    assert int((logs / "rank5.err").read_text()) == process.pid
    note = json.loads((logs / "rank5.json").read_text())
    assert note.pop("started") > 0
    assert note == {"rank": 5, "local_rank": 1, "world_size": 8, "attempt": 2}
    assert sorted(path.name for path in logs.iterdir()) == ["rank5.err", "rank5.json", "rank5.out"]


@pytest.mark.parametrize(("nodes", "ended"), [(1, 1), (2, 0)])
def test_a_rendezvous_that_began_without_a_node_never_begins_the_script(tmp_path, nodes, ended):
    (tmp_path / "logs").mkdir()
    (tmp_path / "rank.py").write_text((NODE_FILES / "rank.py").read_text())
    (tmp_path / "launch.json").write_text('{"engine": "torchrun", "min_nodes": 2}')
    (tmp_path / "train.py").write_text("print('begun')")
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": str(nodes), "GROUP_WORLD_SIZE": str(nodes)}
    argv = [sys.executable, str(tmp_path / "rank.py"), "train.py"]
    assert subprocess.run(argv, env={**os.environ, **ranks}, cwd=tmp_path, check=False).returncode == ended
    assert (tmp_path / "logs" / "rank0.out").read_text() == ("" if ended else "begun\n")
    told = "The rendezvous began with 1 of at least 2 nodes. c10d leaves out a node whose clock is some seconds slow"
    assert (told in (tmp_path / "logs" / "rank0.err").read_text()) == bool(ended)
