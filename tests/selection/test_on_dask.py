"""Modules are converted on a cluster of Dask, one of whose workers dies in the middle: nothing is lost.

Needs the extra `dask`; in the sweep, because a cluster takes seconds to start.
"""

import os
import signal
from collections import Counter
from pathlib import Path
from threading import Thread
from time import sleep

import pytest
from decode_module import SCATTER

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
        (zoo / f"m{size:03}.mlir").write_text(SCATTER.replace("8x4", f"{size + 2}x4"))
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
