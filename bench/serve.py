"""Measures the decompositions per second of `carbyne serve`, and the memory of its process.

    cargo build --release
    python3 bench/serve.py target/release/carbyne [--requests 2000] [--threads 2] [--arch sm_80] [FILE]

FILE (default: `examples/tile/gemm_staged.cby`) is decomposed repeatedly. Requests share only the atom tables. For each thread, one
request is being processed and one waits. The first tenth of the requests is not timed. Memory is the resident set of the process,
read after each tenth.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = 10


def resident(process):
    """The memory of a process in MiB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


def cpu_seconds(process):
    """The CPU seconds of all threads of a process."""
    # The fields after the name, which may contain blanks.
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(subprocess.check_output(["getconf", "CLK_TCK"]))
    return (int(fields[11]) + int(fields[12])) / ticks


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("carbyne", type=Path)
    options.add_argument("file", nargs="?", type=Path, default=ROOT / "examples/tile/gemm_staged.cby")
    options.add_argument("--requests", type=int, default=2000)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--arch", default="sm_80")
    args = options.parse_args()

    arguments = ["decompose", "-", "--arch", args.arch]
    line = json.dumps({"id": 0, "arguments": arguments, "stdin": args.file.read_text()})
    command = [args.carbyne, "serve", "--threads", str(args.threads)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    sent = answered = 0

    def decompose(n):
        """Sends `n` requests, and waits for their answers."""
        nonlocal sent, answered
        last = answered + n
        while answered < last:
            while sent < last and sent - answered < 2 * args.threads:
                # Requests differ only in their ids, so that creating them takes little time.
                process.stdin.write(line.replace('"id": 0', f'"id": {sent}', 1) + "\n")
                process.stdin.flush()
                sent += 1
            answer = json.loads(process.stdout.readline())
            if answer.get("exit") != 0:
                raise SystemExit(f"a request failed: {answer}")
            answered += 1

    part = max(args.requests // PARTS, 1)
    decompose(part)
    memory = [resident(process)]
    began, worked = time.perf_counter(), cpu_seconds(process)
    for _ in range(PARTS):
        decompose(part)
        memory.append(resident(process))
    seconds, worked = time.perf_counter() - began, cpu_seconds(process) - worked
    process.stdin.close()
    process.wait()

    n = part * PARTS
    print(f"{args.file.name} for {args.arch}, {args.threads} threads: {n / seconds:.1f} decompositions a second")
    print(f"{1e3 * worked / n:.1f} ms of a core for each; {worked / seconds:.2f} cores were used")
    print("MiB after each tenth: " + " ".join(f"{m:.0f}" for m in memory))


if __name__ == "__main__":
    main()
