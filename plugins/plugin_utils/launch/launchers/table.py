# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launchers there are, by the names that users give them. One more is one module and one row here."""

from __future__ import annotations

from ..job import Launcher
from . import elastic, horovodrun, mpirun, slurm, torchrun

LAUNCHERS: dict[str, Launcher] = {
    "torchrun": torchrun.LAUNCHER,
    "elastic": elastic.LAUNCHER,
    "mpirun": mpirun.LAUNCHER,
    "horovodrun": horovodrun.LAUNCHER,
    "slurm": slurm.LAUNCHER,
}
