"""Measures how good the cost model's choices are: the ten best instances of every problem, on this machine's GPU.

    cargo build --release --features gpu
    python3 bench/choice.py [--arch sm_90a] [--carbyne target/release/carbyne] [--only fitted|unseen|PART OF A NAME] > bench/choice.tsv
    python3 bench/choice.py --table bench/choice.tsv

Half of the problems, `fitted`, were used to develop the model. The others, `unseen`, were selected before any of them was
measured. Times are medians of `--repeat` launches with the L2 cache flushed. A line contains the problem, its half, the rank, the
choice, and the estimated and measured microseconds.
"""

import argparse
import math
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


RING = " by=@ring"


def problems():
    """The half, name and text of each problem in `bench/problems.txt`."""
    text = Path(__file__).with_name("problems.txt").read_text()
    for part in text.split("\n== ")[1:]:
        title, _, kernel = part.partition("\n")
        half, _, name = title.partition(": ")
        yield half, name, kernel.rstrip("\n")


def ranked(carbyne, arch, text, most):
    """The instances that the model ranks first, as attributes."""
    with tempfile.NamedTemporaryFile("w", suffix=".cby") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([carbyne, "decompose", file.name, "--arch", arch, "--top", str(most)], capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return []
    return re.findall(r"^ +\d+: (@\w+\[.*\]): ", done.stderr, re.M)[:most]


def pinned(text, by):
    """The kernel with a complete pin of its strategy."""
    text = text.replace(RING, "")
    line = next(line for line in text.splitlines() if " @k " in line)
    head, brace, rest = line.partition(" means {")
    return text.replace(line, f"{head} by={by}{brace}{rest}")


def solved(carbyne, arch, text, file):
    """Decomposes a program into a file. Returns the estimated microseconds."""
    file.with_suffix(".in").write_text(text)
    done = subprocess.run([carbyne, "decompose", file.with_suffix(".in"), "--arch", arch, "--estimate", "-o", file], capture_output=True, text=True)
    found = re.findall(r"^\w+: ([\d.]+) us on ", done.stderr, re.M)
    if done.returncode or not found:
        print(text, done.stderr, file=sys.stderr)
    return sum(map(float, found)) if found and not done.returncode else None


def measured(carbyne, arch, file, repeat):
    """The measured microseconds of all kernels of a file."""
    done = subprocess.run([carbyne, "run", file, "--arch", arch, "--repeat", str(repeat), "--sustain", "0", "--compare", "5"], capture_output=True, text=True)
    found = re.findall(r"L2 flushed: median ([\d.]+) us", done.stdout + done.stderr)
    if done.returncode or not found:
        print(file.with_suffix(".in").read_text(), done.stdout, done.stderr, file=sys.stderr)
        return None
    return sum(map(float, found))


def correlation(a, b):
    """Spearman's rank correlation."""
    def ranks(v):
        return [sum(y < x for y in v) + (sum(y == x for y in v) - 1) / 2 for x in v]
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    dot = lambda x, y: sum((p - mean) * (q - mean) for p, q in zip(x, y))
    return dot(a, b) / max(math.sqrt(dot(a, a) * dot(b, b)), 1e-9)


def table(lines):
    """Prints the loss of the first choices."""
    of = {}
    for line in lines:
        if line.startswith("#"):
            continue
        name, half, rank, by, estimate, time = line.rstrip("\n").split("\t")
        of.setdefault((half, name), []).append((int(rank), by, float(estimate), float(time) if time != "failed" else math.inf))
    losses = {}
    for (half, name), rows in of.items():
        rows.sort(key=lambda r: (r[2], r[0]))
        best = min(rows, key=lambda r: r[3])
        loss = rows[0][3] / best[3]
        losses.setdefault(half, []).append(loss)
        good = [r for r in rows if r[3] < math.inf]
        rho = correlation([r[2] for r in good], [r[3] for r in good])
        print(f"{half:7} {name:38} {rows[0][3]:9.1f} us, {100 * (loss - 1):5.1f} % over the best of {len(rows)}"
              f"{'' if best is rows[0] else f' ({best[0]}: {best[1]})'}, rank correlation {rho:.2f}, estimated {rows[0][2]:.1f} us")
    for half, own in [*losses.items(), ("all", sum(losses.values(), []))]:
        mean = math.exp(sum(map(math.log, own)) / len(own))
        print(f"{half}: {len(own)} problems, first choices {100 * (mean - 1):.1f} % over the best of their ten in the geometric mean, {100 * (max(own) - 1):.1f} % at most")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--carbyne", default="target/release/carbyne")
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="say what would be measured")
    parser.add_argument("--table")
    parser.add_argument("--again", help="a table, whose estimates are to be those of this build")
    asked = parser.parse_args()
    if asked.table:
        return table(Path(asked.table).read_text().splitlines())
    if asked.again:
        lines = Path(asked.again).read_text().splitlines()
        texts = {name: kernel for _, name, kernel in problems()}
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
            def estimated(job):
                number, line = job
                if line.startswith("#"):
                    return line
                name, half, rank, by, _, time = line.split("\t")
                text = f"carbyne 2\n{pinned(texts[name], by)}\n"
                estimate = solved(asked.carbyne, asked.arch, text, Path(folder) / f"{number}.cby")
                return "\t".join([name, half, rank, by, f"{estimate or math.inf:.2f}", time])
            return table(pool.map(estimated, enumerate(lines)))
    wanted = [p for p in problems() if asked.only in p[0] or asked.only in p[1]]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        def prepare(job):
            number, (half, name, text) = job
            text = f"carbyne 2\n{text}\n"
            chosen = ranked(asked.carbyne, asked.arch, text, asked.most)
            files = []
            for rank, by in enumerate(chosen, 1):
                file = Path(folder) / f"{number}_{rank}.cby"
                files.append((rank, by, file, solved(asked.carbyne, asked.arch, pinned(text, by), file)))
            return half, name, files
        if not asked.list:
            card = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True, text=True).stdout.split("\n")[0]
            print(f"# {card}: microseconds, estimated and median of {asked.repeat} launches, L2 flushed; bench/choice.py")
        # Prepare all files before the first measurement, so that the machine is idle then.
        for half, name, files in list(pool.map(prepare, enumerate(wanted))):
            for rank, by, file, estimate in files:
                if estimate is None:
                    continue
                time = None if asked.list else measured(asked.carbyne, asked.arch, file, asked.repeat)
                print(name, half, rank, by, f"{estimate:.2f}", f"{time:.2f}" if time else "failed", sep="\t", flush=True)


if __name__ == "__main__":
    main()
