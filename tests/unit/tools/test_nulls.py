# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""null is what nobody knows, in columns of which the resolver or this table says what then holds."""

from __future__ import annotations

from tools import nulls

# Who says that a cell is not known, or what holds without it.
SAID = {
    ("dcgm", "released"): "documentation shows ?",
    ("container_toolkit", "min_driver"): "the component warns, and takes the floor of older releases",
    ("distros", "cuda_first"): "unknowns.py warns where a toolkit is planned",
    ("distros", "scenario"): "none: a rebuild would inherit what is left out",
    ("driver_packages", "ubuntu_revisions.addon"): "a pattern is pinned instead of a version",
    ("driver_packages", "ubuntu_revisions.driver"): "a pattern is pinned instead of a version",
    ("drivers", "eol"): "the branch's status is known",
    ("drivers", "latest"): "documentation shows ?",
    ("drivers", "type"): "a branch of unknown type is preferred to none",
    ("gpus", "forward_compat"): "taken as false",
    ("gpus", "min_driver"): "the driver component warns before known_driver",
    ("jax", "tensorflow.ml_dtypes"): "none: TensorFlow requires nothing",
    ("jax", "tensorflow.nvcc"): "none: TensorFlow requires nothing",
    ("mig", "profiles"): "the plan says that a profile that is asked for was not verified",
    ("repositories", "key_fingerprint"): "role cuda_repository asks for it",
    ("tensorflow", "ptx"): "the component warns on hosts with GPUs",
    ("tensorflow", "sass"): "the component warns on hosts with GPUs",
    ("torch", "cudnn"): "TensorFlow's component warns where it limits it",
    ("torch", "nccl"): "TensorFlow's component warns where it limits it",
    ("torch", "nvshmem"): "the component takes what the release's other builds pin, and warns",
    ("torch", "ptx"): "taken as none",
    ("torch", "sass"): "not planned unasked for GPUs that came later",
}


def test_nulls_stand_only_where_it_is_said_what_holds_without_a_value():
    assert {cell for cell in nulls.nulls() if cell not in SAID} == set()


def test_what_is_said_is_still_needed():
    assert set(SAID) <= set(nulls.nulls())


def test_cells_are_counted_by_table_and_column(tmp_path):
    (tmp_path / "one.yml").write_text(
        'rows:\n  - {a: null, builds: [{b: null}, {b: 1}], c: {"1.2": null, d: null}}\n  - {a: null, c: []}\n'
    )
    (tmp_path / "two.yml").write_text("none: 0\n")
    assert nulls.nulls(tmp_path) == {("one", "a"): 2, ("one", "b"): 1, ("one", "c"): 1, ("one", "c.d"): 1}


def test_the_counts_are_printed_with_their_sum(capsys):
    nulls.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(nulls.nulls()) + 1
    assert sum(int(line.split()[0]) for line in lines[:-1]) == int(lines[-1].split()[0])
