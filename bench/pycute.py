"""Compares the speed of the layout algebra with pycute, the Python library of CuTe, in one run.

    python3 bench/pycute.py

pycute is a part of the package nvidia-cutlass, which is installed into an environment in the build folder. The cases are the golden
vectors (../shared/golden/public.jsonl) that both libraries answer. Operands are built in advance, and the median over batches counts.
The example `time_golden` times carbyne on the same machine, right after pycute.
"""

import json
import os
import statistics
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT.parent / "shared" / "golden" / "public.jsonl"
PEER = ROOT / "target" / "pycute"
PACKAGE = "nvidia-cutlass==4.2.0.0"
OPS = ["composition", "complement", "right_inverse", "left_inverse", "logical_divide"]
BATCHES, BATCH_SECONDS = 9, 0.002


def install():
    """Unpacks only pycute, because its package has many dependencies that layouts do not need."""
    if not (PEER / "pycute").exists():
        PEER.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", str(PEER / "venv")], check=True)
        python = PEER / "venv" / "bin" / "python"
        pip = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(PEER)]
        subprocess.run([*pip, PACKAGE], check=True)
        wheel = next(PEER.glob("nvidia_cutlass-*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(PEER, [n for n in archive.namelist() if n.startswith("pycute/")])
    sys.path.insert(0, str(PEER))
    import pycute

    return pycute


def parse(text):
    """Parses a tuple of the golden vectors; `(4)` has rank 1, `4` is a number."""
    return eval(text.replace(")", ",)").replace("(,)", "()"), {"__builtins__": {}})


def operand(pycute, value):
    """A layout, a number, or a tuple of them."""
    if isinstance(value, str):
        shape, stride = value.split(":")
        return pycute.Layout(parse(shape), parse(stride))
    if isinstance(value, list):
        return tuple(operand(pycute, v) for v in value)
    return value


def median_ns(run):
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            run()
        if time.perf_counter() - start >= BATCH_SECONDS:
            break
        n *= 2
    times = []
    for _ in range(BATCHES):
        start = time.perf_counter()
        for _ in range(n):
            run()
        times.append((time.perf_counter() - start) / n)
    return statistics.median(times) * 1e9


def time_pycute(pycute, lines):
    """Nanoseconds by line, for the cases that pycute answers like CuTe."""
    times = {}
    for number, line in enumerate(lines):
        if line["op"] not in OPS or line["pycute"] != "same" or "@" in json.dumps(line):
            continue
        if any(v is None for v in line["args"]):
            continue
        args = [operand(pycute, v) for v in line["args"]]
        function = getattr(pycute, line["op"])
        try:
            function(*args)
        except Exception:
            continue
        times[number] = median_ns(lambda: function(*args))
    return times


def time_ours():
    example = ["cargo", "run", "--quiet", "--release", "--package", "carbyne-ir", "--example", "time_golden"]
    out = subprocess.run([*example, "--", str(GOLDEN)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return {int(n): float(ns) for n, ns in (line.split() for line in out.stdout.splitlines())}


def main():
    if not GOLDEN.exists():
        sys.exit("the golden vectors are absent (../shared/golden/public.jsonl): nothing to time")
    lines = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
    theirs = time_pycute(install(), lines)
    ours = time_ours()
    print(f"pycute of {PACKAGE}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    print(f"{'operation':16} {'cases':>6} {'pycute ns':>10} {'ours ns':>9} {'ratio':>7} {'least':>7}")
    for op in OPS:
        both = [n for n in theirs if n in ours and lines[n]["op"] == op]
        if not both:
            print(f"{op:16} {0:6}")
            continue
        ratios = [theirs[n] / ours[n] for n in both]
        row = [statistics.median(t[n] for n in both) for t in (theirs, ours)]
        print(f"{op:16} {len(both):6} {row[0]:10.0f} {row[1]:9.0f} {statistics.median(ratios):6.0f}x {min(ratios):6.0f}x")


if __name__ == "__main__":
    main()
