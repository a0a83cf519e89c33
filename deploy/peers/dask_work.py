"""The work of run.sh through Dask: workers that are processes of one thread, one for each slot."""

import statistics
import subprocess
import sys
import time

from distributed import Client, LocalCluster


def process(_):
    return subprocess.run(["/bin/true"], check=True).returncode


def nothing(x):
    return x


def rate(client, work, n):
    began = time.perf_counter()
    client.gather(client.map(work, range(n), pure=False))
    return n / (time.perf_counter() - began)


def main(slots, array, rounds):
    with LocalCluster(n_workers=slots, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.submit(process, 0, pure=False).result()
        starts = []
        for i in range(rounds):
            began = time.perf_counter()
            client.submit(process, i, pure=False).result()
            starts.append(time.perf_counter() - began)
        print("dask start", statistics.median(starts))
        print("dask array", rate(client, process, array))
        print("dask noop", rate(client, nothing, 5 * array))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
