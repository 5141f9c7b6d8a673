"""Compares kernel-level MatMuls of carbyne without pins with cuBLAS (through PyTorch), on this machine's GPU.

    cargo build --release --features gpu
    python3 bench/gemm.py [--carbyne target/release/carbyne] [--arch sm_90a] [--rounds 3] [--repeat 1500] [--by "@wgmma_ring[BM=128]"]
                           [--sizes 2048,5376x5376x2048]

Both take turns for equal times, with the L2 cache flushed before every launch. Above a ratio of 1, carbyne is faster. Times are
medians of the launches of a round; the ratio is the median of the rounds.
"""

import argparse
import math
import os
import re
import statistics
import subprocess
import tempfile

import torch


def text(m, n, k, majors, ty, by):
    a = f"[{m},{k}]" if majors[0] == "n" else f"[({m},{k}):(1,{m})]"
    b = f"[{k},{n}]" if majors[1] == "n" else f"[({k},{n}):(1,{k})]"
    return f"carbyne 2\n%A:{a}.{ty}.GL\n%B:{b}.{ty}.GL\n%C:[{m},{n}].{ty}.GL\nMatMul.set @gemm (%A, %B) -> (%C) acc=f32{by}\n"


def ours(asked, file, repeat):
    command = [asked.carbyne, "run", file, "--arch", asked.arch, "--repeat", str(repeat), "--sustain", "0", "--compare", "5"]
    command += ["--strategy", asked.strategy] if asked.strategy else []
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.findall(r"L2 flushed: median ([\d.]+) us", done.stdout + done.stderr)
    if done.returncode or not found:
        print(done.stdout + done.stderr)
        return math.nan
    return float(found[0])


def theirs(m, n, k, majors, ty, repeat):
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[ty]
    a = torch.randn(m, k, dtype=dtype, device="cuda") if majors[0] == "n" else torch.randn(k, m, dtype=dtype, device="cuda").t()
    b = torch.randn(k, n, dtype=dtype, device="cuda") if majors[1] == "n" else torch.randn(n, k, dtype=dtype, device="cuda").t()
    c = torch.empty(m, n, dtype=dtype, device="cuda")
    flush = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeat)]
    for start, end in events:
        flush.zero_()
        start.record()
        torch.matmul(a, b, out=c)
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) * 1000 for start, end in events)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--carbyne", default="target/release/carbyne")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=1500)
    parser.add_argument("--majors", default="nn,nt", help="of A and B: n as they are written, t transposed")
    parser.add_argument("--types", default="f16")
    parser.add_argument("--sizes", default="1024,2048,4096,8192", help="cubes, or MxNxK")
    parser.add_argument("--by", default="", help="pins, in turn; separated by ;")
    parser.add_argument("--strategy", help="a file of strategies")
    asked = parser.parse_args()
    pins = asked.by.split(";")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    for size in asked.sizes.split(","):
        m, n, k = [int(x) for x in size.split("x")] if "x" in size else [int(size)] * 3
        for ty in asked.types.split(","):
            for majors in asked.majors.split(","):
                # Fewer launches for kernels of a millisecond.
                repeat = max(20, min(asked.repeat, int(asked.repeat * 2048**3 * 8 / (m * n * k))))
                with tempfile.TemporaryDirectory() as folder:
                    files = [os.path.join(folder, f"{i}.cby") for i in range(len(pins))]
                    for file, pin in zip(files, pins):
                        with open(file, "w") as out:
                            out.write(text(m, n, k, majors, ty, f" by={pin}" if pin else ""))
                    times = [([ours(asked, file, repeat) for file in files], theirs(m, n, k, majors, ty, repeat)) for _ in range(asked.rounds)]
                for i, pin in enumerate(pins):
                    ratio = statistics.median(b / a[i] for a, b in times)
                    said = ", ".join(f"{a[i]:.1f}/{b:.1f}" for a, b in times)
                    print(f"{m}x{n}x{k} {ty} {majors} {pin or 'default'}: {ratio:.3f} of cuBLAS (ours/cuBLAS us: {said})", flush=True)


if __name__ == "__main__":
    main()
