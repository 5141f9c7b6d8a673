"""Compares attention of the examples with cuDNN on this machine's GPU, full and causal.

    cargo build --release --features gpu
    python3 bench/attention.py [--carbyne target/release/carbyne] [--arch sm_90a] [--shape 4x16x4096x128] [--tile 128x128]

    python3 bench/attention.py --by-hand

The text is that of `examples/attention_causal.cby` with other numbers; for full attention without the mask. It differs in three
points: heads are the fastest mode of the grid, queries that attend to the most keys come first, and the result goes through shared
memory. `carbyne compile` makes the kernel and its launch data. This process launches the kernel with the driver, in the stream of
PyTorch; PyTorch's `scaled_dot_product_attention` runs cuDNN's kernel on the same tensors. Both results are compared with attention
in binary32.

Launches take turns, in a random order in each turn. The L2 cache is either flushed before each launch (a buffer of twice its size is
written), or left as after the previous launch. Times are measured by events around a launch and are medians of `--rounds` turns.
TFLOP/s count 4·B·H·S²·D operations, for a causal mask half of them. The ratio is cuDNN's median divided by carbyne's: above 1,
carbyne is faster. Quartiles are of the ratios within a turn.
"""

import argparse
import ctypes
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
EXAMPLE = EXAMPLES / "attention_causal.cby"
BY_HAND = EXAMPLES / "hopper_attention_by_hand.cby"
ROWS_OF_A_WARP_GROUP = 64
THREADS_OF_A_WARP_GROUP = 128


def replaced(text, pattern, by):
    """Replaces the only match of a pattern in a text."""
    text, n = re.subn(pattern, by, text, flags=re.M)
    if n != 1:
        sys.exit(f"`{pattern}` stands {n} times in {EXAMPLE}, not once")
    return text


def by_hand(shape):
    """The example that names all of its instructions, with these numbers. Its head size is 128."""
    b, h, s, _ = shape
    numbers = f"let B = {b}, H = {h}, S = {s}, D = 128"
    text, n = re.subn(r"^let B = .*$", numbers, BY_HAND.read_text(), flags=re.M)
    return text if n == 1 else sys.exit(f"{BY_HAND} has no line `let B = ..`")


def source(shape, tile, causal):
    """The example with these numbers."""
    b, h, s, d = shape
    bs, bt = tile
    threads = bs // ROWS_OF_A_WARP_GROUP * THREADS_OF_A_WARP_GROUP
    text = replaced(EXAMPLE.read_text(), r"^let B = .*$", f"let B = {b}, H = {h}, S = {s}, T = S, D = {d}")
    text = replaced(text, r"^let BS = .*$", f"let BS = {bs}, BT = {bt}")
    text = replaced(text, r"#cta:\[\d+\]", f"#cta:[{threads}]")
    # Blocks start in the order of the grid: the longest of a causal mask first. Neighbors share keys and values in the L2 cache.
    text = replaced(text, r"\[@i < S / BS, @h < H, @b < B\]", "[@h < H, @b < B, @j < S / BS]")
    text = replaced(text, r"^\} \{$", "} {\n  let i = S / BS - 1 - @j")
    # Results go through shared memory, so that stores to global memory have 16 bytes.
    text = replaced(text, r"^  (%O\[.*\]) = (cast\(%o / %sum, f16\))$", r"  %y = \2\n  Move (%y) -> (%staged:SH)\n  \1 = move(%staged)")
    # Keys up to the last query of the tile.
    text = replaced(text, r"t < \(@i \+ 1\) \* BS / BT;", "t < (@i + 1) * BS / BT;" if causal else "t < T / BT;")
    text = text.replace("@i", "i")
    if causal:
        return text
    for line in (r"^  %seen = select\(.*\n", r"^  %query = .*\n", r"^    %key = .*\n", r"^    %s = select\(.*\n"):
        text = replaced(text, line, "")
    text = replaced(text, r"^  %p = exp\(%seen - max\(%seen, axis=3\)\)$", "  %p = exp(%s - max(%s, axis=3))")
    return replaced(text, r"^    %all = ", "    %s = ").replace("attention_causal", "attention_full")


def compiled(carbyne, arch, text):
    """The machine code and the launch data of the kernel."""
    with tempfile.TemporaryDirectory() as folder:
        file, cubin = Path(folder) / "attention.cby", Path(folder) / "attention.cubin"
        file.write_text(text)
        command = [carbyne, "compile", file, "--arch", arch]
        made = subprocess.run([*command, "--emit", "cubin", "-o", cubin], capture_output=True, text=True)
        if made.returncode:
            sys.exit(made.stderr)
        print(made.stderr.strip().splitlines()[-1], file=sys.stderr)
        told = subprocess.run([*command, "--emit", "abi"], capture_output=True, text=True, check=True)
        (kernel,) = json.loads(told.stdout)["kernels"]
        return cubin.read_bytes(), kernel


class Attribute(ctypes.Structure):
    """`CUlaunchAttribute` for the dimensions of a cluster."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("n_attributes", ctypes.c_uint),
    ]


class Kernel:
    """A loaded kernel with its arguments."""

    MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION

    def __init__(self, cubin, kernel, tensors, stream):
        self.driver = ctypes.CDLL("libcuda.so.1")
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(self.function), module, kernel["kernel"].encode())
        shared = kernel["dynamic_shared_bytes"]
        self.call("cuFuncSetAttribute", self.function, self.MAX_DYNAMIC_SHARED, shared)
        self.values = [self.value(p, tensors[p["tensor"]]) for p in kernel["parameters"]]
        pointers = [ctypes.addressof(v) + at for v, at in self.values]
        self.arguments = (ctypes.c_void_p * len(pointers))(*pointers)
        self.cluster = Attribute(self.CLUSTER_DIMENSION, 0, (ctypes.c_uint * 16)(kernel["cluster"], 1, 1))
        n = int(kernel["cluster"] > 1)
        self.config = Config((kernel["grid"], 1, 1), (kernel["block"], 1, 1), shared, stream, ctypes.pointer(self.cluster), n)

    def call(self, name, *arguments):
        status = getattr(self.driver, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.driver.cuGetErrorName(status, ctypes.byref(text))
            sys.exit(f"{name}: {(text.value or b'?').decode()} ({status})")

    def value(self, parameter, address):
        """A buffer, and the offset of the argument in it."""
        if parameter["kind"] == "pointer":
            return ctypes.c_uint64(address), 0
        if parameter["kind"] != "tensor_map":
            sys.exit(f"a parameter is a {parameter['kind']}, which this script does not pass")
        # Tensor maps must be at multiples of 64 bytes.
        buffer = ctypes.create_string_buffer(parameter["bytes"] + 64)
        at = -ctypes.addressof(buffer) % 64
        extents, rank = parameter["extents"], len(parameter["extents"])
        self.call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(ctypes.addressof(buffer) + at),
            parameter["data_type"],
            rank,
            ctypes.c_void_p(address + parameter["offset_bytes"]),
            (ctypes.c_uint64 * rank)(*extents),
            (ctypes.c_uint64 * (rank - 1))(*parameter["stride_bytes"]),
            (ctypes.c_uint32 * rank)(*parameter["box"]),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            0,  # not interleaved
            parameter["swizzle"],
            parameter["l2_promotion"],
            0,  # zeros outside
        )
        return buffer, at

    def __call__(self):
        self.call("cuLaunchKernelEx", ctypes.byref(self.config), self.function, self.arguments, None)


def reference(torch, q, k, v, causal):
    """Attention in binary32, head by head."""
    torch.backends.cuda.matmul.allow_tf32 = False
    out = torch.empty(q.shape, dtype=torch.float32, device="cuda")
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device="cuda").triu(1) if causal else None
    for at in [(b, h) for b in range(q.shape[0]) for h in range(q.shape[1])]:
        s = q[at].float() @ k[at].float().T / q.shape[3] ** 0.5
        if causal:
            s.masked_fill_(hidden, float("-inf"))
        out[at] = torch.softmax(s, -1) @ v[at].float()
    return out


def turns(torch, kernels, rounds, flush):
    """The milliseconds of each launch of each kernel."""
    events = {name: [] for name in kernels}
    for turn in range(rounds + 10):
        for name in random.sample(list(kernels), len(kernels)):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            if flush is not None:
                flush.zero_()
            start.record()
            kernels[name]()
            end.record()
            # The first turns warm up the GPU.
            if turn >= 10:
                events[name].append((start, end))
        # Synchronize regularly, because a stream holds a limited number of events.
        if turn % 50 == 49:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    return {name: [start.elapsed_time(end) for start, end in all] for name, all in events.items()}


def measured(args, torch, causal):
    """Prints the lines of a mask. Returns whether carbyne's result is right."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    b, h, s, d = args.shape
    text = by_hand(args.shape) if args.by_hand else source(args.shape, args.tile, causal)
    cubin, kernel = compiled(args.carbyne, args.arch, text)
    torch.manual_seed(args.seed)
    q, k, v = (torch.randn(b, h, s, d, device="cuda").half() for _ in range(3))
    o = torch.full_like(q, float("nan"))
    addresses = {name: tensor.data_ptr() for name, tensor in zip("QKVO", (q, k, v, o))}
    ours = Kernel(cubin, kernel, addresses, torch.cuda.current_stream().cuda_stream)

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    ours()
    torch.cuda.synchronize()
    wanted = reference(torch, q, k, v, causal)
    norm = wanted.norm()
    errors = [((found.float() - wanted).norm() / norm).item() for found in (o, cudnn())]
    # The comparison is false for NaN.
    right = errors[0] < 2e-3
    mask = "causal" if causal else "full"
    del wanted
    if not right:
        print(f"{mask}: carbyne's result is wrong, its relative error is {errors[0]:.2e} (cuDNN's {errors[1]:.2e})", file=sys.stderr)
        return False
    work = 4 * b * h * s * s * d / (2 if causal else 1)
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.empty(2 * cache, dtype=torch.uint8, device="cuda")
    for state, buffer in (("flushed", flush), ("as left", None)):
        times = turns(torch, {"ours": ours, "cuDNN": cudnn}, args.rounds, buffer)
        medians = {name: statistics.median(all) for name, all in times.items()}
        rates = {name: work / t / 1e9 for name, t in medians.items()}
        ratios = statistics.quantiles((c / t for c, t in zip(times["cuDNN"], times["ours"])), n=4)
        print(
            f"| {mask} | {state} | {1e3 * medians['ours']:.1f} | {rates['ours']:.0f} | {1e3 * medians['cuDNN']:.1f} | {rates['cuDNN']:.0f}"
            f" | {medians['cuDNN'] / medians['ours']:.3f} | {ratios[0]:.3f} to {ratios[2]:.3f} | {errors[0]:.1e} | {errors[1]:.1e} |"
        )
        sys.stdout.flush()
    return True


def numbers(n):
    def read(text):
        found = tuple(map(int, text.split("x")))
        if len(found) != n or min(found) < 1:
            raise argparse.ArgumentTypeError(f"`{text}` is not {n} numbers with `x` between")
        return found

    return read


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--carbyne", default="target/release/carbyne")
    args.add_argument("--arch", default="sm_90a")
    args.add_argument("--shape", type=numbers(4), default=(4, 16, 4096, 128), metavar="BxHxSxD")
    args.add_argument("--tile", type=numbers(2), default=(128, 128), metavar="QUERIESxKEYS")
    args.add_argument("--mask", choices=("full", "causal"), help="only this one")
    args.add_argument("--by-hand", action="store_true", help=f"measure {BY_HAND.name}, which is causal and has head size 128")
    args.add_argument("--rounds", type=int, default=200)
    args.add_argument("--seed", type=int, default=0)
    args.add_argument("--text", action="store_true", help="print the texts, and run nothing")
    args = args.parse_args()
    _, _, s, _ = args.shape
    if args.tile[0] % ROWS_OF_A_WARP_GROUP or args.tile[0] % args.tile[1] or s % args.tile[0]:
        sys.exit(f"queries of a tile are a multiple of {ROWS_OF_A_WARP_GROUP} and of its keys, and divide S")
    if args.by_hand:
        if args.shape[3] != 128 or s % 128 or args.mask == "full":
            sys.exit(f"{BY_HAND.name} is causal, its head size is 128, and 128 divides S")
        args.tile, args.mask = (128, 128), "causal"
    masks = [mask for mask in (False, True) if args.mask in (None, "causal" if mask else "full")]
    if args.text:
        for causal in masks:
            print(by_hand(args.shape) if args.by_hand else source(args.shape, args.tile, causal))
        return 0
    try:
        import torch
    except ImportError:
        sys.exit("PyTorch is needed, whose scaled_dot_product_attention runs cuDNN's kernel")
    shape, tile = ("x".join(map(str, numbers)) for numbers in (args.shape, args.tile))
    version = torch.backends.cudnn.version()
    print(f"{torch.cuda.get_device_name(0)}, {args.arch}, B, H, S and D {shape}, tiles {tile}, f16; PyTorch {torch.__version__}, cuDNN {version}\n")
    print("| mask | second-level cache | ours, us | TFLOP/s | cuDNN, us | TFLOP/s | ratio | quartiles | error | cuDNN's |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: |")
    return 0 if all([measured(args, torch, causal) for causal in masks]) else 1


if __name__ == "__main__":
    sys.exit(main())
