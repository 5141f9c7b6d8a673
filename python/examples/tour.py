# %% [markdown]
# # A tour of carbyne
#
# You write what a GPU kernel computes. Carbyne finds tiles, layouts, instructions and synchronization for it. The result is a text
# that you can read, edit, check, run on the CPU, and print as CUDA C++.
#
# This notebook needs no GPU and no CUDA: run `pip install './python[testing]'` in a clone of the repository.

# %% [markdown]
# ## 1. A kernel
#
# A kernel is a function of Python. Its annotations are the types of tensors: `f16[M, K]` has M rows of K 16-bit floats. The row of
# `bias` is added to all rows, and `cast` rounds to f16. `constants` are sizes that are fixed here; `symbols` would leave them to
# the caller. `@carbyne.kernel` runs the function once, with tensors that record the operations. The record is the *meaning* of the
# kernel.
#
# Tiles, threads and loops come from a *strategy*, a recipe for one kind of kernel. `by=` names one, and its parameters. `@ring`
# copies tiles of both factors of a product into a ring of buffers in shared memory. Here a block of threads computes 64x64
# elements in steps of 32 along K, by 2x2 warps, with S = 3 buffers. Without `by=`, the solver chooses strategy and parameters.

# %%
import carbyne
from carbyne.language import cast, constants, f16, f32, maximum

M, N, K = constants(M=256, N=256, K=128)

@carbyne.kernel(by="@ring[BM=64, BN=64, BK=32, WM=2, WN=2, S=3]")
def dense(X: f16[M, K], W: f16[K, N], bias: f32[1, N]) -> {"Y": f16[M, N]}:
    return cast(maximum(X @ W + bias, 0), f16)

print(dense.text(loc=False))

# %% [markdown]
# This is the kernel in the language of carbyne. The first line is the version of the format. `%X` is a tensor in global memory
# (`GL`). A `Spec` is something to be computed, and its `means` block says what, of whole tensors and real numbers.

# %% [markdown]
# ## 2. The decomposed kernel
#
# `decompose` finds everything that the kernel leaves open, here for `sm_80`, the architecture of the A100. The result is a program
# in the same language. We look at some of its lines.

# %%
kernel = dense.decompose("sm_80")

def show(text, first, count):
    """Prints numbered lines of a text, from the first one that holds `first`."""
    lines = [f"{n:3} {line}" for n, line in enumerate(text.splitlines(), 1)]
    at = next(i for i, line in enumerate(lines) if first in line)
    print("\n".join(lines[at : at + count]))

show(kernel.text, "#grid:", 2)

# %% [markdown]
# The grid has 16 blocks, and each block has 128 threads. `#cta` are the threads of a block (a *cooperative thread array*).

# %%
show(kernel.text, "%row =", 2)
show(kernel.text, "Allocate %sA", 2)

# %% [markdown]
# - `%row` and `%column` are the parts of `%X` and `%W` that the block multiplies. `.tile([64,_])` cuts a tensor into tiles of 64
#   rows and all columns, `[i, 0]` picks one of them. `i` and `j` follow from the number of the block.
# - `%sA` and `%sB` lie in shared memory (`SH`): three buffers each, 2048 elements apart. Layouts are written as in CuTe, extents
#   before strides: in `(64,32):(32,1)` the next of 64 rows is 32 elements further, the next of 32 columns is 1 element further.
# - `swizzle=(2,4,3)` permutes each buffer, so that the accesses of a warp spread over all banks. In the byte address it XORs the 2
#   bits above the lowest 4 with the 2 bits that lie 3 places higher.

# %%
show(kernel.text, "Move (%row", 7)

# %% [markdown]
# - `Move` copies a tile into a buffer. The lines in its braces say how, and `loc=` says which line of the strategy they implement.
# - `.tv(..)` is a *thread-value layout*. It maps the number of a thread and the number of one of its values to an element of the
#   tile. Elements are counted down the columns: a step of 1 goes to the next row, and a step of 64 to the next column. Threads are
#   `(4,32):(512,1)`: in each of 32 rows four threads, 8 columns apart. Values are `(8,2):(64,32)`: a thread has 8 side by side, and
#   8 more 32 rows below.
# - In `%s_3[_, i_2]` the `_` stands for all 8 values side by side. `<<<#cta.scalar()>>>` says that each thread copies by itself.
# - `atom=` names the instruction. `cp.async` copies these 16 bytes from global to shared memory while the thread goes on.

# %%
show(kernel.text, "async.commit", 3)
show(kernel.text, "async.wait(2)", 8)

# %% [markdown]
# - `async.commit` puts the copies that a thread has started into a group. `async.wait(2)` waits until at most two groups are under
#   way, and `barrier` waits for all threads of the block. `decompose` has placed these lines. It has also proved that any two
#   accesses to one element are ordered if one of them writes.
# - `%rA_2` lies in registers (`RF`), with the thread-value layout of its tile. `.mine` are the 16 registers of one thread, which
#   `.reshape` divides into 2 times 8.
# - `#cta.tile([32])` are groups of 32 threads: each warp executes one `ldmatrix`, which loads 8 values for each of its threads.

# %%
show(kernel.text, "MatMul (%rA_2", 9)

# %% [markdown]
# The tensor core instruction `mma.m16n8k16` multiplies the registers of a warp, 2x4 times, and adds to `%acc`.

# %% [markdown]
# ## 3. Layouts, drawn
#
# Shared memory has 32 banks of 4 bytes. The upper part of the picture shows one access by a warp, each thread of which (a *lane*)
# accesses 16 bytes. The hardware serves it in four phases of eight lanes. A column is a bank, and a cell is the lane that uses it.
# A row is a *wavefront*: the hardware serves wavefronts one after the other. Without the swizzle (left) a phase takes four
# wavefronts; with it (right) it takes one. The lower part shows the lane (`L`) and the first bank (`b`) of each 16 bytes of the
# tile.

# %%
kernel.draw("%sA", banks=True)

# %% [markdown]
# The accumulator lies in registers. `T4 V1` is value 1 of thread 4, and a color is a thread. This is the order that `mma.m16n8k16`
# asks for; the picture leaves out what repeats.

# %%
kernel.draw("%acc")

# %% [markdown]
# ## 4. Why this instruction
#
# `explain` compares the instructions of the architecture with a statement of the program. Here: why this `ldmatrix`, and no other?

# %%
line = next(n for n, text in enumerate(kernel.text.splitlines(), 1) if "ldmatrix" in text)
print(kernel.explain(at=line, why="ldmatrix"))

# %% [markdown]
# `ldmatrix.x4.trans` has the right size, but it transposes: it brings element (1,0) to the place of element (0,1). (A *row* is an
# instruction in carbyne's table.) `f∘p⁻¹ = g∘q⁻¹` is the equation that an instruction has to satisfy: its layouts and those of the
# statement send each element of the source to the same element of the destination. The others load too few values for the
# destination, operand D. The cycles are estimates.

# %% [markdown]
# ## 5. A barrier is deleted
#
# At the end each block writes its tile to shared memory, and reads it back in another order, so that a thread stores 16 bytes at
# once. A barrier stands between. We delete its line, as an edit by hand could.

# %%
show(kernel.text, "Allocate %r_2", 3)
before, barrier, after = kernel.text.rpartition("    barrier\n")
wrong = carbyne.Program(before + after)

# %% [markdown]
# `check` proves the order of accesses without running the program. It finds the race, and says where a barrier is missing. T0801 is
# the code of this error; the command `carbyne explain T0801` says more about it.

# %%
try:
    wrong.check()
except carbyne.Error as error:
    race = error.diagnostics[0]
    print(error)

# %% [markdown]
# The simulator runs the program on the CPU, thread by thread. It finds the race, too, whichever access comes first in its run:

# %%
try:
    wrong.simulate()
except carbyne.Error as error:
    print(error)

# %% [markdown]
# ## 6. The fix
#
# The help of the first error is also an edit of the text. `mend` makes it, and `fmt` formats the text:

# %%
mended = carbyne.Program(race.mend(wrong.text))
show(mended.fmt(), "barrier(#cta)", 3)
pairs = mended.check()[0]["pairs"]
print(len(pairs), "pairs of accesses, all ordered")

# %% [markdown]
# Now the simulator finds nothing wrong. It compares the result with the meaning of the kernel, without rounding, so that one
# product too few would be an error:

# %%
report = mended.simulate(seed=0).kernels[0]
print(report["blocks"], "blocks,", report["multiply_adds"], "products")

# %% [markdown]
# ## 7. A call
#
# `jit("simulate")` makes a function of arrays that runs in the simulator: a unit test of a kernel needs no GPU. On a machine with a
# GPU, `dense.jit()` makes the same function for tensors of PyTorch, CuPy and JAX. In the printed signature, `[Y]` is a result: the
# call makes it, or you pass an array for it.

# %%
import numpy as np

f = dense.jit("simulate")
draw = np.random.default_rng(0).integers
x, w = draw(-2, 3, (256, 128)).astype(np.float16), draw(-2, 3, (128, 256)).astype(np.float16)
bias = draw(-2, 3, (1, 256)).astype(np.float32)
y = f(x, w, bias)
print(f, y.dtype, y.shape)
assert (y == np.maximum(x.astype(np.float32) @ w.astype(np.float32) + bias, 0)).all()

# %% [markdown]
# ## 8. CUDA C++
#
# `cuda` prints the kernel with a function of the host that launches it. Comments name the lines of the decomposed text: here is the
# barrier of chapter 5 again.

# %%
source = kernel.cuda("dense")
show(source, "__half r_2", 8)
print()
show(source, "cudaError_t dense_launch", 7)

# %% [markdown]
# ## 9. A test of a layout function
#
# You may have layout functions of your own. `carbyne.testing` asks them the laws of layout algebra, for operands that
# [Hypothesis](https://hypothesis.readthedocs.io) draws. A law is a property that the results of an operation must have. It is judged by counting through all
# coordinates.
#
# Here is a logical divide with a bug. It cuts a layout into tiles: the result has a mode (a dimension) for the elements of a tile,
# and one for the tiles. The *tiler* is the layout of one tile, and its `complement` is the layout of the places that it leaves out.
# All other operations of the class are carbyne's own.

# %%
from carbyne import Layout
from carbyne.testing import Carbyne, check
from hypothesis import settings

class Mine(Carbyne):
    def logical_divide(self, whole, tiler):
        rest = tiler.complement(whole.cosize())
        return whole.compose(Layout.make_layout(tiler, rest))

def test(library):
    print(check(library, only=["logical_divide"], settings=settings(derandomize=True, database=None)))

try:
    test(Mine())
except AssertionError as error:
    print(error)

# %% [markdown]
# Hypothesis has reduced the operands to small ones. The result has 3 coordinates, and the layout `2:2` has only 2 elements, at the
# indices 0 and 2. Its size is 2, but its cosize, one more than the last index, is 3. So the bug does not show for layouts without
# gaps. The complement must reach up to the size:

# %%
class Mended(Mine):
    def logical_divide(self, whole, tiler):
        rest = tiler.complement(whole.size())
        return whole.compose(Layout.make_layout(tiler, rest))

test(Mended())

# %% [markdown]
# ## Reading on
#
# - [python.md](../../docs/python.md): kernels with bodies of their own, calls on a GPU, operators of PyTorch
# - [language.md](../../docs/language.md): the language of the text
# - [strategies.md](../../docs/strategies.md): strategies, and how to write one
# - [simulator.md](../../docs/simulator.md) and [synchronization.md](../../docs/synchronization.md): what is found, and when
