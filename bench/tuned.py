"""Measures how far the cost model's choice is behind the best candidate of tuning, for the products of `bench/shapes.txt`, on this machine's GPU.

    cargo build --release --features gpu
    python3 bench/tuned.py [--carbyne target/release/carbyne] [--top 12] [--launches 40] [--only fitted|unseen] [--json FILE]
    python3 bench/tuned.py --table FILE

Rows of A and columns of B are consecutive; factors are f16, accumulators f32. The ratio is the time of the model's choice divided by
the time of the best of the candidates that it ranks first: 1 if it chose the best.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path


def shapes(only):
    for line in Path(__file__).with_name("shapes.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            half, shape = line.split()
            if not only or half == only:
                yield half, shape


def kernel(shape):
    m, n, k = map(int, shape.split("x"))
    return f"%A:[{m},{k}].f16.GL\n%B:[({k},{n}):(1,{k})].f16.GL\n%C:[{m},{n}].f16.GL\nMatMul.set @gemm (%A, %B) -> (%C) acc=f32\n"


def measured(asked, shape):
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "gemm.cby"), Path(folder, "out.json")
        file.write_text("carbyne 2\n" + kernel(shape))
        command = [asked.carbyne, "tune", file, "--device", "--top", str(asked.top), "--launches", str(asked.launches)]
        command += ["--compare", "2000", "--tuned", Path(folder, "tuned"), "--json", out]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not out.exists():
            print(shape, done.stdout, done.stderr, file=sys.stderr)
            return None
        return json.loads(out.read_text())


def summary(found, half, shape):
    """The model's choice and the best candidate of one product, from the output of `carbyne tune --json`."""
    kernel = found["kernels"][0] if "kernels" in found else found
    timed = [c for c in kernel["candidates"] if c["median_us"]]
    best, model = min(timed, key=lambda c: c["median_us"]), min(timed, key=lambda c: c["rank"])
    return {"half": half, "shape": shape, "model": model["by"], "model_us": model["median_us"], "best": best["by"], "best_us": best["median_us"]}


def table(rows):
    means = {"fitted": [], "unseen": []}
    print(f"{'product':20} {'':7} {'model us':>9} {'best us':>9} {'ratio':>6}  model's choice, and the best where that is another")
    for row in rows:
        ratio = row["model_us"] / row["best_us"]
        means[row["half"]].append(ratio)
        other = "" if row["model"] == row["best"] else f"; {row['best']}"
        print(f"{row['shape']:20} {row['half']:7} {row['model_us']:9.2f} {row['best_us']:9.2f} {ratio:6.3f}  {row['model']}{other}")
    for half, ratios in list(means.items()) + [("all", sum(means.values(), []))]:
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"{half}: geometric mean {mean:.3f}, worst {max(ratios):.3f}, of {len(ratios)}; {sum(r > 1.05 for r in ratios)} above 1.05")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--carbyne", default="target/release/carbyne")
    parser.add_argument("--top", type=int, default=12)
    parser.add_argument("--launches", type=int, default=40)
    parser.add_argument("--only", choices=["fitted", "unseen"])
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--table", help="print the rows of such a file, and measure nothing")
    asked = parser.parse_args()
    if asked.table:
        return table(json.loads(Path(asked.table).read_text()))
    rows = []
    for half, shape in shapes(asked.only):
        found = measured(asked, shape)
        if not found:
            continue
        rows.append(summary(found, half, shape))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        if asked.json:
            Path(asked.json).write_text(json.dumps(rows, indent=1) + "\n")
    table(rows)


if __name__ == "__main__":
    main()
