"""Compares the simulator with Triton's interpreter and numba's CUDA simulator on one matrix product.

    cargo build --release && python3 bench/simulators.py

All three compute C = A·B of one size on the CPU, with f16 inputs and f32 accumulators. carbyne simulates
examples/ampere_gemm_by_hand.cby of this size lane by lane: tensor-core instructions, swizzled shared memory,
cp.async. It searches for races, missing waits and undefined reads, and compares every body with its spec. The
whole process is timed. For the others, only the call of the kernel is timed, after a warm-up call. Triton's
interpreter (TRITON_INTERPRET=1) executes whole tiles with NumPy, without threads and shared memory. numba's
simulator (NUMBA_ENABLE_CUDASIM=1) runs each thread in Python, here the tiled product of its manual, with shared
memory. Neither searches for races.

The other simulators are installed from the registry into an environment in the build folder. Triton's arguments
are NumPy arrays with the methods of torch's tensors, because torch, whose wheel needs some gigabytes of CUDA, is
not needed for the arithmetic of the interpreter.

At 512x512x512, numba's simulator would run for half an hour, so only carbyne and Triton's interpreter are
compared, with tiles of one size. Then carbyne alone is measured: this product with and without checks, with one
thread and two, and the memory for a product of 8192x8192x8192 of which four blocks run. Times are wall-clock
times; `work` is the CPU time of all threads, which depends less on other programs of the machine.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "target" / "simulators"
PACKAGES = ["numba==0.68.1", "triton==3.9.0", "numpy==2.4.6"]
OURS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "carbyne"
EXAMPLE = ROOT / "examples" / "ampere_gemm_by_hand.cby"
SIZE = "let M = 256, N = 256, K = 128\n"

TRITON = '''
import ctypes, json, sys, time
import numpy as np
import triton
import triton.language as tl


class Storage:
    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def cpu(self):
        return self

    def copy_(self, other):
        assert other is self


class Tensor:
    """A NumPy array with the tensor methods that the interpreter calls."""

    def __init__(self, array, name):
        self.array, self.dtype = array, name

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        self.storage = getattr(self, "storage", None) or Storage(self.array)
        return self.storage

    def new_empty(self, size, device):
        return Tensor(self.array, self.dtype)

    def set_(self, storage, offset, size, stride):
        self.storage = storage

    def storage_offset(self):
        return 0

    def size(self):
        return self.array.shape

    def stride(self):
        return tuple(s // self.array.itemsize for s in self.array.strides)


@triton.jit
def matmul(a, b, c, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, N, BK):
        x = tl.load(a + rows[:, None] * N + (k + ks)[None, :])
        y = tl.load(b + (k + ks)[:, None] * N + columns[None, :])
        sum = tl.dot(x, y, sum)
    tl.store(c + rows[:, None] * N + columns[None, :], sum.to(tl.float16))


n, tile = int(sys.argv[1]), [int(x) for x in sys.argv[2:5]]
random = np.random.default_rng(0)
a, b = (random.uniform(-1, 1, (n, n)).astype(np.float16) for _ in "ab")
c = np.zeros((n, n), np.float16)
grid = (n // tile[0], n // tile[1])
run = lambda: matmul[grid](*(Tensor(x, "fp16") for x in (a, b, c)), n, *tile)
run()
start, used = time.perf_counter(), time.process_time()
run()
seconds, used = time.perf_counter() - start, time.process_time() - used
error = np.abs(c - a.astype(np.float64) @ b).max()
assert error < 0.05, error
print(seconds, used)
'''

NUMBA = '''
import sys, time
import numpy as np
from numba import cuda, float32

n, T = int(sys.argv[1]), 16


@cuda.jit
def matmul(a, b, c):
    x = cuda.shared.array(shape=(T, T), dtype=float32)
    y = cuda.shared.array(shape=(T, T), dtype=float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx
    sum = float32(0)
    for k in range(a.shape[1] // T):
        x[ty, tx] = a[row, k * T + tx]
        y[ty, tx] = b[k * T + ty, column]
        cuda.syncthreads()
        for i in range(T):
            sum += float32(x[ty, i]) * float32(y[i, tx])
        cuda.syncthreads()
    c[row, column] = sum


random = np.random.default_rng(0)
a, b = (random.uniform(-1, 1, (n, n)).astype(np.float16) for _ in "ab")
c = np.zeros((n, n), np.float16)
matmul[(1, 1), (T, T)](a[:T].copy(), b[:, :T].copy(), c)
start, used = time.perf_counter(), time.process_time()
matmul[(n // T, n // T), (T, T)](a, b, c)
seconds, used = time.perf_counter() - start, time.process_time() - used
error = np.abs(c - a.astype(np.float64) @ b).max()
assert error < 0.05, error
print(seconds, used)
'''


def install():
    """The Python interpreter of an environment with the other simulators."""
    python = PEERS / "bin" / "python"
    stamp = PEERS / "packages.json"
    if not stamp.exists() or json.loads(stamp.read_text()) != PACKAGES:
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        stamp.write_text(json.dumps(PACKAGES))
    return python


def peer(python, name, text, args, variable):
    """Seconds of one call of another simulator's kernel, and the CPU time of all its threads."""
    path = PEERS / name
    path.write_text(text)
    env = {**os.environ, variable: "1"}
    command = [str(python), str(path), *map(str, args)]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    return tuple(map(float, done.stdout.split()))


def ours(n, *options, threads=None, repeat=3):
    """Median seconds of the whole process, the CPU time of all its threads, and its output."""
    text = EXAMPLE.read_text()
    assert SIZE in text, "the example's sizes are written otherwise"
    text = text.replace(SIZE, f"let M = {n}, N = {n}, K = {n}\n")
    env = {**os.environ, **({"RAYON_NUM_THREADS": str(threads)} if threads else {})}
    seconds, used = [], children()
    for _ in range(repeat):
        start = time.perf_counter()
        command = [str(OURS), "simulate", "-", "--seed", "1", *options]
        done = subprocess.run(command, env=env, input=text, capture_output=True, text=True)
        seconds.append(time.perf_counter() - start)
        assert done.returncode == 0, done.stderr
    return statistics.median(seconds), (children() - used) / repeat, done.stderr


def children():
    """CPU seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(rows, n):
    """Prints a line for each row of name, seconds and work; the first row is carbyne's."""
    _, mine, my_work = rows[0]
    for name, seconds, work in rows:
        rate = n**3 / seconds / 1e6
        print(
            f"  {name:<42} {seconds:9.3f} s {rate:8.2f} M multiply-adds/s {seconds / mine:8.1f} x ours,"
            f" work {work:8.3f} s {work / my_work:8.1f} x"
        )


def triton(python, n, tile):
    """Triton's row for tiles of this size."""
    times = peer(python, "triton_peer.py", TRITON, [n, *tile], "TRITON_INTERPRET")
    return (f"Triton, TRITON_INTERPRET=1, tiles {'x'.join(map(str, tile))}", *times)


def main():
    if not OURS.exists():
        sys.exit(f"{OURS} is missing: cargo build --release")
    python = install()
    name = "carbyne simulate, races and specs checked"
    n = 128
    print(f"{n}x{n}x{n}, f16, sums in f32; {os.cpu_count()} cores", flush=True)
    rows = [(name, *ours(n, "--blocks", "all")[:2])]
    rows.append(("numba, NUMBA_ENABLE_CUDASIM=1", *peer(python, "numba_peer.py", NUMBA, [n], "NUMBA_ENABLE_CUDASIM")))
    rows += [triton(python, n, tile) for tile in [(128, 128, 32), (32, 32, 32), (16, 16, 16)]]
    show(rows, n)

    n = 512
    print(f"{n}x{n}x{n}", flush=True)
    rows = [(name, *ours(n, "--blocks", "all")[:2])]
    show([*rows, triton(python, n, (128, 128, 32))], n)

    print(f"{n}x{n}x{n}, tiles of 128x128x32, ours alone", flush=True)
    for threads in [1, 2]:
        for what, options in [("on ", []), ("off", ["--no-check"])]:
            seconds, work, _ = ours(n, "--blocks", "all", *options, threads=threads)
            print(f"  {threads} threads, checking {what}: {seconds:.2f} s, work {work:.2f} s", flush=True)

    # A new process reports its own peak; in this process, the largest child may have been an earlier one.
    seconds, _, said = ours(8192, "--blocks", "4", repeat=1)
    command = [sys.executable, __file__, "--peak"]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"8192x8192x8192, --blocks 4: {seconds:.1f} s, {peak / 1024:.0f} MiB at most")
    print("  " + said.splitlines()[0])


if __name__ == "__main__":
    if sys.argv[1:] == ["--peak"]:
        ours(8192, "--blocks", "4", repeat=1)
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    else:
        main()
