"""Programs and their decompositions."""

from __future__ import annotations

import io
import json
import operator
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from . import _native, cache
from ._native import Function
from ._diagnostics import Diagnostic, diagnostics
from ._explained import Explanation
from ._nvrtc import find_nvrtc
from ._picture import Picture, pre
from ._torch import operator as torch_operator


#: The NumPy types of carbyne's types, as far as NumPy has them.
_TYPES = {
    "f64": "f8", "f32": "f4", "tf32": "f4", "f16": "f2", "bool": "?",
    "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u64": "u8", "u32": "u4", "u16": "u2", "u8": "u1",
}  # fmt: skip

#: Maximum number of bytes of a text.
_MAX_BYTES = 1 << 21


@dataclass(frozen=True)
class Progress:
    """The progress of a decomposition or of tuning."""

    #: The stage, such as `choosing`, `solving`, `proving`, `compiling` or `measuring`.
    stage: str
    #: The number of completed steps.
    done: int
    #: The number of all steps of the stage, if known.
    total: int | None
    #: The subject of the next step, such as a kernel; may be empty.
    subject: str


#: A function that receives the progress, at most twenty times a second and once at the end. True draws a bar on terminals.
Listener = Callable[[Progress], object] | bool | None


@dataclass(frozen=True)
class Tensor:
    """A tensor of the caller. A number has no extents."""

    #: The name without `%`.
    name: str
    #: The scalar type, such as `f16`.
    scalar: str
    #: The extents as strings: numbers, or expressions over the program's symbols.
    extents: tuple[str, ...]
    #: Whether a kernel writes the tensor.
    is_output: bool


class Run(Mapping[str, np.ndarray]):
    """Tensors after a simulation, by name: outputs and inputs. `kernels` contains the report.

    A tensor is missing if some of its elements are undefined, for example if only some blocks ran. Arrays of `bf16` contain its bits as
    `uint16`, arrays of 8-bit floats contain theirs as `uint8`.
    """

    #: The work of each kernel as in `carbyne simulate --message-format json`: blocks, differences, bank conflicts.
    kernels: list[dict[str, Any]]

    def __init__(self, outputs: Mapping[str, bytes], report: str) -> None:
        self._arrays = {name: _from_npy(data) for name, data in outputs.items()}
        self.kernels = json.loads(report)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {a.dtype}{list(a.shape)}" for name, a in self._arrays.items())
        return f"<Run {shapes}>"


class Program:
    """A well-formed text. A text that is not well formed raises an :class:`Error`.

    >>> import carbyne, numpy as np
    >>> double = carbyne.Program('''
    ... carbyne 2
    ... %A:[1024].f32.GL
    ... %B:[1024].f32.GL
    ... BinaryPointwise.add @double (%A, %A) -> (%B)
    ... ''')
    >>> double.kernels
    ['double']
    >>> run = double.simulate(A=np.arange(1024, dtype=np.float32))
    >>> run["B"][:4].tolist()
    [0.0, 2.0, 4.0, 6.0]
    """

    def __init__(self, text: str, path: str | PathLike[str] | None = None) -> None:
        """Parses a text. `path` is the file of the text; the text may import files from its folder and subfolders."""
        self._native = _native.Program(text, path)
        self._path = path

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Program:
        """Reads a file."""
        return cls(_read(path), path)

    @property
    def text(self) -> str:
        """The text as given."""
        return self._native.text

    @property
    def kernels(self) -> list[str]:
        """Names of kernels in the order of the text; empty for a kernel without a name."""
        return self._native.kernels

    @property
    def symbols(self) -> list[str]:
        """Names of sizes that are known at launch."""
        return self._native.symbols

    @property
    def tensors(self) -> list[Tensor]:
        """The caller's tensors, in the order of the text."""
        return [
            Tensor(t["name"], t["scalar"], tuple(t["extents"]), t["is_output"])
            for t in json.loads(self._native.tensors)
        ]

    def fmt(self) -> str:
        """The text in its canonical form, as `carbyne fmt` prints it."""
        return self._native.formatted()

    def check(self, arch: str | None = None) -> list[dict[str, Any]]:
        """Proves the order of accesses of kernels that name their instructions, for all sizes.

        Returns the pairs of accesses of each kernel and what orders them, as in `carbyne check --pairs --message-format json`. Without
        `arch`, the oldest architecture with all instructions is used. Accesses that are not ordered raise an :class:`Error`;
        :attr:`warnings` of the result are about undecided accesses.
        """
        pairs, warnings = self._native.check(arch)
        return Pairs(map(json.loads, pairs), diagnostics(warnings))

    def decompose(
        self,
        arch: str,
        *,
        forbid: str | Sequence[str] = (),
        strategies: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        top: int | None = None,
        budget: int | None = None,
        sms: int | None = None,
        exhaustive: bool = False,
        tuned: str | PathLike[str] | None = None,
        progress: Listener = None,
    ) -> Decomposed:
        """Finds layouts, instructions and synchronization for an architecture, and proves the order of accesses.

        >>> import carbyne
        >>> program = carbyne.Program("carbyne 2\\n%A:[64].f32.GL\\n%B:[64].f32.GL\\nMove @copy (%A) -> (%B)")
        >>> told = []
        >>> kernel = program.decompose("sm_80", progress=told.append)
        >>> told[-1].stage, told[-1].done, told[-1].total
        ('proving', 1, 1)

        :param arch: such as `sm_80`, `sm_90a`; :func:`architectures` lists all.
        :param forbid: names of instructions that must not be used; `*` matches any characters.
        :param strategies: files of strategies to use in addition to carbyne's own.
        :param top: the number of best solutions to keep.
        :param budget: the maximum number of nodes that a search examines.
        :param sms: multiprocessors of the GPU; default: those of the architecture's usual GPU.
        :param exhaustive: examines every solution.
        :param tuned: a database of :meth:`tune` with pins to use.
        :param progress: a function that receives a :class:`Progress` at most twenty times a second. An exception that it raises ends the work.
            True draws a bar on terminals.
        """
        how = _how(
            arch, forbid=forbid, strategies=strategies, top=top, budget=budget, sms=sms, exhaustive=exhaustive, tuned=tuned
        )
        return Decomposed(self, how, self._native.decompose(how, _listener(progress)))

    def explain(
        self,
        arch: str,
        *,
        at: int | None = None,
        why: str | None = None,
        all: bool = False,
        sms: int | None = None,
        strategies: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        progress: Listener = None,
    ) -> Explanation:
        """Explains which instructions were considered for the program, and why each was taken or not, as `carbyne explain` does.

        >>> import carbyne
        >>> program = carbyne.Program("carbyne 2\\n%A:[64].f32.GL\\n%B:[64].f32.GL\\nMove @copy (%A) -> (%B)")
        >>> found = program.explain("sm_80", at=4)
        >>> found["choices"][0]["chosen"]
        'ld.global.b64 x1'

        :param at: only statements on this line, or generated for it.
        :param why: only instructions whose names contain this text; `*` matches any characters.
        :param all: the text for people also contains all candidates.
        :param sms: multiprocessors of the GPU; default: those of the architecture's usual GPU.
        :param strategies: files of strategies to use in addition to carbyne's own.
        :param progress: as for :meth:`decompose`.
        """
        arguments = ["explain", "-", "--format", "json", "--arch", arch]
        arguments += _options(at=at, why=why, all=all, sms=sms, strategy=_files(strategies))
        return Explanation(self._native.command(arguments, _listener(progress)))

    def draw(
        self,
        tensor: str,
        *,
        line: int | None = None,
        tile: str | Sequence[str] = (),
        banks: bool = False,
        access: int | None = None,
        lanes: str | None = None,
        unit: str | None = None,
        whole: bool = False,
    ) -> Picture:
        """Draws a tensor (`%A`) or a thread tensor (`#warps`) of the program, as `carbyne draw` does. Notebooks display the picture.

        >>> import carbyne
        >>> picture = carbyne.Program("carbyne 2\\n%A:[4,8].f16.GL").draw("%A", tile="(2,4)")
        >>> picture.startswith("<svg")
        True

        :param line: the line that defines the tensor, if several tensors have the name.
        :param tile: outlines tiles: `(4,8)`, or a tiler per mode, `2:1,4:2`; several for tiles within tiles.
        :param banks: draws the banks of shared memory that an access of a warp touches.
        :param access: the number of bytes that each lane accesses for `banks`.
        :param lanes: the first element of each lane for `banks`: a layout from lanes to column-major indices of the tile.
        :param unit: the unit of offsets, `element` or `byte`.
        :param whole: draws a large picture completely, including repeated parts.
        """
        tiles = _texts("tile", tile)
        name = tensor if _text("tensor", tensor)[:1] in ("%", "#") else f"%{tensor}"
        arguments = ["draw", "-", "--format", "svg", f"--tensor={name}"]
        arguments += _options(line=line, tile=tiles, banks=banks, access=access, lanes=lanes, unit=unit, whole=whole)
        return Picture(self._native.command(arguments).replace("`--whole`", "`whole=True`"))

    def abi(self, arch: str | None = None) -> dict[str, Any]:
        """Tensors, parameters, grids and workspace for a launcher, as in `carbyne compile --emit abi`. The program must name its
        instructions. Without `arch`, the oldest architecture with all of them is used.

        >>> import carbyne
        >>> program = carbyne.Program("carbyne 2\\n%A:[64].f32.GL\\n%B:[64].f32.GL\\nMove @copy (%A) -> (%B)")
        >>> [k["kernel"] for k in program.decompose("sm_80").program.abi()["kernels"]]
        ['copy']
        """
        return json.loads(self._native.abi(arch))

    def tune(
        self,
        *,
        arch: str | None = None,
        gpu: int = 0,
        top: int | None = None,
        launches: int | None = None,
        symbols: Mapping[str, int] | None = None,
        seed: int | None = None,
        ints: int | None = None,
        compare: int | None = None,
        timeout: int | None = None,
        tuned: str | PathLike[str] | None = None,
        strategies: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
        progress: Listener = None,
    ) -> Tuned:
        """Finds the fastest strategies of the kernels by measuring on a GPU, as `carbyne tune` does.

        >>> import carbyne
        >>> program = carbyne.Program("carbyne 2\\n%A:[64].f32.GL\\n%B:[64].f32.GL\\nMove @copy (%A) -> (%B)")
        >>> try:
        ...     best = program.tune(progress=True).decomposed
        ... except carbyne.Error as error:
        ...     best = program.decompose("sm_80")  # There is no GPU.

        :param arch: the architecture; default: that of the GPU.
        :param gpu: the index of the GPU, as the driver counts.
        :param top: the number of strategy instances to try for each kernel.
        :param launches: the number of measured launches of each instance.
        :param symbols: values of sizes that are known at launch.
        :param seed: the seed of random inputs.
        :param ints: the seed of random integer inputs from -2 to 2.
        :param compare: the number of compared elements of each output; default: all.
        :param timeout: stops a kernel that takes longer than this number of seconds.
        :param tuned: a database to which the pins of the fastest candidates are written, for :meth:`decompose`.
        :param strategies: files of strategies to use in addition to carbyne's own.
        :param progress: as for :meth:`decompose`.
        """
        with tempfile.TemporaryDirectory(prefix="carbyne") as folder:
            figures, database = Path(folder, "figures.json"), Path(tuned or Path(folder, "carbyne.tuned"))
            arguments = ["tune", "-", "--device", "--json", str(figures), "--tuned", str(database)]
            sizes = [f"{name}={n}" for name, n in _sizes(symbols).items()]
            arguments += _options(
                arch=arch, gpu=gpu, top=top, launches=launches, sym=sizes, seed=seed, compare=compare, timeout=timeout,
                strategy=_files(strategies),
            )  # fmt: skip
            arguments += [] if ints is None else [f"--ints={_number('ints', ints)}"]
            text = self._native.command(arguments, _listener(progress))
            document = json.loads(figures.read_text(encoding="utf-8"))
            sms = _native.gpu(gpu)[2]
            best = self.decompose(document["arch"], tuned=database, sms=sms, strategies=strategies)
        return Tuned(text, document, best)

    def jit(
        self, device: str = "cuda", *, arch: str | None = None, sms: int | None = None, **options: Any
    ) -> Function:
        """The kernels as a function of tensors. The kernels are decomposed, compiled by NVRTC and loaded now, not at the first call.

        Decomposed programs and machine code are kept on disk: see :mod:`carbyne.cache`.

        >>> import carbyne, numpy as np
        >>> twice = carbyne.Program('''
        ... carbyne 2
        ... sym N where N >= 1
        ... %A:[N].f32.GL
        ... %B:[N].f32.GL
        ... BinaryPointwise.add @twice (%A, %A) -> (%B)
        ... ''').jit("simulate")
        >>> twice
        <Function f(A, [B]) on simulate>
        >>> twice(np.ones(3, np.float32))
        array([2., 2., 2.], dtype=float32)

        :param device: `cuda`, or `cuda:1` and so on; `simulate` for the simulator, which takes CPU tensors and finds races.
        :param arch: the architecture; default: that of the GPU, `sm_80` for the simulator.
        :param sms: the number of multiprocessors; default: that of the GPU.
        :param options: options of :meth:`decompose`. The cache keeps the decomposed program for these options.
        """
        if (number := _gpu(device)) is not None:
            name, own, multiprocessors = _native.gpu(number)
            if (arch := arch or own) is None:
                raise ValueError(f"no architecture is known whose code {name} runs")
            sms = sms or multiprocessors
        progress = _listener(options.pop("progress", None))
        how = _how(arch or "sm_80", sms=sms, **options)
        return Decomposed._cached(self, how, progress).jit(device)

    def as_op(
        self,
        name: str,
        *,
        backward: Callable[..., Any] | None = None,
        setup_context: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Any:
        """Registers the program as an operator of PyTorch, and returns it: `torch.ops.mine.norm` for the name `mine::norm`.

        `torch.compile`, `torch.export` and CUDA graphs treat it as one operator; shapes of results follow from symbols. It takes the arguments of
        :meth:`jit` in their order and returns the results. On CPU tensors it runs in the simulator. Tensors that kernels update in place are
        arguments that the operator mutates.

        :param backward: a function of `ctx` and the gradients of the results that returns gradients of the arguments, as for
            `torch.library.register_autograd`.
        :param setup_context: saves data of the forward pass; by default, `ctx.saved_tensors` contains all arguments.
        :param options: options of :meth:`jit`.
        """
        return torch_operator(self, name, backward, setup_context, options)

    def simulate(
        self,
        arrays: Mapping[str, Any] | None = None,
        /,
        *,
        arch: str | None = None,
        symbols: Mapping[str, int] | None = None,
        blocks: int | None = None,
        schedule: int | None = None,
        seed: int = 0,
        budget: int | None = None,
        **named: Any,
    ) -> Run:
        """Executes the program on the CPU, and compares its outputs with its meaning.

        A kernel whose body is open (D0305) is decomposed first: see :meth:`Decomposed.simulate`.

        Arrays are given by the names of tensors, in a mapping or as keywords; other tensors are random with this `seed`. A race, a read
        of undefined elements, or a difference that rounding does not explain raises an :class:`Error`.

        :param symbols: values of sizes that are known at launch.
        :param blocks: the number of blocks of each kernel to run, at least one; default: all.
        :param schedule: the seed of a random order of warps and asynchronous copies.
        :param budget: the maximum number of steps of a kernel, below 2^31; a step takes about eight nanoseconds.
        """
        given = dict(arrays or {})
        if twice := given.keys() & named.keys():
            raise TypeError(f"`%{min(twice)}` is given twice")
        given.update(named)
        tensors = {tensor.name: tensor for tensor in self.tensors}
        data = {name: _to_npy(name, array, tensors.get(name)) for name, array in given.items()}
        sizes = _sizes(symbols)
        if unknown := sizes.keys() - set(self.symbols):
            known = ", ".join(self.symbols) or "none"
            raise ValueError(f"the program has no symbol `{min(unknown)}`; its symbols: {known}")
        numbers = (
            _count("blocks", blocks, 1),
            _count("schedule", schedule, 0),
            _count("seed", seed, 0),
            _count("budget", budget, 0),
        )
        return Run(*self._native.simulate(arch, data, sizes, *numbers))

    def __eq__(self, other: object) -> bool:
        """Programs are equal if their texts and all imports are equal."""
        return isinstance(other, Program) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple[str, str]:
        return self.text, self._native.linked

    def __reduce__(self) -> tuple[object, ...]:
        return Program, (self.text, self._path)

    def __deepcopy__(self, memo: object) -> Program:
        return self  # The object is immutable.

    def __repr__(self) -> str:
        return f"<Program of {', '.join(f'@{k}' for k in self.kernels) or 'no kernel'}>"

    def _repr_html_(self) -> str:
        return pre(self.text)


class Pairs(list):  # type: ignore[type-arg]
    """Pairs of accesses of each kernel."""

    #: Warnings about accesses that could not be decided.
    warnings: tuple[Diagnostic, ...]

    def __init__(self, pairs: Iterator[dict[str, Any]], warnings: tuple[Diagnostic, ...]) -> None:
        super().__init__(pairs)
        self.warnings = warnings


@dataclass(frozen=True)
class Tuned:
    """The measurements of :meth:`Program.tune`."""

    #: The measurements as text.
    text: str
    #: The measurements as in `carbyne tune --json`: the GPU, and the candidates of each kernel, best first.
    figures: dict[str, Any]
    #: The program, decomposed with the fastest candidate of each kernel.
    decomposed: Decomposed

    def __str__(self) -> str:
        return self.text


class Decomposed:
    """A program in which every statement names its instruction. The order of accesses is proved.

    A pickle contains the text, which is parsed and checked again.

    >>> import carbyne, pickle
    >>> program = carbyne.Program("carbyne 2\\n%A:[64].f32.GL\\n%B:[64].f32.GL\\nMove @copy (%A) -> (%B)")
    >>> kernel = program.decompose("sm_80")
    >>> pickle.loads(pickle.dumps(kernel)) == kernel
    True
    """

    def __init__(self, source: Program, how: _How, found: _native.Decomposed) -> None:
        self._source = source
        self._how = how
        self._native = found

    @classmethod
    def _cached(cls, source: Program, how: _How, progress: Any) -> Decomposed:
        """Takes the decomposition from the cache, or decomposes the program and stores the result there."""
        parts = ("decomposed", _native.fingerprint(how[0]), how, *source._identity)
        entry = cache.Entry(parts, ".json")
        if (data := entry.read()) is not None:
            try:
                text, warnings = json.loads(data)
                diagnostics(warnings)
                found = source._native.restored(how, text, warnings)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
                found = None
            if found is not None:
                return cls(source, how, found)
        found = source._native.decompose(how, progress)
        entry.write(json.dumps([found.text, found.warnings]).encode())
        return cls(source, how, found)

    @classmethod
    def _restored(cls, source: Program, how: _How, text: str, warnings: str) -> Decomposed:
        """Restores a pickled decomposition."""
        found = source._native.restored(how, text, warnings)
        if found is None:
            raise ValueError("the pickled text is not a decomposition of the program by this version of carbyne")
        return cls(source, how, found)

    def __reduce__(self) -> tuple[object, ...]:
        return Decomposed._restored, (self._source, self._how, self.text, self._native.warnings)

    def __eq__(self, other: object) -> bool:
        """Equal texts for one architecture are equal."""
        return isinstance(other, Decomposed) and (self.arch, self.text) == (other.arch, other.text)

    def __hash__(self) -> int:
        return hash((self.arch, self.text))

    @property
    def text(self) -> str:
        """The decomposed program as text, which you can edit and parse again with :class:`Program`."""
        return self._native.text

    @property
    def arch(self) -> str:
        """The target architecture."""
        return self._native.arch

    @property
    def kernels(self) -> list[str]:
        """Names of kernels in launch order."""
        return self._native.kernels

    @cached_property
    def document(self) -> dict[str, Any]:
        """The choices and their certificates, as in `carbyne decompose --emit json`.

        A program from the cache or from a pickle is decomposed once more for this.
        """
        found = self._native
        if found.is_restored:
            found = self._source._native.decompose(self._how)
        return json.loads(found.document())

    @property
    def certificates(self) -> list[dict[str, Any]]:
        """The instruction of each operation, and the relation of layouts that proves it."""
        return self.document["certificates"]

    @property
    def choices(self) -> list[dict[str, Any]]:
        """The choice for each operation, with its line in the program.

        >>> import carbyne
        >>> program = carbyne.Program("carbyne 2\\n%A:[64].f32.GL\\n%B:[64].f32.GL\\nMove @copy (%A) -> (%B)")
        >>> kernel = program.decompose("sm_80")
        >>> kernel.choices[0]["line"], kernel.estimates["cycles"] > 0, kernel.order[0]["kernel"]
        (4, True, 'copy')
        """
        return self._best.get("choices", [])

    @property
    def estimates(self) -> dict[str, Any]:
        """The estimated cycles of all kernels together, registers per thread, bytes of shared memory per block, and blocks per
        multiprocessor."""
        return {key: value for key, value in self._best.items() if key != "choices"}

    @property
    def _best(self) -> dict[str, Any]:
        solutions = self.document["solutions"]
        return solutions[0] if solutions else {}

    @property
    def order(self) -> list[dict[str, Any]]:
        """The pairs of dependent accesses of each kernel, and the proofs of their order: see :meth:`Program.check`."""
        return self.document["synchronization"]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Possible problems, with places in the source text."""
        return diagnostics(self._native.warnings)

    @cached_property
    def program(self) -> Program:
        """The decomposed text as a program."""
        return Program(self.text)

    def explain(self, **options: Any) -> Explanation:
        """Explains which instructions were considered for the decomposed text, and why each matches or not: see :meth:`Program.explain`.

        >>> import carbyne
        >>> program = carbyne.Program("carbyne 2\\n%A:[64].f32.GL\\n%B:[64].f32.GL\\nMove @copy (%A) -> (%B)")
        >>> found = program.decompose("sm_80").explain()
        >>> all(leaf["atom"] in str(found) for leaf in found["leaves"])
        True
        """
        return self.program.explain(self.arch, **options)

    def draw(self, tensor: str, **options: Any) -> Picture:
        """Draws a tensor or a thread tensor of the decomposed text: see :meth:`Program.draw`.

        >>> import carbyne
        >>> program = carbyne.Program("carbyne 2\\n%A:[64].f32.GL\\n%B:[64].f32.GL\\nMove @copy (%A) -> (%B)")
        >>> program.decompose("sm_80").draw("%A").startswith("<svg")
        True
        """
        return self.program.draw(tensor, **options)

    def cuda(self, name: str = "carbyne", *, tvm_ffi: bool = False) -> str:
        """A CUDA C++ file for nvcc or NVRTC: all kernels, and host functions.

        `{name}_launch` launches the kernels in order, `{name}_workspace_bytes` returns the size of its workspace.

        :param tvm_ffi: adds a function of tvm-ffi, `__tvm_ffi_{name}`, which checks tensors and launches the kernels on them.
        """
        return self._native.cuda(name, tvm_ffi)

    def abi(self) -> dict[str, Any]:
        """Tensors, parameters, grids and workspace for a launcher, as in `carbyne compile --emit abi`."""
        return json.loads(self._native.abi())

    def compile(self, emit: str = "cubin", *, lines: str | PathLike[str] | None = None) -> bytes:
        """Compiles the kernels by NVRTC, to `cubin` or `ptx`.

        :param lines: names a file that holds the text: profilers and debuggers then show its lines.

        NVRTC is searched in the path `CARBYNE_NVRTC`, in NVIDIA's Python packages, and in CUDA toolkits.
        """
        if emit not in ("cubin", "ptx"):
            raise ValueError(f"emit is `cubin` or `ptx`, not {emit!r}")
        find_nvrtc()
        return self._native.compile(emit, None if lines is None else os.fspath(lines))

    def jit(self, device: str = "cuda") -> Function:
        """The kernels as a function of tensors: see :meth:`Program.jit`."""
        number = _gpu(device)
        if number is None:
            return self._native.function(self, None)
        find_nvrtc()
        version = _native.nvrtc_version()
        entry = cache.Entry((self.arch, version, self._native.source()), ".cubin")
        # Profilers show lines of this file.
        kept = entry.keep_text(self.text)
        code = entry.fetch(lambda: self._native.compile("cubin", str(kept or "decomposed.cby")))
        return self._native.function(self, (code, number))

    def simulate(self, arrays: Mapping[str, Any] | None = None, /, **options: Any) -> Run:
        """Executes the decomposed program: see :meth:`Program.simulate`."""
        return self.program.simulate(arrays, arch=self.arch, **options)

    def __deepcopy__(self, memo: object) -> Decomposed:
        return self  # The object is immutable.

    def __repr__(self) -> str:
        return f"<Decomposed {', '.join(f'@{k}' for k in self.kernels)} for {self.arch}>"

    def _repr_html_(self) -> str:
        return pre(self.text)


#: The checked arguments of :meth:`Program.decompose`, with the texts of their files.
_How = tuple[str, list[str], list[tuple[str, str]], int | None, int | None, int | None, bool, str | None]


def _how(
    arch: Any,
    *,
    forbid: Any = (),
    strategies: Any = (),
    top: Any = None,
    budget: Any = None,
    sms: Any = None,
    exhaustive: Any = False,
    tuned: Any = None,
    **unknown: Any,
) -> _How:
    for name in unknown:
        raise TypeError(f"there is no option `{name}`; there are forbid, strategies, top, budget, sms, exhaustive, tuned and progress")
    if not isinstance(exhaustive, (bool, np.bool_)):
        raise TypeError(f"`exhaustive` is neither True nor False: {exhaustive!r}")
    texts = [(path, _read(path)) for path in _files(strategies)]
    numbers = (_count("top", top, 1), _count("budget", budget, 0), _count("sms", sms, 1))
    pins = None if tuned is None else _read(tuned)
    return _text("arch", arch), _texts("forbid", forbid), texts, *numbers, bool(exhaustive), pins


def _files(given: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str]:
    return list(map(os.fsdecode, [given] if isinstance(given, (str, bytes, PathLike)) else given))


def _options(**given: Any) -> list[str]:
    """Converts keywords to command-line options."""
    out = []
    for name, value in given.items():
        if value is True:
            out.append(f"--{name}")
        elif value is not None and value is not False:
            out += [f"--{name}={one}" for one in (value if isinstance(value, list) else [value])]
    return out


def _listener(progress: Listener) -> Callable[..., object] | bool | None:
    """Wraps the function for calls from the Rust part."""
    if not callable(progress):
        return progress
    return lambda *fields: progress(Progress(*fields))


def _gpu(device: str) -> int | None:
    """The index of a GPU; None for the simulator."""
    if device == "simulate":
        return None
    if found := re.fullmatch(r"cuda(?::(\d{1,9}))?", str(device)):
        return int(found[1] or 0)
    raise ValueError(f"device is `cuda`, `cuda:NUMBER` or `simulate`, not {device!r}")


def _read(path: str | PathLike[str]) -> str:
    """The text of a file. If the text is too long, only as much as is needed to refuse it."""
    with open(os.fspath(path), "rb") as file:
        return file.read(_MAX_BYTES + 1).decode()


def _text(argument: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"`{argument}` must be a string, not {value!r}")
    return value


def _texts(argument: str, given: Any) -> list[str]:
    """One text, or several."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"`{argument}` must be a string or a list of strings, not {given!r}")
    return [_text(f"{argument}[{i}]", value) for i, value in enumerate(given)]


def _sizes(symbols: Any) -> dict[str, int]:
    """Values of sizes that are known at launch."""
    if symbols is None:
        return {}
    if not isinstance(symbols, Mapping):
        raise TypeError(f"`symbols` must be a mapping of names to integers, not {symbols!r}")
    return {name: _number(f"symbols[{name!r}]", value) for name, value in symbols.items()}


def _number(name: str, value: Any) -> int:
    """A number of 64 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` must be an integer, not {value!r}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"`{name}` does not fit 64 bits: {number}")
    return number


def _count(name: str, value: Any, least: int) -> int | None:
    """An optional number."""
    if value is None:
        return None
    number = _number(name, value)
    if not least <= number < 1 << 31:
        raise ValueError(f"`{name}` is {number}, but must be from {least} to {(1 << 31) - 1}")
    return number


def _to_npy(name: str, array: Any, tensor: Tensor | None) -> bytes:
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"`%{name}`: a masked array has elements without values")
    # A Python number has no type of its own.
    has_type = tensor is None or isinstance(array, np.generic) or not isinstance(array, (int, float))
    data = np.asarray(array, dtype=None if has_type else _TYPES.get(tensor.scalar))
    if data.dtype.hasobject or data.dtype.kind in "SU" or data.dtype.fields:
        raise TypeError(f"`%{name}`: an array of {data.dtype} holds no numbers")
    # Do not copy an array that does not fit.
    extents = tensor.extents if tensor is not None else ()
    if tensor is None or (
        all(e.isdecimal() for e in extents) and data.shape != tuple(map(int, extents))
    ):
        what = f"has the extents {list(map(int, extents))}" if tensor else "is no tensor of the program"
        raise ValueError(f"`%{name}` {what}, the array has the shape {data.shape}")
    # Types that NumPy does not define, such as ml_dtypes.bfloat16, are passed as their bits.
    if data.dtype.kind == "V" and data.dtype.itemsize in (1, 2):
        data = data.view(np.uint8 if data.dtype.itemsize == 1 else np.uint16)
    out = io.BytesIO()
    np.save(out, data.astype(data.dtype.newbyteorder("<"), copy=False), allow_pickle=False)
    return out.getvalue()


def _from_npy(data: bytes) -> np.ndarray:
    return np.load(io.BytesIO(data), allow_pickle=False)
