"""`python -m probe_web.worker`: a Celery worker as ./run and docker-compose.yml start it.

The same as `celery --app probe_web.celery worker`, which works as well, without the half second that Celery's command line spends on
loading its shell.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m probe_web.worker", description="Compute comparisons from the queue.")
    parser.add_argument("--concurrency", type=int, default=1, help="comparisons at the same time (default: 1)")
    parser.add_argument("--name", default=f"worker-{os.getpid()}@{socket.gethostname()}", help="name of this worker in the broker")
    asked = parser.parse_args()

    from probe_web.celery import app

    worker = app.Worker(
        hostname=asked.name,
        concurrency=asked.concurrency,
        pool_cls="prefork",
        loglevel="INFO",
        # Other workers are nobody's business here: the rows say who does what.
        without_gossip=True,
        without_mingle=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
