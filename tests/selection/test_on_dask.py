"""Modules are converted on a cluster of Dask, one of whose workers dies in the middle: nothing is lost.

Needs the extra `dask`; in the sweep, because a cluster takes seconds to start.
"""

import os
import signal
from collections import Counter
from pathlib import Path
from threading import Thread
from time import sleep

import jax
import numpy as np
import pytest

import hlo_lower as hl

distributed = pytest.importorskip("distributed")

COUNT = 60


def kill_one(cluster, out):
    """End one worker once a few modules are written."""
    while len(list(out.glob("*.mlir"))) < 5:
        sleep(0.05)
    os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)


@pytest.mark.sweep
def test_a_worker_that_dies_loses_nothing(tmp_path):
    """Every module is written once, as it is written without a cluster."""
    zoo, out = tmp_path / "zoo", tmp_path / "out"
    zoo.mkdir()
    for size in range(COUNT):
        scatter = jax.jit(lambda x, i, u: x.at[i].add(u))
        shape = np.zeros((size + 2, 3), np.float32)
        text = scatter.lower(shape, np.zeros(4, np.int32), np.zeros((4, 3), np.float32)).as_text()
        (zoo / f"m{size:03}.mlir").write_text(text)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        killer = Thread(target=kill_one, args=(cluster, out))
        killer.start()
        before = {worker.pid for worker in cluster.workers.values()}
        reports = hl.convert_modules(zoo, out, executor=client.get_executor(), verify="off", target="iree")
        killer.join()
        assert {worker.pid for worker in cluster.workers.values()} != before
    assert Counter(report.exit_code for report in reports) == {0: COUNT}
    for path in sorted(zoo.iterdir()):
        assert (out / path.name).read_text() == hl.lower(Path(path), target="iree").text
