# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real machines as "nvidia-smi topo -m" showed them: read in every vintage, and what is derived from them."""

import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology import islands, nics
from ansible_collections.allreduce.gpu.plugins.plugin_utils.topology.recorded import parse_topology, recorded_node

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures" / "topologies"
EXPECTED = yaml.safe_load((FIXTURES / "expected.yml").read_text())
UP = {"state": "ACTIVE", "link_layer": "InfiniBand", "rate_gbps": 200}


def text_of(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def each(ranges: dict[str, str]) -> dict[str, list[str]]:
    """{"GPU0-1": "PIX a b"} → {GPU0: [PIX, a, b], GPU1: …}."""
    found = {}
    for key, value in ranges.items():
        first, last = re.fullmatch(r"GPU(\d+)(?:-(\d+))?", key).groups()
        found.update({f"GPU{number}": value.split() for number in range(int(first), int(last or first) + 1)})
    return found


def node_of(name: str) -> dict:
    text = text_of(name)
    return recorded_node(text, dict.fromkeys(parse_topology(text)["nics"], UP))


def test_each_recording_has_its_expectation_and_its_source():
    assert sorted(EXPECTED) == sorted(path.stem for path in FIXTURES.glob("*.txt"))
    assert len(EXPECTED) >= 20
    assert all(entry["source"].startswith("https://") for entry in EXPECTED.values())


@pytest.mark.parametrize("name", EXPECTED)
def test_every_pair_of_a_whole_matrix_is_read(name):
    topology = parse_topology(text_of(name))["topology"]
    known = [code for row in topology.values() for code in row.values() if code]
    assert (len(known) == len(topology) ** 2) is EXPECTED[name]["complete"]
    assert all(topology[one][two] == topology[two][one] for one in topology for two in topology)
    assert all(topology[one][one] in ("X", None) for one in topology)


@pytest.mark.parametrize("name", EXPECTED)
def test_islands(name):
    expected = [[f"GPU{number}" for number in island] for island in EXPECTED[name]["islands"]]
    assert islands.nvlink_islands(node_of(name)) == expected


@pytest.mark.parametrize("name", EXPECTED)
def test_nearest_nics(name):
    node = node_of(name)
    nearest = nics.nearest_nics(node)
    for gpu, (code, *names) in each(EXPECTED[name]["nearest"]).items():
        assert [nic for nic in nearest[gpu] if node["topology"][gpu][nic] == code] == names, gpu
        assert nearest[gpu][: len(names)] == names, gpu


def cut_off(name: str) -> dict[str, dict]:
    """{GPU: what is said of a GPU whose line has lost cells}."""
    entries = EXPECTED[name].get("cut_off", {})
    return {gpu: entry for key, entry in entries.items() for gpu in each({key: ""})}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_order_where_the_text_has_lost_distances(name):
    node, said = node_of(name), cut_off(name)
    unknown = {gpu for gpu in node["affinity"] if None in [node["topology"][gpu][nic["name"]] for nic in node["nics"]]}
    assert unknown == set(said)
    for gpu, entry in said.items():
        assert len(entry["why"]) > 40
        assert entry["order"] in (None, " ".join(node["affinity"][gpu]["nics"])), gpu
        assert entry["order"] or gpu in each(EXPECTED[name]["nearest"]), gpu


@pytest.mark.parametrize("name", EXPECTED)
def test_equal_ports_are_no_problem_and_one_at_half_the_rate_is_named_where_its_place_tells(name):
    text = text_of(name)
    adapters = parse_topology(text)["nics"]
    near = [nic["name"] for nic in nics.rails(node_of(name))[0] if place_of(name, nic["name"])]
    assert recorded_node(text, dict.fromkeys(adapters, UP))["findings"] == []
    half = recorded_node(text, {**dict.fromkeys(adapters, UP), **{one: {**UP, "rate_gbps": 100} for one in near[:1]}})
    found = [(one["code"], one["subject"]) for one in half["findings"]]
    assert found == [("rail_slow", one) for one in near[:1] if len(near) > 1]


def place_of(name: str, adapter: str) -> bool:
    """Tell whether an adapter is below a PCIe switch with a GPU."""
    topology = node_of(name)["topology"]
    return any(topology[gpu][adapter] in ("PIX", "PXB") for gpu in topology if gpu.startswith("GPU"))


@pytest.mark.parametrize("name", EXPECTED)
def test_cpus(name):
    found = {f"GPU{gpu['index']}": [gpu["cpu_affinity"], gpu["numa_node"]] for gpu in node_of(name)["gpus"]}
    assert found == {
        gpu: [None if cpus == "null" else cpus, None if numa == "null" else int(numa)]
        for gpu, (cpus, numa) in each(EXPECTED[name]["cpus"]).items()
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_nccl_takes_the_rails(name):
    environment = nics.nccl_environment(node_of(name))
    assert environment["variables"].get("NCCL_IB_HCA") == EXPECTED[name]["rails"]


@pytest.mark.parametrize("name", [name for name in EXPECTED if parse_topology(text_of(name))["nics"]])
def test_nothing_is_said_of_ports_that_nobody_looked_at(name):
    environment = nics.nccl_environment(recorded_node(text_of(name)))
    assert environment["variables"] == {}
    assert environment["reasons"]["NCCL_IB_HCA"].startswith("Not set: it is not known whether a port of ")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bandwidth_that_cannot_be_known_is_null(name):
    assert islands.expected_bus_bandwidth(node_of(name)) is None


@pytest.mark.parametrize("name", EXPECTED)
def test_ranks_take_a_nearest_rail(name):
    node = node_of(name)
    rails = {nic["name"] for nic in nics.rails(node)[0]}
    for binding in nics.rank_binding(node):
        row = node["topology"][binding["gpu"]]
        best = next((nic for nic in node["affinity"][binding["gpu"]]["nics"] if nic in rails), None)
        assert (binding["nic"] is None) is (best is None)
        assert best is None or row[binding["nic"]] == row[best]


def fields_of(line: str) -> list[str]:
    """The fields of a line; a column's name is one field."""
    return re.findall(r"CPU Affinity|NUMA Affinity|GPU NUMA ID|NIC Legend:|\S+", line)


def spread(text: str, field) -> str:
    return "".join("".join(map(field, fields_of(line))).rstrip(" ") + "\n" for line in text.splitlines())


LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NV#  = Connection traversing a bonded set of # NVLinks
"""
VINTAGES = {
    "tabs, and more of them at the end": lambda text: spread(text, lambda field: f" {field} \t" if field == "X" else f"{field}\t"),
    "columns of spaces": lambda text: spread(text, lambda field: field.center(7).ljust(16 if "A" in field else 8)),
    "underlined header": lambda text: "\t\x1b[4m" + text.replace("\n", "\x1b[0m\n", 1),
    "header whose escape lost its first byte": lambda text: "\t[4m" + text.replace("\n", "[0m\n", 1),
    "comments of a script": lambda text: "".join(f"# {line}\n" for line in text.splitlines()),
    "Windows": lambda text: text.replace("\n", "\r\n"),
    "in a session": lambda text: f"$ nvidia-smi topo -m\n{text}\n$ exit\n",
    "with the legend": lambda text: text.partition("\nNIC Legend")[0] + LEGEND + "".join(text.partition("\nNIC Legend")[1:]),
    "before another matrix": lambda text: text + LEGEND + "\n \tGPU0\tGPU1\t\n GPU0\tX\tGNS\t\n GPU1\tGNS\tX\t\n",
}  # fmt: skip


@pytest.mark.parametrize("vintage", VINTAGES)
@pytest.mark.parametrize("name", EXPECTED)
def test_vintages(name, vintage):
    assert parse_topology(VINTAGES[vintage](text_of(name))) == parse_topology(text_of(name))


def test_names_that_run_together():
    text = "GPU0GPU1mlx5_0\tmlx5_2\tCPU Affinity\nGPU0\t X \tNV1\tPIX\tSOC\t1-1\nGPU1\tNV1\t X \tPIX\tSOC\t1-1\n"
    parsed = parse_topology(text)
    assert parsed["nics"] == ["mlx5_0", "mlx5_2"]
    assert parsed["topology"]["mlx5_2"] == {"GPU0": "SYS", "GPU1": "SYS", "mlx5_0": None, "mlx5_2": None}


def test_a_machine_with_one_gpu_and_more_nics_than_the_matrix_shows():
    text = (
        "76 NICs found in the topology, only displaying 2 in the matrix.\n"
        "\tGPU0\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNODE\tNODE\t0-19\t0\t\tN/A\n"
    )
    parsed = parse_topology(text)
    assert parsed["topology"]["GPU0"] == {"GPU0": "X", "NIC0": "NODE", "NIC1": "NODE"}
    assert parsed["gpus"]["GPU0"] == {"cpu_affinity": "0-19", "numa_affinity": "0", "gpu_numa_id": None}


def test_a_gpu_that_is_a_numa_node():
    assert parse_topology(text_of("gb200-tray"))["gpus"]["GPU1"] == {
        "cpu_affinity": "0-71",
        "numa_affinity": "0,3-9,11-17",
        "gpu_numa_id": "10",
    }


def test_another_text_is_refused():
    with pytest.raises(ValueError, match="not an output of"):
        parse_topology("Failed to initialize NVML: Driver/library version mismatch\n")


UNKNOWN = (
    "minor_number", "uuid", "name", "pci_bus_id", "pci_device_id", "architecture", "compute_capability",
    "memory_total_mib", "persistence_mode", "compute_mode", "max_clocks_mhz", "vbios_version", "inforom_version",
)  # fmt: skip


def test_a_node_in_full():
    """What the text does not tell is None; a port that is given keeps what was not given unknown."""
    text = (
        "\tGPU0\tmlx5_0\tmlx5_1\tCPU Affinity\tNUMA Affinity\n"
        "GPU0\t X \tPIX\tSYS\t0-15\t1,3-9\nmlx5_0\tPIX\t X \tSYS\nmlx5_1\tSYS\tSYS\t X\n"
    )
    adapter = {"pci_bus_id": None, "pci_device_id": None, "numa_node": None}
    assert recorded_node(text, {"mlx5_0": {"state": "ACTIVE", "rate_gbps": 200}}) == {
        "driver": {
            "loaded_version": None,
            "library_version": None,
            "cuda_driver_version": None,
            "kernel_modules": None,
            "nvml": "not asked; this is a recording",
            "nvml_state": "not_asked",
        },
        "gpus": [
            {
                **dict.fromkeys(UNKNOWN),
                "index": 0,
                "numa_node": 1,
                "cpu_affinity": "0-15",
                "nvlinks": [],
                "pcie": {"generation": None, "max_generation": None, "width": None, "max_width": None},
                "ecc": {"current": None, "pending": None},
                "mig": {"current": None, "pending": None, "instances": []},
                "power_limit_watts": {"current": None, "default": None, "min": None, "max": None},
                "seen_by": [],
            }
        ],
        "nvswitches": {"count": None, "pci_bus_ids": []},
        "fabric": {"manager_needed": None, "state": None},
        "nics": [
            {
                "name": "mlx5_0",
                **adapter,
                "ports": [
                    {
                        "port": 1,
                        "state": "ACTIVE",
                        "link_layer": None,
                        "rate_gbps": 200,
                        "netdevs": [],
                        "rocev2_gid_index": None,
                    }
                ],
            },
            {"name": "mlx5_1", **adapter, "ports": []},
        ],
        "topology": {
            "GPU0": {"GPU0": "X", "mlx5_0": "PIX", "mlx5_1": "SYS"},
            "mlx5_0": {"GPU0": "PIX", "mlx5_0": "X", "mlx5_1": "SYS"},
            "mlx5_1": {"GPU0": "SYS", "mlx5_0": "SYS", "mlx5_1": "X"},
        },
        "numa_distances": {},
        "affinity": {"GPU0": {"cpu_affinity": "0-15", "numa_node": 1, "nics": ["mlx5_0", "mlx5_1"]}},
        "findings": [],
        "problems": [],
    }


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ("0-15\t0\t2", {"cpu_affinity": "0-15", "numa_affinity": "0", "gpu_numa_id": "2"}),
        ("0-15\t0\tN/A", {"cpu_affinity": "0-15", "numa_affinity": "0", "gpu_numa_id": None}),
        # Between spaces an empty field leaves no trace: N/A is of the last column then.
        ("0-15\t\tN/A", {"cpu_affinity": "0-15", "numa_affinity": None, "gpu_numa_id": None}),
        ("N/A\t0", {"cpu_affinity": None, "numa_affinity": "0", "gpu_numa_id": None}),
        ("0-15", {"cpu_affinity": "0-15", "numa_affinity": None, "gpu_numa_id": None}),
    ],
)
def test_the_last_columns(row, columns):
    text = f"\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t{row}\n"
    assert parse_topology(text)["gpus"] == {"GPU0": columns}


def test_an_older_header_has_no_last_column_to_take_n_a():
    text = "\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-15\tN/A\n"
    assert parse_topology(text)["gpus"] == {
        "GPU0": {"cpu_affinity": "0-15", "numa_affinity": None, "gpu_numa_id": None}
    }
