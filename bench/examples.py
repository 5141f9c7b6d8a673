"""Runs the examples on a GPU: all of them under compute-sanitizer, or two builds of carbyne for comparison.

    cargo build --release --features gpu
    python3 bench/examples.py target/release/carbyne --card > docs/examples_card.md
    python3 bench/examples.py BEFORE target/release/carbyne [--arch sm_90a] [--rounds 3]

With `--card`, every example and every problem of `bench/problems.txt` is decomposed for the GPU, run and compared; see
`bench/card.py`. The page goes to standard output, the progress to standard error. The exit code is 1 if anything is wrong. Several
calls can make one page:

    python3 bench/examples.py target/release/carbyne --card --results all.jsonl --budget 480    # again, until nothing is left
    python3 bench/examples.py target/release/carbyne --card --results two.jsonl --part 2/3      # or in parts
    python3 bench/examples.py --card --merge one.jsonl two.jsonl three.jsonl > docs/examples_card.md

Without `--card`, BEFORE is the program of an earlier commit with the same build options. Instructions, wavefronts of shared memory
and barriers are those of one block, summed over its warps, as `carbyne simulate --report` counts them. Times are medians of 30
launches with the L2 cache flushed. The two builds take turns, and the smallest median of all rounds counts. A build has no numbers for
an example that it does not decompose, or that takes over a minute to simulate. The time of kernels of a few microseconds is mostly
launch overhead.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import card

ROOT = Path(__file__).resolve().parent.parent


def counts(program, file, arch):
    """The number of executed instructions, wavefronts and barriers of one block."""
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
    # The sum over all kernels.
    return sum(times) if times and done.returncode == 0 else None


def shown(value, digits=0):
    return "–" if value is None else f"{value:.{digits}f}"


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("programs", nargs="*", metavar="carbyne", help="the build, or the earlier one and the build")
    args.add_argument("--arch", default="sm_90a")
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--card", action="store_true", help="run and compare everything under compute-sanitizer")
    of_card = args.add_argument_group("with --card")
    of_card.add_argument("--only", metavar="PATTERN", help="programs whose names match")
    of_card.add_argument("--part", metavar="I/N", help="each Nth program, from the Ith on")
    of_card.add_argument("--budget", type=float, metavar="SECONDS", help="begin no program later than that")
    of_card.add_argument("--results", metavar="FILE", help="add a line of JSON for each program; those that it has are not run again")
    of_card.add_argument("--merge", nargs="+", metavar="FILE", help="run nothing: print the page of these results")
    of_card.add_argument("--commit", help="what is checked, where there is no Git")
    of_card.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at once")
    of_card.add_argument("--gpu-jobs", type=int, default=4, help="of which so many are on the card")
    of_card.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="what a single run may take")
    of_card.add_argument("--racecheck-work", type=float, default=1e8, metavar="N", help="multiply-adds, or bytes, up to which racecheck runs")
    of_card.add_argument("--seed", type=int, default=1, help="of random inputs")
    toolkit = "/usr/local/cuda/bin/compute-sanitizer"
    of_card.add_argument("--sanitizer", default=shutil.which("compute-sanitizer") or toolkit, metavar="PATH")
    of_card.add_argument("--logs", metavar="FOLDER", help="keep what racecheck says of new pairs")
    args = args.parse_args()
    if args.card:
        if not args.merge and len(args.programs) != 1:
            sys.exit("`--card` takes one build of carbyne")
        args.program = args.programs[0] if args.programs else None
        sys.exit(card.main(args))
    if len(args.programs) != 2:
        sys.exit("two builds of carbyne are compared; `--card` checks one")
    args.before, args.after = args.programs
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
