"""How right the model's choices are: of every problem the ten instances that it ranks first, measured on this machine's GPU.

    cargo build --release --features gpu
    python3 bench/choice.py [--arch sm_90a] [--carbyne target/release/carbyne] [--only fitted|unseen|PART OF A NAME] > bench/choice.tsv
    python3 bench/choice.py --table bench/choice.tsv

Half of the problems, `fitted`, were looked at while the model was made. The others, `unseen`, were not; they were named before
anything of them was measured. Times are medians of so many launches (`--repeat`) with the second-level cache flushed. A line
has the problem, the half that it is of, the rank, what was chosen, and microseconds as estimated and as measured.
"""

import argparse
import math
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def gemm(m, n, k, ty="f16", majors="nn", acc="f32", out=None, by=""):
    a = f"[{m},{k}]" if majors[0] == "n" else f"[({m},{k}):(1,{m})]"
    b = f"[{k},{n}]" if majors[1] == "n" else f"[({k},{n}):(1,{k})]"
    a, b = f"%A:{a}.{ty}.GL", f"%B:{b}.{ty}.GL"
    return f"{a}\n{b}\n%C:[{m},{n}].{out or ty}.GL\nMatMul.set @k (%A, %B) -> (%C) acc={acc}{by}"


def chain(operands, out, means):
    given = "\n".join(f"%{name}:{ty}.GL" for name, ty in operands + [out])
    names = ", ".join(f"%{name}" for name, _ in operands)
    return f"{given}\nSpec @k ({names}) -> (%{out[0]}) means {{\n  {means}\n}}"


def softmax(m, n, ty):
    return chain([("X", f"[{m},{n}].{ty}")], ("Y", f"[{m},{n}].{ty}"),
                 "%e = exp(%X - max(%X, axis=1))\n  %Y = %e / sum(%e, axis=1)")


def rmsnorm(m, n, ty):
    return chain([("X", f"[{m},{n}].{ty}"), ("w", f"[1,{n}].{ty}")], ("Y", f"[{m},{n}].{ty}"),
                 f"%s = rsqrt(sum(%X * %X, axis=1) / {n} + 1e-5)\n  %Y = %X * %s * %w")


def layernorm(m, n, ty):
    return chain([("X", f"[{m},{n}].{ty}"), ("w", f"[1,{n}].{ty}"), ("b", f"[1,{n}].{ty}")], ("Y", f"[{m},{n}].{ty}"),
                 f"%d = %X - sum(%X, axis=1) / {n}\n  %v = sum(%d * %d, axis=1) / {n}\n"
                 "  %Y = %d * rsqrt(%v + 1e-5) * %w + %b")


def move(a, b):
    return f"%A:{a}.GL\n%B:{b}.GL\nMove @k (%A) -> (%B)"


def reduction(op, a, b, axis):
    return f"%A:{a}.GL\n%B:{b}.GL\nReduction.{op} @k (%A) -> (%B) axis={axis}"


def bias(m, n, k, ty, last):
    return chain([("A", f"[{m},{k}].{ty}"), ("B", f"[{k},{n}].{ty}"), ("b", f"[1,{n}].f32")], ("C", f"[{m},{n}].{ty}"),
                 f"%t = matmul(%A, %B, acc=f32) + %b\n  %C = {last}")


def batched(b, m, n, k):
    return (f"%A:[{b},{m},{k}].f16.GL\n%B:[{b},{k},{n}].f16.GL\n%C:[{b},{m},{n}].f16.GL\n"
            "MatMul.set @k (%A, %B) -> (%C) acc=f32")


RING = " by=@ring"
FITTED = {
    "gemm 1024x1024x1024 f16": gemm(1024, 1024, 1024),
    "gemm 2048x2048x2048 f16 tn": gemm(2048, 2048, 2048, majors="nt"),
    "gemm 4096x4096x4096 f16": gemm(4096, 4096, 4096),
    "gemm 2048x2048x2048 f16 by @ring": gemm(2048, 2048, 2048, by=RING),
    "gemm 512x8192x2048 f16 by @ring": gemm(512, 8192, 2048, by=RING),
    "gemm 128x4096x4096 f16": gemm(128, 4096, 4096),
    "gemm 1024x1024x1024 tf32": gemm(1024, 1024, 1024, "tf32", "nt", out="f32"),
    "gemm 2048x2048x2048 f16, bias, relu": bias(2048, 2048, 2048, "f16", "relu(%t)"),
    "batch of 16 gemms 512x512x512 f16": batched(16, 512, 512, 512),
    "matrix and vector 8192x8192 f16": gemm(8192, 1, 8192),
    "copy 8192x8192 f16": move("[8192,8192].f16", "[8192,8192].f16"),
    "transpose 4096x4096 f16": move("[4096,4096].f16", "[(4096,4096):(1,4096)].f16"),
    "row sums 8192x8192 f32": reduction("sum", "[8192,8192].f32", "[8192,1].f32", 1),
    "column sums 8192x4096 f32": reduction("sum", "[8192,4096].f32", "[1,4096].f32", 0),
    "sum of two 8192x8192 f16": chain([("A", "[8192,8192].f16"), ("B", "[8192,8192].f16")], ("C", "[8192,8192].f16"), "%C = %A + %B"),
    "bias and relu 4096x8192 f32": chain([("A", "[4096,8192].f32"), ("b", "[1,8192].f32")], ("C", "[4096,8192].f32"), "%C = relu(%A + %b)"),
    "softmax 16384x2048 f16": softmax(16384, 2048, "f16"),
    "rmsnorm 16384x4096 f16": rmsnorm(16384, 4096, "f16"),
}
UNSEEN = {
    "gemm 1536x1536x1536 bf16": gemm(1536, 1536, 1536, "bf16"),
    "gemm 3072x3072x1024 f16 tn": gemm(3072, 3072, 1024, majors="nt"),
    "gemm 2560x5120x1280 f16": gemm(2560, 5120, 1280),
    "gemm 1536x3072x1024 f16 by @ring": gemm(1536, 3072, 1024, by=RING),
    "gemm 3072x3072x3072 bf16 by @ring": gemm(3072, 3072, 3072, "bf16", by=RING),
    "gemm 256x4096x2048 f16": gemm(256, 4096, 2048),
    "gemm 2048x2048x2048 i8 tn": gemm(2048, 2048, 2048, "i8", "nt", "i32", "i32"),
    "gemm 4096x4096x1024 bf16, bias, silu": bias(4096, 4096, 1024, "bf16", "silu(%t)"),
    "batch of 64 gemms 256x256x64 f16": batched(64, 256, 256, 64),
    "vector and matrix 4096x16384 f16": gemm(1, 16384, 4096),
    "copy 4096x12288 f32": move("[4096,12288].f32", "[4096,12288].f32"),
    "transpose 2048x16384 f32": move("[2048,16384].f32", "[(2048,16384):(1,2048)].f32"),
    "heads to the front 32x512x16x64 f16": move("[32,512,16,64].f16", "[(32,512,16,64):(524288,64,32768,1)].f16"),
    "row maxima 16384x1024 f16": reduction("max", "[16384,1024].f16", "[16384,1].f16", 1),
    "sum of 4096x4096 f32": reduction("sum", "[4096,4096].f32", "[1,1].f32", "(0,1)"),
    "silu and product 8192x6144 f16": chain([("A", "[8192,6144].f16"), ("B", "[8192,6144].f16")], ("C", "[8192,6144].f16"), "%C = silu(%A) * %B"),
    "tanh 16384x1536 bf16": chain([("A", "[16384,1536].bf16")], ("C", "[16384,1536].bf16"), "%C = tanh(%A)"),
    "softmax 32768x1024 f16": softmax(32768, 1024, "f16"),
    "layernorm 8192x5120 bf16": layernorm(8192, 5120, "bf16"),
}


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
    """The kernel with its strategy pinned whole."""
    text = text.replace(RING, "")
    line = next(line for line in text.splitlines() if " @k " in line)
    head, brace, rest = line.partition(" means {")
    return text.replace(line, f"{head} by={by}{brace}{rest}")


def solved(carbyne, arch, text, file):
    """Decomposes into a file; microseconds as estimated."""
    file.with_suffix(".in").write_text(text)
    done = subprocess.run([carbyne, "decompose", file.with_suffix(".in"), "--arch", arch, "--estimate", "-o", file], capture_output=True, text=True)
    found = re.findall(r"^\w+: ([\d.]+) us on ", done.stderr, re.M)
    if done.returncode or not found:
        print(text, done.stderr, file=sys.stderr)
    return sum(map(float, found)) if found and not done.returncode else None


def measured(carbyne, arch, file, repeat):
    """Microseconds of all kernels of a file."""
    done = subprocess.run([carbyne, "run", file, "--arch", arch, "--repeat", str(repeat), "--compare", "5"], capture_output=True, text=True)
    found = re.findall(r"L2 flushed: median ([\d.]+) us", done.stdout + done.stderr)
    if done.returncode or not found:
        print(file.with_suffix(".in").read_text(), done.stdout, done.stderr, file=sys.stderr)
        return None
    return sum(map(float, found))


def correlation(a, b):
    """Spearman's: of the ranks."""
    def ranks(v):
        return [sum(y < x for y in v) + (sum(y == x for y in v) - 1) / 2 for x in v]
    a, b = ranks(a), ranks(b)
    mean = (len(a) - 1) / 2
    dot = lambda x, y: sum((p - mean) * (q - mean) for p, q in zip(x, y))
    return dot(a, b) / max(math.sqrt(dot(a, a) * dot(b, b)), 1e-9)


def table(lines):
    """What the first choices lose."""
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
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
            def estimated(job):
                number, line = job
                if line.startswith("#"):
                    return line
                name, half, rank, by, _, time = line.split("\t")
                text = f"carbyne 2\n{pinned({**FITTED, **UNSEEN}[name], by)}\n"
                estimate = solved(asked.carbyne, asked.arch, text, Path(folder) / f"{number}.cby")
                return "\t".join([name, half, rank, by, f"{estimate or math.inf:.2f}", time])
            return table(pool.map(estimated, enumerate(lines)))
    problems = [("fitted", *p) for p in FITTED.items()] + [("unseen", *p) for p in UNSEEN.items()]
    problems = [p for p in problems if asked.only in p[0] or asked.only in p[1]]
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
        # All are prepared before the first is measured: the machine is quiet then.
        for half, name, files in list(pool.map(prepare, enumerate(problems))):
            for rank, by, file, estimate in files:
                if estimate is None:
                    continue
                time = None if asked.list else measured(asked.carbyne, asked.arch, file, asked.repeat)
                print(name, half, rank, by, f"{estimate:.2f}", f"{time:.2f}" if time else "failed", sep="\t", flush=True)


if __name__ == "__main__":
    main()
