"""Compares two builds of carbyne on the examples: what they decompose to, and how long that takes on a GPU.

    cargo build --release --features gpu
    python3 bench/examples.py BEFORE target/release/carbyne [--arch sm_90a] [--rounds 3] > docs/examples_h100.md

BEFORE is the program of an earlier commit, built alike. Instructions, wavefronts of shared memory and barriers are those
that one block executes, summed over its warps, as `carbyne simulate --report` counts them. Times are medians of 30
launches with the second-level cache flushed; the two builds run in turn, and the least median of all rounds counts.
What a build does not decompose, or takes over a minute to simulate, has no figures there. Kernels of a few
microseconds are mostly the launch.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def counts(program, file, arch):
    """Executed instructions, wavefronts and barriers of one block."""
    done = subprocess.run([program, "decompose", file, "--arch", arch], capture_output=True, text=True)
    if done.returncode:
        return None
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".cby") as text:
            text.write(done.stdout)
            text.flush()
            ran = subprocess.run(
                [program, "simulate", text.name, "--arch", arch, "--blocks", "1", "--report=json"],
                capture_output=True,
                text=True,
                timeout=60,
            )
        kernels = json.loads(ran.stdout)["kernels"]
    except (subprocess.TimeoutExpired, ValueError):
        return None, None, None
    leaves = [leaf for kernel in kernels for leaf in kernel["leaves"]]
    barriers = sum(leaf["executions"] for leaf in leaves if leaf["kind"].startswith("barrier"))
    waves = sum(leaf["shared"]["wavefronts"] for leaf in leaves)
    return sum(leaf["executions"] for leaf in leaves), waves, barriers


def microseconds(program, file, arch):
    done = subprocess.run(
        [program, "run", file, "--arch", arch, "--repeat", "30", "--sustain", "0", "--compare", "50"], capture_output=True, text=True
    )
    said = done.stdout + done.stderr
    times = [float(t) for t in re.findall(r"L2 flushed: median ([0-9.]+) us", said)]
    # Of several kernels the sum.
    return sum(times) if times and done.returncode == 0 else None


def shown(value, digits=0):
    return "–" if value is None else f"{value:.{digits}f}"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("before")
    args.add_argument("after")
    args.add_argument("--arch", default="sm_90a")
    args.add_argument("--rounds", type=int, default=3)
    args = args.parse_args()
    files = sorted((ROOT / "examples").glob("*.cby")) + sorted((ROOT / "examples" / "tile").glob("*.cby"))
    print(f"# Examples, before and after\n\nOn {args.arch}; `bench/examples.py` says what is counted.\n")
    print("| example | instructions | | wavefronts | | barriers | | time in us | | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    both = (args.before, args.after)
    with ThreadPoolExecutor(max_workers=8) as pool:
        jobs = {file: [pool.submit(counts, program, file, args.arch) for program in both] for file in files}
        found = {file: [job.result() for job in own] for file, own in jobs.items()}
    for file in files:
        counted = found[file]
        if counted[1] is None:
            continue
        times = [None, None]
        for _ in range(args.rounds):
            for i, program in enumerate(both):
                if counted[i] is None:
                    continue
                t = microseconds(program, file, args.arch)
                if t is not None:
                    times[i] = t if times[i] is None else min(times[i], t)
        cells = [str(file.relative_to(ROOT / "examples"))]
        for column in range(3):
            cells += [shown(c[column] if c else None) for c in counted]
        cells += [shown(t, 2) for t in times]
        cells.append(shown(times[1] / times[0] if None not in times else None, 2))
        print("| " + " | ".join(cells) + " |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
