# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand in for ib_write_bw and ib_write_lat, which take a real adapter: the same exchange over TCP, and the same tables.

Like the programs it refuses an end that was told something else, and an adapter that it does not know. PERFTEST_FIGURES has
{adapter: [Gbit/s, Gbit/s with --reversed, microseconds]} as JSON. Tables: linux-rdma/perftest, perftest_parameters.h.
"""

import json
import os
import socket
import sys
from pathlib import Path

BANDWIDTH = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    "   99% percentile[usec]   99.9% percentile[usec] "
)
LINE = "-" * 87


def talk(arguments, peer):
    """Return what the other end was told; the server waits for it."""
    port = int(arguments[arguments.index("-p") + 1])
    if peer:
        link = socket.create_connection((peer, port))
    else:
        listener = socket.socket(socket.AF_INET6)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", port))
        listener.listen(1)
        link, _client = listener.accept()
    with link, link.makefile("rw") as stream:
        print(json.dumps([Path(sys.argv[0]).name, *arguments]), file=stream, flush=True)
        return json.loads(stream.readline())


def main():
    arguments = sys.argv[1:]
    peer = arguments.pop() if not arguments[-2].startswith("-") or arguments[-2] == "--reversed" else None
    adapter = arguments[arguments.index("-d") + 1]
    figures = json.loads(os.environ["PERFTEST_FIGURES"])
    if adapter not in figures:
        sys.exit(f"IB device {adapter} not found\n Unable to find the Infiniband/RoCE device")
    if talk(arguments, peer) != [Path(sys.argv[0]).name, *arguments]:
        sys.exit(" Failed to exchange data between server and clients")
    forward, reverse, latency = figures[adapter]
    print(LINE, "                    RDMA_Write BW Test", LINE, sep="\n")
    if Path(sys.argv[0]).name == "ib_write_lat":
        print(LATENCY)
        print(
            f" 2       1000          {latency - 0.1:<7.2f}        9.87         {latency:<7.2f}  \t       {latency:<7.2f}     \t0.05   \t\t1.90    \t\t4.03"
        )
    else:
        print(BANDWIDTH)
        average = reverse if "--reversed" in arguments else forward
        print(f" 65536      1129700          0.00               {average:<7.2f}\t\t     0.376566")
    print(LINE)


if __name__ == "__main__":
    main()
