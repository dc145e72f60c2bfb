# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node added to the converged cluster gets its packages from the lab's cache, and its environment from another node.

How long that takes is not a matter of a test.
"""

import functools
import http.server
import json
import subprocess
import threading

import pytest

from tests.lab import podman, services, traffic

pytestmark = pytest.mark.lab

SIZE = 1 << 20


@pytest.fixture(scope="module")
def added(cluster):
    """The new node, and a watch on what it downloads; afterwards it is gone, and forgotten by the others."""
    before = len(cluster.hosts)
    cluster.resize(before + 1)
    node = cluster.hosts[-1]
    podman.prepare()
    yield node, traffic.Watch(node, cluster.address(node))
    cluster.resize(before)
    assert cluster.play("playbooks/site.yml").status == 0


@pytest.fixture
def outside(tmp_path):
    """A server on this machine that no source of the lab stands in front of: its URL, on the address of the way outside."""
    route = json.loads(
        subprocess.run(["ip", "-j", "route", "get", "192.0.2.1"], capture_output=True, check=True).stdout
    )
    (tmp_path / "file").write_bytes(bytes(SIZE))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer((route[0]["prefsrc"], 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield "http://{}:{}/file".format(*server.server_address)
        server.shutdown()


def test_an_added_node_fetches_nothing_that_the_cache_holds(cluster, added):
    node, watch = added
    run = cluster.play("playbooks/site.yml")
    assert run.status == 0, run.output[-6000:]
    assert {host for host, counts in run.recap.items() if counts["changed"]} >= {node}
    got = watch.traffic()
    assert got.served("apt") > 50 << 20, "the driver's packages did not come from the cache"
    # The installer itself comes as a wheel; the environment comes from a node that has it.
    assert got.served("wheels") > 10 << 20
    assert list(traffic.unshared(got)) == []
    # Nothing that arrived is unaccounted for: what came from the services is what their logs say, and headers.
    served = sum(got.served(source) for source in services.LOGS)
    assert served < got.packets[traffic.CACHE] < served * 1.1


def test_a_download_past_the_cache_would_be_seen(cluster, added, outside):
    node, watch = added
    before = watch.traffic().packets[traffic.OUTSIDE]
    program = f"import urllib.request; urllib.request.urlopen('{outside}').read()"
    cluster.on(node, f'python3 -c "{program}"')
    assert watch.traffic().packets[traffic.OUTSIDE] - before > SIZE
