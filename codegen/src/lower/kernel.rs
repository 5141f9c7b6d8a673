//! Prints a whole kernel function: parameters, head comment, helper functions and body, with the
//! data that a launcher needs. [`print_kernel`] and similar functions are the entry points of the
//! crate: they print one kernel, several kernels as one file, host functions with them, or clocks
//! around a loop.

use super::cuda_kernel::{CudaKernel, Param, Parts};
use super::helper::Helper;
use super::host::{self, Host};
use super::state::{Bases, Lowering};
use super::stmts::{NOT_UNROLLED, line_comment};
use crate::cpp::ast::{Binary, Expr, Item, Kernel, Piece, Pointer, Stmt, StmtKind, Type, Word};
use crate::cpp::{fuse, lines, print, prune};
use crate::index::Indices;
use crate::namer::Namer;
use crate::{Fallible, errors};
use carbyne_atoms::smem::{self, Arena};
use carbyne_atoms::tensor_map::describe;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::ast::SyncOp;
use carbyne_ir::diag::{Code, Diagnostics};
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::{self, BufferId, Exec, MapId, Program, SpecId};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The parameters as C++ declares them, and as a launcher passes them.
type Signature = (Vec<(Type, Word)>, Vec<Param>);

/// The alignment of dynamic shared memory. The driver reserves this number of bytes before it,
/// whatever alignment a declaration requests. If a declaration promised more, the compiler would
/// replace additions to addresses by ORs, which lose carries. No instruction needs more, since
/// swizzles apply to indices.
const SHARED_ALIGN: i64 = 1024;

/// Prints one kernel of a decomposed program. With `lines`, the name of the program's text, the
/// file has `#line` directives, so that profilers and debuggers show lines of the program.
///
/// # Errors
/// D0305 if a spec is neither decomposed nor an atom, D0302 if an atom does not fit, X0004 if the
/// kernel exceeds the shared memory of the architecture, C0401 for anything that cannot be printed.
/// Collects up to [`carbyne_ir::limits::MAX_ERRORS`] errors.
pub fn print_kernel(
    program: &Program,
    kernel: SpecId,
    atoms: &AtomTable,
    lines: Option<&str>,
) -> Result<CudaKernel, Diagnostics> {
    let mut parts = lowered(program, kernel, atoms, &mut Namer::of_kernels(), false)?;
    parts.kernel.source = file(std::slice::from_ref(&parts), None, lines);
    Ok(parts.kernel)
}

/// Prints kernels of several programs as one file, so that they are compiled together. Headers and
/// helper functions are printed once. Kernels with equal names are numbered. `lines` as in
/// [`print_kernel`].
///
/// # Errors
/// As [`print_kernel`], for the first program with errors.
pub fn print_kernels(
    kernels: &[(&Program, SpecId)],
    atoms: &AtomTable,
    lines: Option<&str>,
) -> Result<(String, Vec<CudaKernel>), Diagnostics> {
    let parts = all_lowered(kernels, atoms, false)?;
    Ok((file(&parts, None, lines), parts.into_iter().map(|p| p.kernel).collect()))
}

/// Prints kernels of one program as a file for nvcc: the output of [`print_kernels`], a host
/// function that launches the kernels in order, and one that returns the size of the workspace.
/// NVRTC compiles the same file without the host functions.
///
/// # Errors
/// As [`print_kernel`].
pub fn print_program(
    program: &Program,
    kernels: &[SpecId],
    atoms: &AtomTable,
    host: Host<'_>,
) -> Result<(String, Vec<CudaKernel>), Diagnostics> {
    with_host(program, kernels, atoms, host, false)
}

/// Prints the output of [`print_program`] and `__tvm_ffi_NAME`, a function of
/// [tvm-ffi](https://tvm.apache.org/ffi/) that checks tensors and launches the kernels on them. The
/// file needs the headers of the package `apache-tvm-ffi`.
///
/// # Errors
/// As [`print_kernel`].
pub fn print_tvm_ffi(
    program: &Program,
    kernels: &[SpecId],
    atoms: &AtomTable,
    host: Host<'_>,
) -> Result<(String, Vec<CudaKernel>), Diagnostics> {
    with_host(program, kernels, atoms, host, true)
}

fn with_host(
    program: &Program,
    kernels: &[SpecId],
    atoms: &AtomTable,
    host: Host<'_>,
    for_tvm_ffi: bool,
) -> Result<(String, Vec<CudaKernel>), Diagnostics> {
    let kernels: Vec<(&Program, SpecId)> = kernels.iter().map(|id| (program, *id)).collect();
    let parts = all_lowered(&kernels, atoms, false)?;
    let lines = host.lines;
    let host = host::items(program, &parts, host, for_tvm_ffi)?;
    Ok((file(&parts, Some(host), lines), parts.into_iter().map(|p| p.kernel).collect()))
}

/// Prints the output of [`print_kernels`] with clocks. Each warp reads `clock64` before and after
/// the first `nounroll` loop at the top level of its kernel. Its first lane writes both times to
/// the kernel's last output, i64 of \[blocks, warps, 2\], which the program itself does not write.
/// A kernel without such a loop has no clocks.
///
/// # Errors
/// As [`print_kernel`].
pub fn print_clocked(
    kernels: &[(&Program, SpecId)],
    atoms: &AtomTable,
) -> Result<(String, Vec<CudaKernel>), Diagnostics> {
    let parts = all_lowered(kernels, atoms, true)?;
    Ok((file(&parts, None, None), parts.into_iter().map(|p| p.kernel).collect()))
}

/// The file of some kernels, followed by host functions. The head comment of a single kernel comes
/// first. With `lines`, the name of the program's text, `#line` directives name its lines.
fn file(kernels: &[Parts], host: Option<Vec<Item>>, lines: Option<&str>) -> String {
    let headers: BTreeSet<&'static str> = kernels.iter().flat_map(|k| k.headers.clone()).collect();
    let helpers: BTreeSet<Helper> = kernels.iter().flat_map(|k| k.helpers.clone()).collect();
    let mut items = vec![];
    if let [only] = kernels {
        items.push(only.head.clone());
    }
    if host.is_some() {
        items.push(host::headers(kernels));
    }
    if !headers.is_empty() {
        items.push(Item::Includes(headers.into_iter().collect()));
    }
    items.extend(helpers.into_iter().map(|h| Item::Helper(h.text())));
    for kernel in kernels {
        if kernels.len() > 1 {
            items.push(kernel.head.clone());
        }
        items.push(kernel.function.clone());
    }
    if let Some(name) = lines {
        lines::put(&mut items, name);
    }
    items.extend(host.into_iter().flatten());
    print::file(&items)
}

fn all_lowered(
    kernels: &[(&Program, SpecId)],
    atoms: &AtomTable,
    clocked: bool,
) -> Result<Vec<Parts>, Diagnostics> {
    let mut names = Namer::of_kernels();
    kernels.iter().map(|(p, id)| lowered(p, *id, atoms, &mut names, clocked)).collect()
}

/// Lowers a kernel. `names` are the names of the kernels in the file.
fn lowered(
    program: &Program,
    kernel: SpecId,
    atoms: &AtomTable,
    names: &mut Namer,
    clocked: bool,
) -> Result<Parts, Diagnostics> {
    let mut lowering = Lowering {
        p: program,
        atoms,
        namer: Namer::default(),
        indices: Indices::new(&program.arena),
        definitions: Indices::new(&program.arena),
        uniform: HashSet::new(),
        diverged: 0,
        buffers: HashMap::new(),
        asynchronous: HashSet::new(),
        in_flight: vec![],
        advances: vec![],
        outers: vec![],
        coordinates: HashMap::new(),
        written_once: HashSet::new(),
        bases: Bases::default(),
        maps: HashMap::new(),
        arena: Arena::default(),
        barriers: vec![],
        headers: BTreeSet::new(),
        helpers: BTreeSet::new(),
        errors: Diagnostics::default(),
    };
    let printed = lowering.kernel(kernel, names, clocked);
    match printed {
        Ok(printed) if lowering.errors.is_empty() => return Ok(printed),
        Ok(_) => {}
        Err(d) => lowering.errors.push(*errors::with_span(program.specs[kernel].span)(d)),
    }
    Err(lowering.errors.into_iter().map(|d| program.noted(d)).collect())
}

/// The body of a kernel function.
#[cfg(test)]
pub(super) fn body_of(
    program: &Program,
    kernel: SpecId,
    atoms: &AtomTable,
) -> Result<Vec<Stmt>, Diagnostics> {
    match lowered(program, kernel, atoms, &mut Namer::default(), false)?.function {
        Item::Kernel(kernel) => Ok(kernel.body),
        _ => Ok(vec![]),
    }
}

impl Lowering<'_> {
    fn kernel(&mut self, id: SpecId, names: &mut Namer, clocked: bool) -> Fallible<Parts> {
        let spec = &self.p.specs[id];
        let Some(exec) = spec.exec else {
            return Err(errors::new(
                Code::NotDecomposed,
                spec.span,
                format!("the kernel {} is not configured", spec.kind),
                "write `<<<#grid, #block>>>`, or decompose the program first",
            ));
        };
        // Names inside of the kernel may hide its own name.
        let name = spec.name.as_deref().unwrap_or("carbyne_kernel");
        let name = names.admit(name, "kernel");
        let (grid, block) = self.extents(exec)?;
        let cluster = self.cluster(id)?;
        let mut content = Content::of(self.p, id);
        let clocks = spec.outputs.last().filter(|_| clocked).map(|t| self.p.tensors[*t].buffer);
        content.written.extend(clocks);
        self.asynchronous =
            content.leaves.iter().flat_map(|leaf| self.asynchronous_of(*leaf)).collect();
        self.uniform = self.uniform_in_warps(&content.leaves, id);
        let mut writers: HashMap<BufferId, usize> = HashMap::new();
        let outputs = content.leaves.iter().flat_map(|leaf| &self.p.specs[*leaf].outputs);
        outputs.for_each(|t| *writers.entry(self.p.tensors[*t].buffer).or_default() += 1);
        self.written_once = writers.into_iter().filter(|(_, n)| *n == 1).map(|(b, _)| b).collect();
        self.arena = Arena::place(self.p, &smem::buffers(self.p, id), self.atoms)?;
        let (signature, params) = self.params(id, &content)?;
        let mut body = self.prologue(exec);
        let executors = self.executors(exec);
        let inner = match &spec.body {
            Some(stmts) => self.stmts(stmts, &executors),
            None => vec![self.leaf(id)?],
        };
        body.extend(inner);
        if let Some(buffer) = clocks {
            self.clock(&mut body, buffer, block);
        }
        prune::prune(&mut body);
        // In kernels with products, accumulators take most registers, in the order of their atoms.
        if !content.leaves.iter().any(|s| self.p.specs[*s].kind.is_product()) {
            fuse::fuse(&mut body);
        }
        if self.indices.floors || self.definitions.floors {
            self.helpers.insert(Helper::FloorDivision);
        }
        if self.indices.calls || self.definitions.calls {
            self.no_factor(&content.leaves)?;
        }
        let head = self.head(id, &name, grid, block);
        let function = Item::Kernel(Kernel {
            name: name.clone().into(),
            threads: block,
            alone: content.moves_registers,
            cluster: (cluster > 1).then_some(cluster),
            params: signature,
            shared_align: (self.arena.bytes > 0).then_some(self.arena.align.min(SHARED_ALIGN)),
            body,
        });
        let (source, smem_bytes) = (String::new(), self.arena.bytes);
        let spec = self.p.specs[id].name.clone();
        Ok(Parts {
            kernel: CudaKernel { name, spec, source, smem_bytes, grid, block, cluster, params },
            head: Item::Comment(head),
            function,
            headers: self.headers.clone(),
            helpers: self.helpers.clone(),
        })
    }

    /// Rejects leaves that keep a factor in registers, which a call would overwrite.
    fn no_factor(&self, leaves: &[SpecId]) -> Fallible<()> {
        for &id in leaves {
            let spec = &self.p.specs[id];
            let atom = spec.atom.as_deref().and_then(|name| self.atoms.get(name));
            let Some(atom) = atom.filter(|atom| atom.keeps_factor()) else { continue };
            return Err(errors::new(
                Code::Calls,
                spec.span,
                format!(
                    "a 64-bit division of an index would be a function call, which `{}` with its \
                     first factor in registers does not allow",
                    atom.name
                ),
                "bound symbols, `where N <= 1048576`, so that indices have 32 bits, or move \
                 the first factor of the MatMul to shared memory",
            ));
        }
        Ok(())
    }

    /// The number of blocks of a cluster.
    fn cluster(&self, id: SpecId) -> Fallible<i64> {
        let most = carbyne_atoms::limits(self.atoms.arch).max_cluster;
        let refuse = |message: String, help: String| {
            Err(errors::new(Code::NoCluster, self.p.specs[id].span, message, &help))
        };
        let arch = self.atoms.arch;
        match self.p.cluster_size(id) {
            Some(n) if (1..=most).contains(&n) => Ok(n),
            Some(_) if most == 1 => {
                let has = |a: &&Arch| carbyne_atoms::limits(**a).max_cluster > 1;
                let archs: Vec<String> =
                    Arch::ALL.iter().filter(has).map(|a| format!("`{a}`")).collect();
                refuse(
                    format!("{arch} has no clusters of blocks"),
                    format!("compile for {}, or use a block tensor of one level", archs.join(", ")),
                )
            }
            Some(n) => refuse(
                format!("{arch} has no clusters of {n} blocks"),
                format!("form clusters of at most {most} blocks"),
            ),
            None => refuse(
                "the size of a cluster must be known".to_owned(),
                "give the innermost level of the block tensor constant extents".to_owned(),
            ),
        }
    }

    /// Reads the clock around the first loop that is not unrolled.
    fn clock(&mut self, body: &mut Vec<Stmt>, buffer: BufferId, block: i64) {
        let is_loop =
            |s: &Stmt| matches!(&s.kind, StmtKind::For(f) if f.pragma == Some(NOT_UNROLLED));
        let Some(at) = body.iter().position(is_loop) else { return };
        let Some(to) = self.buffers.get(&buffer).map(|b| Expr::name(b.name.clone())) else {
            return;
        };
        let names = ["began", "ended", "warp"].map(|n| self.namer.admit(n, "t"));
        let [began, ended, warp] = names.clone().map(Expr::name);
        let now = || Expr::call("clock64", []);
        let thread = || Expr::name("threadIdx.x");
        let lane = thread().binary(Binary::Rem, Expr::Int(32));
        let per_block = Expr::Int((block + 31) / 32);
        let index = Expr::name("blockIdx.x").binary(Binary::Mul, per_block);
        let index = index.binary(Binary::Add, thread().binary(Binary::Div, Expr::Int(32)));
        let two = |i: i64| {
            warp.clone().binary(Binary::Mul, Expr::Int(2)).binary(Binary::Add, Expr::Int(i))
        };
        let store = |i: i64, value: Expr| {
            let to = Piece::Operand(to.clone().at(two(i)));
            let pieces = vec![to, Piece::Text(" = "), Piece::Operand(value), Piece::Text(";")];
            Stmt::new(StmtKind::Filled(pieces))
        };
        let then = vec![store(0, began), store(1, ended)];
        let cond = lane.binary(Binary::Eq, Expr::Int(0));
        let otherwise = vec![];
        let after = [
            Stmt::constant("long long", names[1].clone(), now()),
            Stmt::constant("int", names[2].clone(), index),
            Stmt::new(StmtKind::If { cond, then, otherwise }),
        ];
        body.splice(at + 1..at + 1, after);
        body.insert(at, Stmt::constant("long long", names[0].clone(), now()));
    }

    /// The number of blocks of the grid, and of threads of a block.
    fn extents(&self, exec: Exec) -> Fallible<(Dim, i64)> {
        let size = |t| self.p.threads[t].concat().size_in(&self.p.arena).map_err(errors::layout);
        let grid = size(exec.blocks)?;
        match size(exec.threads)?.as_const() {
            Some(n) if (1..=MAX_BLOCK_THREADS).contains(&n) => Ok((grid, n)),
            _ => Err(errors::new(
                Code::Symbolic,
                self.p.threads[exec.threads].span,
                format!(
                    "a block must have a constant number of threads, from 1 to {MAX_BLOCK_THREADS}"
                ),
                "give the thread tensor constant extents",
            )),
        }
    }

    /// The parameters: pointers and numbers in text order, then symbols, then tensor maps in text
    /// order.
    fn params(&mut self, id: SpecId, content: &Content) -> Fallible<Signature> {
        let spec = &self.p.specs[id];
        let operands: HashSet<BufferId> = spec
            .input_tensors()
            .chain(spec.outputs.iter().copied())
            .map(|t| self.p.tensors[t].buffer)
            .collect();
        let (mut signature, mut params) = (vec![], vec![]);
        for &buffer in self.p.params.iter().filter(|b| operands.contains(b)) {
            let written = content.written.contains(&buffer);
            let stored = self.parameter(buffer, written)?;
            if stored.memory.is_number() {
                signature.push((Type::constant(stored.storage.cxx), stored.name.clone().into()));
                let (name, scalar) = (stored.name.clone(), stored.scalar);
                params.push(Param::Scalar { name, buffer, scalar });
                self.buffers.insert(buffer, stored);
                continue;
            }
            let ty = Type {
                name: stored.storage.cxx.into(),
                is_const: !written,
                pointer: Pointer::Restrict,
            };
            signature.push((ty, stored.name.clone().into()));
            let (name, scalar) = (stored.name.clone(), stored.scalar);
            params.push(Param::Pointer { name, buffer, scalar, written });
            self.buffers.insert(buffer, stored);
        }
        for &var in &self.p.symbols {
            let info = self.p.arena.var_info(var);
            let wide = info.hi.is_none_or(|hi| i32::try_from(hi).is_err());
            let name = self.namer.admit(&info.name, "n");
            self.bind(var, &name, wide);
            signature.push((Type::constant(Indices::type_of(wide)), name.clone().into()));
            params.push(Param::Symbol { name, var, wide });
        }
        for &id in &content.maps {
            let map = &self.p.maps[id];
            let description = describe(self.p, map).map_err(|no| {
                errors::new(
                    Code::AtomMismatch,
                    map.span,
                    format!("the hardware does not support the tensor map: {no}"),
                    &no.help(),
                )
            })?;
            let own = &self.p.buffers[map.buffer].name;
            let name = map.name.clone().unwrap_or_else(|| format!("{own}_map"));
            let name = self.namer.admit(&name, "map");
            self.helpers.insert(Helper::TensorMap);
            signature
                .push((Type::named("const __grid_constant__ CUtensorMap"), name.clone().into()));
            self.maps.insert(id, name.clone());
            params.push(Param::TensorMap { name, buffer: map.buffer, map: description });
        }
        Ok((signature, params))
    }

    /// `const int tid = threadIdx.x;`, if anything needs it.
    fn prologue(&mut self, exec: Exec) -> Vec<Stmt> {
        let mut body = vec![];
        let places = [
            (exec.blocks, "blockIdx.x", ["bid", "block_index"]),
            (exec.threads, "threadIdx.x", ["tid", "thread_index"]),
        ];
        for (threads, cuda, [short, long]) in places {
            let Some(var) = self.p.threads[threads].var else { continue };
            // A coordinate of the program with the short name keeps the name.
            let named = |v: &VarId| self.p.arena.var_info(*v).name.trim_start_matches('@') == short;
            let taken = self.p.vars.keys().any(named);
            let local = self.namer.admit(if taken { long } else { short }, "i");
            self.indices.bind(var, local.clone(), false);
            self.definitions.bind(var, cuda, false);
            body.push(Stmt::constant("int", local, Expr::name(cuda)));
        }
        body
    }

    fn head(&self, id: SpecId, name: &str, grid: Dim, block: i64) -> Vec<String> {
        let what = line_comment(self.p.specs[id].line, &self.describe(id));
        let what = what.map(|comment| comment.to_string()).unwrap_or_default();
        let bytes = self.arena.bytes;
        let limits = carbyne_atoms::limits(self.atoms.arch);
        let mut lines = vec![
            format!("{name}, {what}"),
            format!(
                "{}: grid {}, block {block}, dynamic shared memory {bytes} bytes",
                self.atoms.arch,
                self.p.arena.display(grid)
            ),
        ];
        if bytes > limits.static_smem_per_block {
            lines.push(
                "Set cudaFuncAttributeMaxDynamicSharedMemorySize before launching.".to_owned(),
            );
        }
        lines
    }
}

/// A summary of a kernel's statements.
#[derive(Default)]
struct Content {
    /// Buffers that leaves write.
    written: HashSet<BufferId>,
    /// Specs without a body.
    leaves: Vec<SpecId>,
    /// Whether warp groups change their number of registers.
    moves_registers: bool,
    /// Tensor maps whose boxes are copied, in text order.
    maps: BTreeSet<MapId>,
}

impl Content {
    fn of(p: &Program, kernel: SpecId) -> Content {
        let mut content = Content::default();
        for (leaf, _) in p.leaves(kernel) {
            let spec = &p.specs[leaf];
            content.written.extend(spec.outputs.iter().map(|t| p.tensors[*t].buffer));
            let all = spec.input_tensors().chain(spec.outputs.iter().copied());
            content.maps.extend(all.filter_map(|t| Some(p.tensors[t].map.as_ref()?.map)));
            content.leaves.push(leaf);
        }
        for stmt in p.walk_body(kernel).stmts() {
            let program::StmtKind::Sync(sync) = &stmt.kind else { continue };
            let map = sync.tensor.and_then(|t| p.tensors[t].map.as_ref());
            content.maps.extend(map.map(|m| m.map));
            content.moves_registers |=
                matches!(sync.op, SyncOp::RegistersInc | SyncOp::RegistersDec);
        }
        content
    }
}
