//! Lowers a kernel of the program to a [`Kernel`] that is ready to run: binds each leaf to an atom
//! or to its meaning, and refuses kernels that cannot run, with the reason. For the kernel and for
//! each spec with a body, it prepares the comparison with the meaning, or records why there is
//! none.

use super::atom::{Given, Operands};
use super::site::{unknown, views_of};
use super::{
    BoundAtom, BoundOp, Check, Checked, How, Kernel, LeafSpec, Literal, Node, Reference, RootSpec,
    SharedPlan, Site, Source, Space, ThreadTensor,
};
use crate::denote::{Chain, Input, Meaning, NoMeaning, Shape, Step, StepOp};
use crate::index::{Compare, Index, NoIndex, Sizes, Variables};
use crate::num::{decode, encode};
use crate::state::RegisterPool;
use carbyne_atoms::bind::{self, Mismatch};
use carbyne_atoms::smem::{self, Arena};
use carbyne_atoms::{AtomTable, ErrorBound};
use carbyne_ir::ast::{ExtentRule, Numbers, SpecKind};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::layout::{Layout, LayoutError};
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::{
    BufferId, CastRole, Condition, Means, MeansInput, MeansOp, Operand, Program, SpecId, Stmt,
    StmtKind, TensorId, ThreadsId, VarKind,
};
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The largest number of elements of an operand of a spec that is executed or checked by its
/// meaning.
const MAX_ELEMENTS: i64 = 1 << 22;
/// The largest number of steps of one comparison of a body with its meaning.
const MAX_COMPARE: u64 = 1 << 30;
/// The largest number of blocks of a cluster; above the limit of any hardware.
const MAX_CLUSTER: i64 = 64;
/// The reason for a generic spec that is not compared.
const UNSTATED: &str = "the generic spec has no `means` block";
/// The deepest nesting of statements.
const MAX_DEPTH: usize = 512;

/// Lowers a kernel, for runs with this elected lane of a warp. A kernel without a body keeps only
/// its meaning.
///
/// # Errors
/// The first reason in text order why the kernel cannot run.
pub(crate) fn lower<'p>(
    program: &'p Program,
    id: SpecId,
    atoms: &AtomTable,
    symbols: &HashMap<VarId, i64>,
    elected: usize,
) -> Checked<Kernel<'p>> {
    let spec = &program.specs[id];
    let Executors { n_blocks, n_threads, cluster } = executors(program, id, symbols)?;
    let limits = carbyne_atoms::limits(atoms.arch);
    let mut lowering = Lowering {
        kernel: Kernel {
            program,
            spec: id,
            n_threads,
            pool: RegisterPool::new(n_threads, limits.regs_per_sm, limits.regs_per_thread),
            n_warps: n_threads.div_ceil(32),
            n_blocks,
            cluster,
            body: Vec::new(),
            loops: Vec::new(),
            leaves: Vec::new(),
            syncs: Vec::new(),
            checks: Vec::new(),
            thread_tensors: Vec::new(),
            views: Vec::new(),
            dists: Vec::new(),
            sites: Vec::new(),
            shared: SharedPlan { granule: 8, ..SharedPlan::default() },
            registers: Vec::new(),
            globals: Vec::new(),
            gathers: Vec::new(),
            root: None,
            outputs: Vec::new(),
            roundings: 0.0,
            has_flights: false,
            unchecked: Vec::new(),
        },
        vars: Variables::new(program, symbols, n_threads),
        atoms,
        elected,
        stated: Vec::new(),
        spaces: HashMap::new(),
        // If sizes are known only to the caller, or the arena has too many bytes, each buffer is
        // placed at its first use.
        arena: Arena::place(program, &smem::buffers(program, id), atoms).unwrap_or_default(),
        views: HashMap::new(),
        spread: HashMap::new(),
        loops: 0,
        thread_tensors: HashMap::new(),
        casts: program.casts(id),
    };
    let body = match &spec.body {
        Some(body) => lowering.block(body, 0)?,
        None => Vec::new(),
    };
    lowering.kernel.outputs = lowering.written(id);
    match lowering.root(id) {
        Ok(root) => lowering.kernel.root = Some(root),
        Err(Unchecked::Because(why)) => lowering.kernel.unchecked.push((spec.line, why)),
        Err(Unchecked::Broken(d)) => return Err(d),
    }
    let Lowering { mut kernel, stated, .. } = lowering;
    kernel.body = body;
    let stated: Vec<ErrorBound> = stated.into_iter().map(|(_, bound)| bound).collect();
    kernel.roundings = super::rounding::largest_part(&kernel, &stated);
    Ok(kernel)
}

/// The blocks and threads of a kernel; a kernel without a body has none.
struct Executors {
    n_blocks: i64,
    n_threads: usize,
    /// The number of blocks of a cluster.
    cluster: usize,
}

fn executors(program: &Program, id: SpecId, symbols: &HashMap<VarId, i64>) -> Checked<Executors> {
    let spec = &program.specs[id];
    let site = Site { line: spec.line, span: spec.span };
    let value = |v: VarId| symbols.get(&v).copied();
    let size = |threads: ThreadsId| -> Checked<i64> {
        let layout = program.threads[threads].concat().eval(&program.arena, &value);
        Ok(layout.map_err(|e| unknown(site.span, "a thread tensor", e))?.size())
    };
    // A grid may have no blocks.
    let blocks = |threads: ThreadsId| -> Checked<i64> {
        let sizes = Sizes::eval(&program.threads[threads].concat(), &program.arena, &value);
        Ok(sizes.map_err(|e| unknown(site.span, "a grid", e))?.size)
    };
    let (n_blocks, n_threads) = match (spec.exec, &spec.body) {
        (_, None) => (0, 0),
        (Some(exec), Some(_)) => (blocks(exec.blocks)?, size(exec.threads)?),
        (None, Some(_)) => return Err(not_decomposed(site.span)),
    };
    if n_threads > MAX_BLOCK_THREADS {
        let text =
            format!("a block has {n_threads} threads, at most {MAX_BLOCK_THREADS} are allowed");
        return Err(Box::new(
            Diagnostic::new(Code::TooManyThreads, site.span, text)
                .help("use fewer threads, and give each thread more elements"),
        ));
    }
    let cluster = match (spec.exec.map(|e| &program.threads[e.blocks].levels[..]), &spec.body) {
        (Some([_, .., cluster]), Some(_)) => {
            let layout = cluster.eval(&program.arena, &value);
            layout.map_err(|e| unknown(site.span, "a cluster", e))?.size()
        }
        _ => 1,
    };
    if !(1..=MAX_CLUSTER).contains(&cluster) || n_blocks % cluster != 0 {
        let text = format!("the {n_blocks} blocks cannot form clusters of {cluster} blocks");
        return Err(Box::new(
            Diagnostic::new(Code::ExecConfig, site.span, text)
                .label(format!(
                    "a cluster has from 1 to {MAX_CLUSTER} blocks, and its size divides the grid's"
                ))
                .help("make the number of blocks a multiple of the cluster size"),
        ));
    }
    Ok(Executors { n_blocks, n_threads: n_threads as usize, cluster: cluster as usize })
}

/// The error for a kernel without a body.
pub(crate) fn not_decomposed(span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(Code::NotDecomposed, span, "the kernel is not decomposed")
            .label("it has no body, and is too large to be executed by its meaning")
            .help("decompose the kernel first, for example with `--arch sm_80`; or write a body"),
    )
}

/// Whether a leaf of this kind computes the function of an enclosing body of the other kind.
fn computes(leaf: SpecKind, body: SpecKind) -> bool {
    let sums = |kind: SpecKind| kind.is_product();
    leaf == body || sums(leaf) && sums(body)
}

pub(super) struct Lowering<'p, 'a> {
    pub(super) kernel: Kernel<'p>,
    pub(super) vars: Variables<'a>,
    pub(super) atoms: &'a AtomTable,
    /// The elected lane.
    pub(super) elected: usize,
    /// The errors that the atoms bound so far state, with the kinds of specs that they implement.
    stated: Vec<(SpecKind, ErrorBound)>,
    pub(super) spaces: HashMap<BufferId, Space>,
    /// The places of shared tensors in the printed order.
    pub(super) arena: Arena,
    pub(super) views: HashMap<TensorId, usize>,
    /// Views whose modes of extent 1 are broadcast, by the target modes.
    pub(super) spread: HashMap<(TensorId, Vec<i64>), usize>,
    /// The number of loops around the current statement.
    pub(super) loops: usize,
    thread_tensors: HashMap<ThreadsId, usize>,
    /// The roles of casts in the meaning.
    casts: BTreeMap<SpecId, CastRole>,
}

impl Lowering<'_, '_> {
    pub(super) fn site(&mut self, line: u32, span: Span) -> u32 {
        self.kernel.sites.push(Site { line, span });
        self.kernel.sites.len() as u32 - 1
    }

    fn block(&mut self, stmts: &[Stmt], depth: usize) -> Checked<Vec<Node>> {
        if depth > MAX_DEPTH {
            let span = stmts.first().map_or(Span::default(), |s| s.span);
            return Err(Box::new(
                Diagnostic::new(Code::TooDeep, span, "statements are nested too deeply")
                    .label(format!("nested deeper than {MAX_DEPTH} levels"))
                    .help("nest fewer bodies"),
            ));
        }
        let mut nodes = Vec::new();
        for stmt in stmts {
            nodes.extend(self.stmt(stmt, depth)?);
        }
        Ok(nodes)
    }

    fn stmt(&mut self, stmt: &Stmt, depth: usize) -> Checked<Option<Node>> {
        let span = stmt.span;
        Ok(Some(match &stmt.kind {
            StmtKind::Indices(_) => return Ok(None),
            StmtKind::Spec(id) => self.spec(*id, depth)?,
            StmtKind::Allocate(tensor) => {
                let space = self.space(self.kernel.program.tensors[*tensor].buffer, span)?;
                Node::Allocate(match space {
                    Space::Registers(i) => Some(i),
                    _ => None,
                })
            }
            StmtKind::Element { var, tensor } => {
                let view = self.view(*tensor, span)?;
                let varying = !self.kernel.views[view].offset.is_uniform();
                let slot = self.vars.add_loop(*var, varying);
                if let Some(range) = self.kernel.program.buffer_of(*tensor).range {
                    self.vars.narrow(*var, range);
                }
                self.kernel.loops.push(self.kernel.program.arena.var_info(*var).name.clone());
                let buffer = self.kernel.program.buffer_of(*tensor);
                let known = |d: Dim| self.vars.constant(d).ok();
                let within = buffer.range.and_then(|(lo, hi)| known(lo).zip(known(hi)));
                let declared = self.kernel.program.tensors[buffer.tensor].concat();
                let step = declared.leaves().first().and_then(|(_, stride)| known(*stride));
                let step = step.filter(|_| buffer.splits);
                Node::Element { slot, view, within, step, site: self.site(stmt.line, span) }
            }
            StmtKind::Step { counter, var, value } => {
                let arena = &self.kernel.program.arena;
                let dim = arena.dim_of(*counter);
                let varying = dim.is_none_or(|d| self.kernel.program.thread_dependent(d));
                // The value is computed before the declaration gives the counter its slot.
                let value = self.index(*value, span)?;
                let slot = match counter == var {
                    true => {
                        self.kernel.loops.push(arena.var_info(*var).name.clone());
                        self.vars.add_loop(*var, varying)
                    }
                    false => self.vars.slot_of(*counter).unwrap_or(0),
                };
                Node::Step { slot, value, varying, site: self.site(stmt.line, span) }
            }
            StmtKind::For { var, start, end, also, step, body, .. } => {
                let program = self.kernel.program;
                let is_counter =
                    |v: &VarId| matches!(program.vars.get(v), Some(VarKind::Counter(_)));
                let ends_early = !also.is_empty()
                    || [*start, *end].iter().any(|d| program.vars_in(*d).iter().any(is_counter));
                let (first, last) = (self.index(*start, span)?, self.index(*end, span)?);
                let varying = !first.is_uniform() || !last.is_uniform();
                let slot = self.vars.add_loop(*var, varying);
                self.kernel.loops.push(self.kernel.program.arena.var_info(*var).name.clone());
                let also = self.compares(also, span)?;
                let site = self.site(stmt.line, span);
                let step = (*step).max(1);
                let trips = match (self.vars.bounds(*start).0, self.vars.bounds(*end).1) {
                    (Some(lo), Some(hi)) if hi <= lo => 0,
                    (Some(lo), Some(hi)) => {
                        let distance = i128::from(hi) - i128::from(lo);
                        let trips = (distance + i128::from(step) - 1) / i128::from(step);
                        u64::try_from(trips).unwrap_or(u64::MAX)
                    }
                    _ => u64::MAX,
                };
                self.loops += 1;
                let body = self.block(body, depth + 1)?;
                self.loops -= 1;
                let blocking = self.kernel.may_wait(&body);
                let (start, end) = (first, last);
                Node::For { slot, start, end, also, step, trips, ends_early, site, blocking, body }
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.compares(cond, span)?;
                let site = self.site(stmt.line, span);
                let then = self.block(then, depth + 1)?;
                let otherwise = self.block(otherwise, depth + 1)?;
                let blocking = self.kernel.may_wait(&then) || self.kernel.may_wait(&otherwise);
                Node::If { cond, site, blocking, then, otherwise }
            }
            StmtKind::Barrier(threads) => {
                let own = threads.map_or(0, |t| self.kernel.program.threads[t].own);
                let threads = threads.map(|t| self.thread_tensor(t)).transpose()?;
                let site = self.site(stmt.line, span);
                self.kernel.syncs.push((site, "barrier".to_owned()));
                Node::Barrier { threads, own: own > 0, site }
            }
            StmtKind::Sync(sync) => {
                let node = self.sync(sync, stmt.line, span)?;
                self.kernel.syncs.push((node.site, sync.op.to_string()));
                Node::Sync(node)
            }
        }))
    }

    fn compares(&self, all: &[Condition], span: Span) -> Checked<Vec<Compare>> {
        let one = |(lhs, op, rhs): &Condition| {
            let (lhs, rhs) = (self.index(*lhs, span)?, self.index(*rhs, span)?);
            Ok(Compare { lhs, op: *op, rhs })
        };
        all.iter().map(one).collect()
    }

    fn spec(&mut self, id: SpecId, depth: usize) -> Checked<Node> {
        let program = self.kernel.program;
        let spec = &program.specs[id];
        let Some(exec) = spec.exec else {
            let text = "the spec has no executor";
            return Err(Box::new(
                Diagnostic::new(Code::ExecConfig, spec.span, text)
                    .help("write `<<<#blocks, #threads>>>` after its name"),
            ));
        };
        let threads = self.thread_tensor(exec.threads)?;
        let site = self.site(spec.line, spec.span);
        if let Some(body) = &spec.body {
            let first_stated = self.stated.len();
            let body = self.block(body, depth + 1)?;
            let stated: Vec<ErrorBound> = self.stated[first_stated..]
                .iter()
                .filter(|(kind, _)| computes(*kind, spec.kind))
                .map(|(_, bound)| *bound)
                .collect();
            let check = match self.check(id, site, threads, stated) {
                Ok(check) => {
                    self.kernel.checks.push(check);
                    Some(self.kernel.checks.len() - 1)
                }
                Err(Unchecked::Because(why)) => {
                    self.kernel.unchecked.push((spec.line, why));
                    None
                }
                Err(Unchecked::Broken(d)) => return Err(d),
            };
            let blocking = self.kernel.may_wait(&body);
            return Ok(Node::Body { threads, site, check, blocking, body });
        }
        let (inputs, outputs) = self.operands(id)?;
        for view in &outputs {
            if let Space::Global(i) = self.kernel.views[*view].space {
                self.kernel.globals[i].written = true;
            }
        }
        let how = self.how(id, threads, &inputs, &outputs)?;
        let spread = |v: usize| self.kernel.views[v].dist.is_some();
        let alone = self.kernel.thread_tensors[threads].group_size() == 1
            && !views_of(&inputs).chain(outputs.iter().copied()).any(spread);
        let ordered = matches!(how, How::Meaning(_)) && self.is_operation(id, threads);
        let atom = spec.atom.clone();
        let cast = self.casts.get(&id).copied();
        let updates = self.updates(&how, &inputs, &outputs);
        self.kernel.leaves.push(LeafSpec {
            site,
            spec: id,
            threads,
            inputs,
            outputs,
            alone,
            ordered,
            cast,
            updates,
            how,
            atom,
        });
        Ok(Node::Leaf(self.kernel.leaves.len() - 1))
    }

    /// Whether a leaf writes a kind of memory that it also reads, possibly of another tensor.
    fn updates(&self, how: &How, inputs: &[Source], outputs: &[usize]) -> bool {
        let kind = |v: usize| match self.kernel.views[v].space {
            Space::Registers(_) | Space::Index => None,
            Space::Shared(_) => Some(true),
            Space::Global(_) | Space::Gathered(_) | Space::Param(_) => Some(false),
        };
        let reads_output = match how {
            How::Meaning(meaning) => meaning.reads_output(),
            How::Atom(atom) => !matches!(atom.op, BoundOp::Move | BoundOp::Accumulate(_)),
            How::Bulk(_) | How::Shuffle { .. } => false,
        };
        let written = || outputs.iter().filter_map(|v| kind(*v));
        written().any(|to| reads_output || views_of(inputs).any(|from| kind(from) == Some(to)))
    }

    /// Whether the complete block, or consecutive warps as one group, execute a leaf on tensors
    /// that belong to all of them.
    fn is_operation(&self, id: SpecId, threads: usize) -> bool {
        let tensor = &self.kernel.thread_tensors[threads];
        if tensor.group_size() == self.kernel.n_threads {
            return true;
        }
        let (program, spec) = (self.kernel.program, &self.kernel.program.specs[id]);
        let Some([group]) = tensor.known().map(|p| &p.groups[..]) else { return false };
        let one = spec.exec.is_some_and(|e| {
            let t = &program.threads[e.threads];
            t.each.is_none() && t.elect.is_none() && t.levels.len() == 1
        });
        let first = group.first().map_or(0, |t| usize::from(*t));
        let in_order = group.iter().enumerate().all(|(i, t)| usize::from(*t) == first + i);
        let mut tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
        one && in_order
            && first % 32 == 0
            && group.len() % 32 == 0
            && !tensors.any(|t| program.is_private(t))
    }

    fn how(
        &mut self,
        id: SpecId,
        threads: usize,
        inputs: &[Source],
        outputs: &[usize],
    ) -> Checked<How> {
        let spec = &self.kernel.program.specs[id];
        if let Some(name) = &spec.atom {
            let atom = self.atoms.find(name).map_err(|e| Box::new(e.diagnostic(spec)))?;
            let given = Given { program: self.kernel.program, vars: &self.vars };
            let bound = bind::bind_with(self.kernel.program, id, atom, &given);
            let bound = bound.map_err(|m| {
                let d = bind::not_by(self.kernel.program, id, atom.name, &m);
                Box::new(match m {
                    Mismatch::Threads { .. } => d.help(format!(
                        "{}; the solver implements a pin for a complete tile: pass `--arch`",
                        m.help()
                    )),
                    _ => d,
                })
            })?;
            if let Some(copy) = bound.bulk {
                return self.bulk(atom, copy, spec.span, inputs, outputs).map(How::Bulk);
            }
            let operands = Operands {
                valid: spec.valid.map(|v| self.index(v, spec.span)).transpose()?,
                inputs,
                outputs,
                views: &self.kernel.views,
                lane: spec.lane(),
                span: spec.span,
            };
            let mut bound = BoundAtom::new(atom, spec.kind, &operands)?;
            bound.cast = self.casts.get(&id).copied();
            self.kernel.has_flights |= bound.in_flight;
            self.stated.extend(atom.error_bound().map(|bound| (spec.kind, bound)));
            return Ok(How::Atom(bound));
        }
        if spec.valid.is_some() {
            let why = "a Move that reads part of its source needs an atom";
            return Err(meaningless(spec.span, why.to_owned()));
        }
        if spec.bar.is_some() || spec.multicast.is_some() {
            let why = "a copy that completes on an mbarrier needs an atom";
            return Err(meaningless(spec.span, why.to_owned()));
        }
        let all = spec.input_tensors().chain(spec.outputs.iter().copied());
        let alone = self.kernel.thread_tensors[threads].group_size() == 1;
        for tensor in all.map(|t| &self.kernel.program.tensors[t]) {
            let why = match (&tensor.map, tensor.peer) {
                (Some(_), _) => "a copy of a box of a tensor map needs an atom",
                (_, Some(_)) if !alone => {
                    "only single threads may access the memory of another block"
                }
                _ => continue,
            };
            return Err(meaningless(spec.span, why.to_owned()));
        }
        if let SpecKind::Shfl(op) = spec.kind {
            let lane = spec
                .lane()
                .ok_or_else(|| meaningless(spec.span, "its lane is not a constant".to_owned()))?;
            return Ok(How::Shuffle { op, lane });
        }
        let private = |v: &usize| self.is_private(*v);
        if !alone && (views_of(inputs).any(|v| private(&v)) || outputs.iter().any(private)) {
            let why = "a group of threads has no common registers: each thread has its own";
            return Err(meaningless(spec.span, why.to_owned()));
        }
        let meaning = self
            .small_enough(inputs, outputs)
            .and_then(|()| self.denote(id, inputs, outputs))
            .map_err(|why| meaningless(spec.span, why.to_string()))?;
        Ok(How::Meaning(meaning))
    }

    fn check(
        &mut self,
        id: SpecId,
        site: u32,
        threads: usize,
        stated: Vec<ErrorBound>,
    ) -> Result<Check, Unchecked> {
        let spec = &self.kernel.program.specs[id];
        if spec.kind == SpecKind::Generic && spec.means.is_none() {
            return Err(Unchecked::Because(UNSTATED.to_owned()));
        }
        if matches!(spec.kind, SpecKind::Accumulate(_))
            && self.kernel.thread_tensors[threads].n_groups() > 1
        {
            let why = "other groups may accumulate into its output at the same time";
            return Err(Unchecked::Because(why.to_owned()));
        }
        let (inputs, outputs) = self.operands(id).map_err(Unchecked::Broken)?;
        let alone = self.kernel.thread_tensors[threads].group_size() == 1;
        let private = |v: &usize| self.is_private(*v);
        if !alone && (views_of(&inputs).any(|v| private(&v)) || outputs.iter().any(private)) {
            let why = "a group of threads has no common registers: each thread has its own";
            return Err(Unchecked::Because(why.to_owned()));
        }
        self.small_enough(&inputs, &outputs)?;
        let reference = self.reference(id, inputs, outputs, stated)?;
        let check = Check { site, spec: id, threads, reference };
        if super::cost::compare(&self.kernel, &check) > MAX_COMPARE {
            return Err(Unchecked::Because(
                "comparing it with its meaning would take too long".to_owned(),
            ));
        }
        Ok(check)
    }

    fn denote(
        &self,
        id: SpecId,
        inputs: &[Source],
        outputs: &[usize],
    ) -> Result<Meaning, NoMeaning> {
        let spec = &self.kernel.program.specs[id];
        let views = &self.kernel.views;
        let modes = |v: usize| &views[v].modes[..];
        let ins: Vec<&[i64]> = views_of(inputs).map(modes).collect();
        let outs: Vec<&[i64]> = outputs.iter().map(|v| modes(*v)).collect();
        let axes = spec.axes().unwrap_or_default();
        let out = outputs.first().map_or(Scalar::F32, |v| views[*v].scalar);
        let meaning = Meaning::new(spec.kind, &axes, spec.acc.unwrap_or(out), &ins, &outs)?;
        let literals = inputs.iter().any(|s| matches!(s, Source::Number(_)));
        let numbers = spec.kind.numbers();
        if literals != (numbers == Numbers::Alone) && !(literals && numbers == Numbers::Beside) {
            return Err(NoMeaning::Literal);
        }
        match views_of(inputs).next() {
            Some(v)
                if meaning == Meaning::Move
                    && views[v].scalar.bits() != views[outputs[0]].scalar.bits() =>
            {
                Err(NoMeaning::Bits(views[v].scalar, out))
            }
            _ => Ok(meaning),
        }
    }

    /// Whether the operands are small enough for lists of elements.
    fn small_enough(&self, inputs: &[Source], outputs: &[usize]) -> Result<(), NoMeaning> {
        let large = |v: &usize| self.kernel.views[*v].size > MAX_ELEMENTS;
        match views_of(inputs).chain(outputs.iter().copied()).find(large) {
            Some(v) => {
                Err(NoMeaning::Elements { name: self.kernel.view_name(v), most: MAX_ELEMENTS })
            }
            None => Ok(()),
        }
    }

    /// The meaning of the complete kernel.
    fn root(&mut self, id: SpecId) -> Result<RootSpec, Unchecked> {
        let spec = &self.kernel.program.specs[id];
        if spec.kind == SpecKind::Generic && spec.means.is_none() {
            return Err(Unchecked::Because(UNSTATED.to_owned()));
        }
        let (inputs, outputs) = self.operands(id).map_err(Unchecked::Broken)?;
        let all: Vec<usize> = views_of(&inputs).chain(outputs.iter().copied()).collect();
        let stated = self.stated.iter().filter(|(kind, _)| computes(*kind, spec.kind));
        let stated = stated.map(|(_, bound)| *bound).collect();
        let reference = self.reference(id, inputs, outputs, stated)?;
        if !all.iter().all(|v| self.is_global(*v)) {
            return Err(Unchecked::Because("its operands are not whole tensors in GL".to_owned()));
        }
        let site = self.site(spec.line, spec.span);
        Ok(RootSpec { site, reference })
    }

    /// The outputs of the kernel's own spec.
    fn written(&mut self, id: SpecId) -> Vec<(usize, bool)> {
        let program = self.kernel.program;
        let spec = &program.specs[id];
        let is_input = |t: TensorId| {
            let buffer = program.tensors[t].buffer;
            spec.input_tensors().any(|i| program.tensors[i].buffer == buffer)
        };
        let views = spec.outputs.iter().filter_map(|t| {
            let view = self.view(*t, spec.span).ok()?;
            self.is_global(view).then_some((view, is_input(*t)))
        });
        views.collect()
    }

    fn is_global(&self, view: usize) -> bool {
        let view = &self.kernel.views[view];
        matches!(view.space, Space::Global(_) | Space::Param(_)) && view.known().is_some()
    }

    /// The meaning of a spec on its operands.
    fn reference(
        &mut self,
        id: SpecId,
        inputs: Vec<Source>,
        outputs: Vec<usize>,
        stated: Vec<ErrorBound>,
    ) -> Result<Reference, Unchecked> {
        if let Some(means) = &self.kernel.program.specs[id].means {
            let (chain, operands) = self.chain(means)?;
            let (meaning, rounded) = (None, self.rounded());
            return Ok(Reference { meaning, chain, operands, inputs, outputs, stated, rounded });
        }
        let meaning = self.denote(id, &inputs, &outputs)?;
        let mut operands = Vec::new();
        let mut shape = |v: usize| {
            operands.push(v);
            let view = &self.kernel.views[v];
            let operand = Some(operands.len() - 1);
            Shape { modes: view.modes.clone(), scalar: view.scalar, operand }
        };
        let read: Vec<Result<Shape, f64>> = inputs
            .iter()
            .map(|source| match source {
                Source::View(v) => Ok(shape(*v)),
                Source::Number(literal) => Err(literal.exact),
            })
            .collect();
        let spec = &self.kernel.program.specs[id];
        let axes = spec.axes().unwrap_or_default();
        let mut chain = Chain::of(spec.kind, &axes, &read, shape(outputs[0]))?;
        if let (Some(role), Some(step)) = (self.casts.get(&id), chain.steps.first_mut()) {
            step.op = StepOp::Cast(*role, self.kernel.views[outputs[0]].scalar);
        }
        let meaning = Some(meaning);
        let rounded = self.rounded();
        Ok(Reference { meaning, chain, operands, inputs, outputs, stated, rounded })
    }

    /// The types to which casts of the body round as the meaning does.
    fn rounded(&self) -> BTreeSet<Scalar> {
        let program = self.kernel.program;
        let meant = self.casts.iter().filter(|(_, role)| **role == CastRole::Meant);
        let to = |id: &SpecId| program.specs[*id].outputs.first().map(|t| program.scalar_of(*t));
        meant.filter_map(|(id, _)| to(id)).collect()
    }

    /// A `means` block with known sizes, and the views of its operands.
    fn chain(&mut self, means: &Means) -> Result<(Chain, Vec<usize>), Unchecked> {
        let span = means.steps.first().map_or(Span::default(), |s| s.span);
        let (mut chain, mut operands) = (Chain::default(), Vec::new());
        for value in &means.values {
            let operand = match value.operand {
                None => None,
                Some(t) => {
                    operands.push(self.view(t, span).map_err(Unchecked::Broken)?);
                    Some(operands.len() - 1)
                }
            };
            let known = |d: &Dim| {
                self.vars
                    .constant(*d)
                    .map_err(|e| Unchecked::Broken(unknown(span, "an extent", &e)))
            };
            let modes = value.extents.iter().map(known).collect::<Result<_, _>>()?;
            chain.values.push(Shape { modes, scalar: value.scalar, operand });
        }
        for (step, rounds) in means.steps.iter().zip(means.roundings()) {
            let modes = |i: usize| match step.inputs.get(i) {
                Some(MeansInput::Value(v)) => chain.values[*v].modes.len(),
                _ => 0,
            };
            let op = match &step.op {
                MeansOp::Gather { axis } => StepOp::Gather(*axis),
                MeansOp::Pad { before, value, .. } => {
                    let broken = |e: NoIndex| Unchecked::Broken(unknown(step.span, "a pad", &e));
                    let before = before.iter().map(|n| self.vars.constant(*n).map_err(broken));
                    StepOp::Pad { before: before.collect::<Result<_, _>>()?, value: *value }
                }
                MeansOp::View { layout, offset, .. } => {
                    let broken = |e: NoIndex| Unchecked::Broken(unknown(step.span, "a view", &e));
                    let layout = match self.vars.layout(layout) {
                        // A tensor without elements needs no layout.
                        Err(NoIndex::Layout(LayoutError::Extent { extent: 0 })) => {
                            Layout::trivial()
                        }
                        other => other.map_err(broken)?,
                    };
                    let offset = self.vars.constant(*offset).map_err(broken)?;
                    StepOp::View(Box::new(layout), offset)
                }
                MeansOp::Spec { kind, .. } if !kind.may_be_meant() => {
                    return Err(Unchecked::Because(format!("a {kind} in a `means` block")));
                }
                MeansOp::Spec { kind, axes, .. } => match rounds {
                    Some(to) => StepOp::Cast(CastRole::Meant, to),
                    None => StepOp::of(*kind, axes, modes(0))?,
                },
            };
            let input = |i: &MeansInput| match i {
                MeansInput::Value(v) => Ok(Input::Value(*v)),
                MeansInput::Number(v) => Ok(Input::Number(*v)),
                MeansInput::Size(size) => {
                    let value = self
                        .vars
                        .constant(*size)
                        .map_err(|e| Unchecked::Broken(unknown(step.span, "a number", &e)))?;
                    Ok(Input::Number(value as f64))
                }
            };
            let inputs = step.inputs.iter().map(input).collect::<Result<_, Unchecked>>()?;
            chain.steps.push(Step { op, inputs, output: step.output });
        }
        chain.outputs.clone_from(&means.outputs);
        Ok((chain, operands))
    }

    fn is_private(&self, view: usize) -> bool {
        let view = &self.kernel.views[view];
        matches!(view.space, Space::Registers(_)) && view.dist.is_none()
    }

    fn operands(&mut self, id: SpecId) -> Checked<(Vec<Source>, Vec<usize>)> {
        let spec = &self.kernel.program.specs[id];
        let outputs: Vec<usize> =
            spec.outputs.iter().map(|t| self.view(*t, spec.span)).collect::<Checked<_>>()?;
        let spread = match outputs.first() {
            Some(out) if spec.atom.is_none() && spec.kind.extents() == ExtentRule::Broadcast => {
                Some(self.kernel.views[*out].modes.clone())
            }
            _ => None,
        };
        let inputs = spec
            .inputs
            .iter()
            .map(|o| match (o, &spread) {
                (Operand::Tensor(t), None) => self.view(*t, spec.span).map(Source::View),
                (Operand::Tensor(t), Some(modes)) => {
                    self.spread_view(*t, modes, spec.span).map(Source::View)
                }
                // A literal operand has the type of the tensors.
                (Operand::Number(v), _) => {
                    let program = self.kernel.program;
                    let beside = match spec.kind.numbers() == Numbers::Beside {
                        true => spec.input_tensors().next(),
                        false => spec.outputs.first().copied(),
                    };
                    let scalar = beside.map_or(Scalar::F64, |t| program.scalar_of(t));
                    let rounded = decode(scalar, encode(scalar, *v));
                    let exact = if scalar.is_float() { *v } else { rounded };
                    Ok(Source::Number(Literal { exact, rounded }))
                }
            })
            .collect::<Checked<_>>()?;
        Ok((inputs, outputs))
    }

    fn thread_tensor(&mut self, id: ThreadsId) -> Checked<usize> {
        if let Some(threads) = self.thread_tensors.get(&id) {
            return Ok(*threads);
        }
        if let Some(groups) = self.kernel.program.threads[id].elect {
            let program = self.kernel.program;
            self.atoms.elect(program, groups, program.threads[id].span)?;
        }
        let (program, n) = (self.kernel.program, self.kernel.n_threads);
        let thread_tensor = ThreadTensor::new(program, &self.vars, id, n, self.elected)?;
        self.kernel.thread_tensors.push(thread_tensor);
        self.thread_tensors.insert(id, self.kernel.thread_tensors.len() - 1);
        Ok(self.kernel.thread_tensors.len() - 1)
    }

    pub(super) fn index(&self, dim: Dim, span: Span) -> Checked<Index> {
        self.vars.index(dim).map_err(|why| unknown(span, "an index", &why))
    }
}

/// The reason why a body is not compared with its spec.
enum Unchecked {
    Because(String),
    Broken(Box<Diagnostic>),
}

impl From<NoMeaning> for Unchecked {
    fn from(why: NoMeaning) -> Self {
        Unchecked::Because(why.to_string())
    }
}

pub(super) fn open(span: Span, what: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(Code::OpenLayout, span, format!("the layout of {what} is open"))
            .help("write the layout, or decompose the program first"),
    )
}

fn meaningless(span: Span, why: String) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(Code::NoDenotation, span, "the spec cannot be executed by its meaning")
            .label(why)
            .help("give it a body or an atom"),
    )
}
