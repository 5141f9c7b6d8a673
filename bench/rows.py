"""Measures softmax, layernorm and rmsnorm as fractions of the bandwidth of a copy, on this machine's GPU.

    cargo build --release --features gpu
    python3 bench/rows.py [--carbyne target/release/carbyne] [--arch sm_90a] [--rows 32768] [--columns 4096]

The copy is a kernel-level Move of as many bytes in the same run. If PyTorch is installed, the driver's copy is printed beside it.
"""

import argparse
import re
import statistics
import subprocess
import tempfile


def chain(operands, ty, means):
    given = "\n".join(f"%{name}:{of}.{ty}.GL" for name, of in operands)
    names = ", ".join(f"%{name}" for name, _ in operands[:-1])
    return f"{given}\nSpec @k ({names}) -> (%{operands[-1][0]}) means {{\n  {means}\n}}"


def softmax(m, n):
    return chain([("X", f"[{m},{n}]"), ("Y", f"[{m},{n}]")], "f16", "%e = exp(%X - max(%X, axis=1))\n  %Y = %e / sum(%e, axis=1)")


def rmsnorm(m, n):
    return chain([("X", f"[{m},{n}]"), ("w", f"[1,{n}]"), ("Y", f"[{m},{n}]")], "f16",
                 f"%s = rsqrt(sum(%X * %X, axis=1) / {n} + 1e-5)\n  %Y = %X * %s * %w")


def layernorm(m, n):
    return chain([("X", f"[{m},{n}]"), ("w", f"[1,{n}]"), ("b", f"[1,{n}]"), ("Y", f"[{m},{n}]")], "f16",
                 f"%d = %X - sum(%X, axis=1) / {n}\n  %v = sum(%d * %d, axis=1) / {n}\n  %Y = %d * rsqrt(%v + 1e-5) * %w + %b")



def time_of(carbyne, arch, text):
    with tempfile.NamedTemporaryFile("w", suffix=".cby") as file:
        file.write(f"carbyne 2\n{text}\n")
        file.flush()
        done = subprocess.run([carbyne, "run", file.name, "--arch", arch, "--repeat", "100", "--sustain", "0", "--compare", "5"], capture_output=True, text=True)
        chosen = subprocess.run([carbyne, "decompose", file.name, "--arch", arch], capture_output=True, text=True).stdout
    found = re.findall(r"L2 flushed: median ([\d.]+) us", done.stdout + done.stderr)
    if done.returncode or not found:
        raise SystemExit(done.stdout + done.stderr)
    return float(found[0]), ", ".join(re.findall(r"by=(@\w+\[[^\]]*\])", chosen))


def driver(rows, columns):
    try:
        import torch
    except ImportError:
        return None
    a = torch.randn(rows, columns, device="cuda").half()
    b, flush = torch.empty_like(a), torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(100):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        start.record()
        b.copy_(a)
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1000)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--carbyne", default="target/release/carbyne")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--rows", type=int, default=32768)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    m, n = asked.rows, asked.columns
    kernels = {
        "copy": f"%A:[{m},{n}].f16.GL\n%B:[{m},{n}].f16.GL\nMove @k (%A) -> (%B)",
        "softmax": softmax(m, n),
        "layernorm": layernorm(m, n),
        "rmsnorm": rmsnorm(m, n),
    }
    for _ in range(asked.rounds):
        times = {name: time_of(asked.carbyne, asked.arch, text) for name, text in kernels.items()}
        copied = driver(m, n)
        if copied:
            print(f"{m}x{n} f16, copy by PyTorch: {copied:.1f} us, {4 * m * n / copied / 1e3:.0f} GB/s")
        for name, (us, by) in times.items():
            print(f"{m}x{n} f16, {name}: {us:.1f} us, {4 * m * n / us / 1e3:.0f} GB/s, {100 * times['copy'][0] / us:.1f} % of the copy, {by}", flush=True)


if __name__ == "__main__":
    main()
