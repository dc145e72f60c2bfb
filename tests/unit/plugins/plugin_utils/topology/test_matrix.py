# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pasted matrices that are torn: refused with the line and what is expected there, never read as another machine."""

import re
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.matrix import EXPECTED, read_matrix
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.recorded import parse_topology, recorded_node
from hypothesis import given
from hypothesis import strategies as st

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "topologies"
RECORDINGS = {path.stem: path.read_text() for path in sorted(FIXTURES.glob("*.txt"))}
HEADER = "GPU0 GPU1 mlx5_0 mlx5_1 CPU Affinity NUMA Affinity"
WHOLE = [
    HEADER,
    "GPU0 X NV4 PIX SYS 0-15 0",
    "GPU1 NV4 X PHB SYS 0-15 0",
    "mlx5_0 PIX PHB X SYS",
    "mlx5_1 SYS SYS SYS X",
]


def changed(*lines):
    """The whole matrix with some of its lines replaced: (number from 1, text)."""
    text = list(WHOLE)
    for number, line in lines:
        text[number - 1] = line
    return "\n".join(text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ((2, "GPU0 X NV4 PIXSYS 0-15 0"), '"PIXSYS" are several cells in one'),
        ((2, "GPU0 XNV4 PIX SYS 0-15 0"), '"XNV4" are several cells in one'),
        ((2, "GPU0 X NV4 PIX SYS0-15 0"), '"SYS0-15" are several cells in one'),
        ((2, "GPU0X NV4 PIX SYS 0-15 0"), '"GPU0X" is a device and a cell in one'),
        ((4, "mlx5_0PIX PHB X SYS"), '"mlx5_0PIX" is a device and a cell in one'),
        ((2, "GPU0\tX\tNV4\t\tSYS\t0-15\t0"), "the cell of GPU0 and mlx5_0 is empty"),
        ((2, "GPU0\t\tNV4\tPIX\tSYS\t0-15\t0"), "the cell of GPU0 and GPU0 is empty"),
        ((2, "GPU0 X NV4     SYS 0-15 0"), "GPU0 has 3 of 4 cells; one or more are empty"),
        ((2, "GPU0 X NV4"), "GPU0 has 2 of 4 cells; one or more are empty"),
        ((2, "GPU0 X NV4 PIX SYS SYS 0-15 0"), "GPU0 has more cells than the header has devices, 4"),
        ((2, "GPU0 NV4 X PIX SYS 0-15 0"), "X is at GPU1 in the line of GPU0"),
        ((3, "GPU1 NV4 PHB SYS SYS 0-15 0"), "there is no X in the line of GPU1"),
        ((3, "GPU1 NV4 X N/A SYS 0-15 0"), "GPU1 has 2 of 4 cells; one or more are empty"),
        ((3, "GPU1 NV4 X - SYS 0-15 0"), '"-" is not a distance'),
        ((2, "GPU0 OK NV4 PIX SYS 0-15 0"), '"OK" is not a distance'),
        ((2, "GPU0 X NV4 PIX SYS all 0"), '"all" is not a list of CPUs'),
        ((2, "GPU0 X NV4 PIX SYS 0-15, 0"), '"0-15," is not a list of CPUs'),
        ((4, "mlx5_0 PIX NODE X SYS"), "mlx5_0 and GPU1 are NODE here and PHB in line 3"),
        ((4, "GPU1 NV4 X PHB SYS 0-15 0"), "GPU1 appears a second time"),
        ((1, "GPU0 GPU1 mlx5_0mlx5_1 CPU Affinity"), None),
        ((1, "GPU0 GPU1 mlx5_0 mlx5_0 CPU Affinity"), '"mlx5_0" is listed twice'),
        ((1, "GPU0 GPU1 mlx5_0 (mlx5_1) CPU Affinity"), '"(" is not a device'),
    ],
)
def test_a_torn_line_is_named(line, said):
    with pytest.raises(ValueError, match=r"^Line \d of the matrix cannot be read: .+\. Expected: .+\.$") as error:
        read_matrix(changed(line))
    assert str(error.value).startswith(f"Line {line[0]} of the matrix") or said is None
    assert (said or "") in str(error.value)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ((2, "GPU0 X NV4 PIXSYS 0-15 0"), EXPECTED),
        ((2, "GPU0\tX\tNV4\t\tSYS\t0-15\t0"), EXPECTED),
        ((3, "GPU1 NV4 X - SYS 0-15 0"), EXPECTED),
        ((2, "GPU0 X NV4     SYS 0-15 0"), EXPECTED),
        ((3, "GPU1 NV4 PHB SYS SYS 0-15 0"), "X at GPU1"),
        ((2, "GPU0 X NV4 PIX SYS all 0"), "such as 0-15,64-79, or N/A"),
        ((4, "mlx5_0 PIX NODE X SYS"), "one distance for a pair"),
    ],
)
def test_it_is_told_what_is_expected_there(line, expected):
    with pytest.raises(ValueError, match=re.escape(f"Expected: {expected}.") + "$"):
        read_matrix(changed(line))


def test_nvlinks_may_differ_in_number_and_not_from_another_distance():
    assert read_matrix(changed((3, "GPU1 NV2 X PHB SYS 0-15 0")))
    with pytest.raises(ValueError, match="GPU1 and GPU0 are PIX here and NV4 in line 2"):
        read_matrix(changed((3, "GPU1 PIX X PHB SYS 0-15 0")))


def test_only_the_end_of_the_text_may_lack_cells():
    """The last line ends within a code or a list of CPUs; what follows a torn code shows that it is not the end."""
    torn = "GPU0 GPU1 CPU Affinity\nGPU0 X NV4 0-15\nGPU1 "
    assert parse_topology(torn + "N")["topology"]["GPU1"] == {"GPU0": "NV4", "GPU1": None}
    assert parse_topology(torn + "NV4 X 0-")["gpus"]["GPU1"]["cpu_affinity"] is None
    for rest in ("N 0-15", "NV4 N 0-15", "NV4 X 0- 1"):
        with pytest.raises(ValueError, match="^Line 3 of the matrix"):
            parse_topology(torn + rest)


@pytest.mark.parametrize(
    ("last", "known"),
    [
        ("mlx5_1 SYS SYS", {"GPU0": "SYS", "GPU1": "SYS", "mlx5_0": "SYS", "mlx5_1": None}),
        ("mlx5_1 SYS SY", {"GPU0": "SYS", "GPU1": "SYS", "mlx5_0": "SYS", "mlx5_1": None}),
        ("mlx5_1", {"GPU0": "SYS", "GPU1": "SYS", "mlx5_0": "SYS", "mlx5_1": None}),
    ],
)
def test_a_text_may_end_in_its_last_line(last, known):
    assert parse_topology(changed((5, last)))["topology"]["mlx5_1"] == known


def test_the_number_of_links_where_the_text_ends_is_not_known():
    assert parse_topology("GPU0 GPU1 GPU2\nGPU0 X NV1")["topology"]["GPU0"]["GPU1"] is None


def test_cpus_where_the_text_ends_are_not_known():
    text = "GPU0 GPU1 CPU Affinity\nGPU0 X NV1 0-15\nGPU1 NV1 X 16-"
    assert [gpu["cpu_affinity"] for gpu in parse_topology(text)["gpus"].values()] == ["0-15", None]


def test_links_that_are_down_at_one_end_are_no_tear():
    text = "GPU0 GPU1\nGPU0 X NV17\nGPU1 NV18 X"
    assert parse_topology(text)["topology"] == {
        "GPU0": {"GPU0": "X", "GPU1": "NV17"},
        "GPU1": {"GPU0": "NV18", "GPU1": "X"},
    }


@pytest.mark.parametrize("second", [HEADER, "Legend:", "GPU0 GPU1"])
def test_what_follows_the_matrix_is_another(second):
    more = f"\n{second}\nGPU0 X GNS OK OK\nGPU1 GNS X OK OK\n"
    assert parse_topology(changed() + more) == parse_topology(changed())


def inner_cells(text):
    """(line, field) of each cell of a GPU's row that has fields after it, but for the last row: a text may end there."""
    lines = text.splitlines()
    rows = [number for number, line in enumerate(lines) if re.match(r"GPU\d+ (X|NV|P|N|S)", line)][:-1]
    return [(row, number) for row in rows for number in range(1, len(lines[row].split()) - 4)]


@pytest.mark.parametrize("name", RECORDINGS)
@given(data=st.data())
def test_a_cell_that_is_lost_or_run_together_is_never_overlooked(name, data):
    lines = RECORDINGS[name].splitlines()
    devices = lines[0].partition(" CPU")[0].split()
    row, number = data.draw(st.sampled_from(inner_cells(RECORDINGS[name])))
    fields = lines[row].split()
    number = min(number, len(devices))
    glued = [*fields[:number], fields[number] + fields[number + 1], *fields[number + 2 :]]
    lost = fields[:number] + fields[number + 1 :]
    for torn in (glued, lost):
        text = "\n".join([*lines[:row], " ".join(torn), *lines[row + 1 :]])
        with pytest.raises(ValueError, match=f"^Line {row + 1} of the matrix"):
            parse_topology(text)


@given(st.text(alphabet="GPUNICXVSYmlx5_0123,-/A \t\n", max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        node = recorded_node(f"GPU0 GPU1 mlx5_0 CPU Affinity\n{text}")
    except ValueError as error:
        assert str(error).startswith("Line ")
    else:
        assert len(node["gpus"]) == 2
