//! Binds atoms to the operands of leaves: maps each element of an atom's tiles to the lane that
//! holds it and to the element of that lane's view. It also defines [`BoundBulk`], a bulk copy
//! bound to its operands, which `bulk.rs` creates.
//!
//! [`carbyne_atoms::bind`] decides whether an atom implements a leaf, given the values of the
//! symbols. An atom specifies the elements of each operand by their positions in a tile, for every
//! thread and value. This module converts that into lists of (lane, element) slots. For each
//! position of a tile that the atom reads, the list has the first slot that holds the position, so
//! that the addresses of idle lanes are never used. For a written tile in memory the list has the
//! first slot as well; for a written tile in registers, all slots.
//!
//! Invariant: neither this module nor [`crate::exec`] depends on the name of an atom.

use super::{Checked, Source, Space, View};
use crate::index::{Index, Variables};
use carbyne_atoms::bind::Facts;
use carbyne_atoms::{Atom, AtomOp, AtomOperand, ErrorBound, OperandAccess, Rounding};
use carbyne_ir::ast::{AccumulateOp, BinaryOp, ReduceOp, ShflOp, SpecKind, UnaryOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{CastRole, Program, TensorId};
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;

/// An element of the view of a lane of a group.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The position of the lane in the group.
    pub lane: u16,
    /// The element of that lane's view.
    pub element: u16,
}

/// An atom bound to operands.
pub(crate) struct BoundAtom {
    /// The number of threads that are executed together: one warp, or all warps of a group.
    pub window: usize,
    /// The groups in a window, as offsets from its first thread; empty for atoms of one thread.
    pub instances: Vec<Instance>,
    /// The number of threads of a group.
    pub group: usize,
    /// The read operands, in the order of the spec.
    pub reads: Vec<BoundOperand>,
    /// The written operands, in the order of the spec.
    pub writes: Vec<BoundOperand>,
    /// The operation.
    pub op: BoundOp,
    /// The largest deviation of the atom's results from those of the operation.
    pub bound: Option<ErrorBound>,
    /// Whether the outputs are valid only after a wait.
    pub asynchronous: bool,
    /// Whether the atom is an asynchronous MatMul of warps, which is complete after a wait.
    pub in_flight: bool,
    /// The number of elements that a thread reads from its source; the others are 0. None: all
    /// elements.
    pub valid: Option<Index>,
    /// Whether the atom has one thread and accesses only the thread's own registers, one after the
    /// other.
    pub private: bool,
    /// The role in the meaning, for a cast that does not keep every value.
    pub cast: Option<CastRole>,
}

/// An operand of a bound atom.
pub(crate) struct BoundOperand {
    /// The location of the values.
    pub source: Source,
    /// For each place of the tile, in scalars: the slot that is read.
    pub reads: Vec<Slot>,
    /// For a written operand, every slot that writes, with its place.
    pub writes: Vec<(Slot, u32)>,
    /// The required alignment of each thread's address, in bytes.
    pub align: i64,
    /// The number of bytes that one thread accesses together.
    pub bytes: i64,
    /// Whether a descriptor names the operand: every warp reads all of the tile, and the tile is
    /// equal for all threads.
    pub described: bool,
    /// The places of a tile that a descriptor names, in the order of memory.
    pub order: Vec<u32>,
}

/// The operation of a bound atom.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum BoundOp {
    /// Copies bits.
    Move,
    /// Accumulates into the output.
    Accumulate(AccumulateOp),
    /// Selects one of two operands by the first.
    Select,
    /// D += A·B.
    MatMul {
        /// The numbers of batches, rows and columns, and the depth.
        extents: [usize; 4],
        /// The types of A and B.
        from: [Scalar; 2],
        /// The type of D.
        to: Scalar,
    },
    /// A function of one operand: the types of operand and result.
    Unary(UnaryOp, Scalar, Scalar),
    /// Rounds f32 to tf32, ties away from zero.
    Tf32Away,
    /// A function of two operands: the types of operands and result.
    Binary(BinaryOp, Scalar, Scalar),
    /// Sets every element to the literal.
    Init(Scalar),
    /// Reduces all elements to one.
    Reduction(ReduceOp, Scalar),
    /// Takes the elements of another lane.
    Shuffle {
        /// The rule that selects the source lane.
        op: ShflOp,
        /// The lane, distance or mask.
        lane: i64,
        /// The number of lanes of the tile.
        n_lanes: usize,
        /// The number of scalars of one unit.
        per_unit: usize,
    },
}

/// The threads that execute an atom together, in the atom's order.
pub(crate) type Instance = Vec<u16>;

/// The properties of the leaf that determine the places of an atom's values.
pub(crate) struct Operands<'a> {
    /// The read operands.
    pub inputs: &'a [Source],
    /// The written operands.
    pub outputs: &'a [usize],
    /// The kernel's views so far.
    pub views: &'a [View],
    /// `lane=` of a Shfl, if constant.
    pub lane: Option<i64>,
    /// `valid=` of a Move.
    pub valid: Option<Index>,
    /// The span of the spec.
    pub span: Span,
}

/// The known properties of a leaf's operands, given the values of the symbols. Alignment of
/// addresses is checked at the accesses.
pub(crate) struct Given<'a> {
    /// The program.
    pub program: &'a Program,
    /// The values of the symbols.
    pub vars: &'a Variables<'a>,
}

impl Facts for Given<'_> {
    fn layout(&self, t: TensorId) -> Layout<Dim> {
        let stated = self.program.tensors[t].concat();
        self.vars.layout(&stated).map_or(stated, |known| Layout::from_fixed(&known))
    }

    fn divisor(&self, t: TensorId) -> i64 {
        match self.program.is_private(t) {
            true => self.program.arena.divisor(self.program.tensors[t].offset),
            false => 0,
        }
    }
}

/// The reason why an atom cannot be executed as the table states it, with any operands.
#[derive(Debug, thiserror::Error)]
enum Defect {
    #[error("its threads do not fit into warps")]
    Threads,
    #[error("groups of its threads do not fill a warp")]
    Window,
    #[error("it implements no spec")]
    NoSpec,
    #[error("it writes nothing")]
    NoOutput,
    #[error("it is asynchronous, and not a copy to shared memory")]
    Asynchronous,
    #[error("its operands have tiles of different sizes")]
    Sizes,
    #[error("its tiles are not A[m,k], B[k,n], D[m,n]")]
    Tiles,
    #[error("it reduces a tile to more than one element")]
    Reduction,
    #[error("its types do not match its operation")]
    Types,
    #[error("rounding from {0} to {1} with ties away from zero is not supported")]
    Ties(Scalar, Scalar),
    #[error("its tile does not have one value for each lane")]
    Lanes,
    #[error("its lane is not a constant")]
    Lane,
    #[error("operand {0} has no thread-value layout of its threads")]
    Layout(&'static str),
    #[error("operand {operand} names unit {unit} of a tile of {of}")]
    Outside { operand: &'static str, unit: i64, of: i64 },
    #[error("no thread holds part of the tile of operand {0}")]
    Untouched(&'static str),
}

impl BoundAtom {
    /// Places the values of an atom that is bound to the operands of a spec.
    ///
    /// # Errors
    /// `D0302` for an atom whose table row cannot be executed.
    pub(crate) fn new(atom: &Atom, kind: SpecKind, operands: &Operands<'_>) -> Checked<Self> {
        Self::placed(atom, kind, operands).map_err(|why| {
            let message = format!("`{}` cannot be executed as the table states it", atom.name);
            Box::new(
                Diagnostic::new(Code::AtomMismatch, operands.span, message)
                    .label(why.to_string())
                    .help("choose another atom"),
            )
        })
    }

    fn placed(atom: &Atom, kind: SpecKind, operands: &Operands<'_>) -> Result<Self, Defect> {
        let layout = &atom.thread_layout;
        let lanes: Option<Vec<u16>> =
            (0..layout.size()).map(|t| u16::try_from(layout.at(t)).ok()).collect();
        let lanes = lanes
            .filter(|l| l.len() as i64 == atom.group && (1..=128).contains(&atom.group))
            .ok_or(Defect::Threads)?;
        let bind =
            |o: &AtomOperand, source: Source| bind_operand(o, source, operands.views, lanes.len());
        let read = atom.operands.iter().filter(|o| o.access == OperandAccess::Read);
        let reads: Vec<BoundOperand> =
            read.zip(operands.inputs).map(|(o, s)| bind(o, *s)).collect::<Result<_, _>>()?;
        let mut writes: Vec<BoundOperand> = atom
            .writes()
            .zip(operands.outputs)
            .map(|(o, view)| bind(o, Source::View(*view)))
            .collect::<Result<_, _>>()?;
        if kind == SpecKind::MatMulSet {
            // The previous elements of D are not used.
            writes.iter_mut().for_each(|w| w.reads.clear());
        }
        let op = bound_op(atom, &reads, &writes, operands)?;
        // Bulk atoms are planned separately.
        let asynchronous = atom.visibility.is_async_copy();
        let in_flight = atom.visibility.holds_registers();
        let into_shared = |w: &BoundOperand| match w.source {
            Source::View(v) => matches!(operands.views[v].space, Space::Shared(_)),
            Source::Number(_) => false,
        };
        if asynchronous && !writes.iter().all(into_shared) {
            return Err(Defect::Asynchronous);
        }
        let (window, instances) = instances(&lanes).ok_or(Defect::Window)?;
        let group = lanes.len();
        let valid = operands.valid.clone();
        let own = |o: &BoundOperand| match o.source {
            Source::View(v) => matches!(operands.views[v].space, Space::Registers(_)),
            Source::Number(_) => true,
        };
        let own = reads.iter().chain(&writes).all(own) && valid.is_none();
        let private = group == 1 && own && !matches!(op, BoundOp::Accumulate(_));
        Ok(BoundAtom {
            window,
            instances,
            group,
            reads,
            writes,
            op,
            bound: match atom.rounding {
                Rounding::Approximate(bound) => Some(bound),
                _ => None,
            },
            asynchronous,
            in_flight,
            valid,
            private,
            cast: None,
        })
    }

    /// The multiply-adds of one group.
    pub(crate) fn multiply_adds(&self) -> u64 {
        match self.op {
            BoundOp::MatMul { extents, .. } => extents.iter().map(|n| *n as u64).product(),
            _ => 0,
        }
    }
}

/// Fills a window of complete warps with groups; each group begins at the first free thread.
fn instances(lanes: &[u16]) -> Option<(usize, Vec<Instance>)> {
    if lanes.len() == 1 {
        return Some((32, Vec::new()));
    }
    let reach = lanes.iter().max().map_or(1, |l| usize::from(*l) + 1);
    let window = reach.next_multiple_of(32);
    let mut taken = vec![false; window];
    let mut instances = Vec::new();
    while let Some(first) = taken.iter().position(|t| !t) {
        let group: Instance = lanes.iter().map(|l| first as u16 + l).collect();
        for t in &group {
            match taken.get_mut(usize::from(*t)) {
                Some(free) if !*free => *free = true,
                _ => return None,
            }
        }
        instances.push(group);
    }
    Some((window, instances))
}

fn bound_op(
    atom: &Atom,
    reads: &[BoundOperand],
    writes: &[BoundOperand],
    cx: &Operands<'_>,
) -> Result<BoundOp, Defect> {
    let views = cx.views;
    let scalar = |o: &BoundOperand| match o.source {
        Source::View(v) => Some(views[v].scalar),
        Source::Number(_) => None,
    };
    let from: Vec<Scalar> = reads.iter().filter_map(scalar).collect();
    let to = writes.first().and_then(scalar).ok_or(Defect::NoOutput)?;
    let places = |o: &BoundOperand| o.reads.len();
    let written: usize = writes
        .first()
        .map_or(0, |w| w.writes.iter().map(|(_, place)| *place as usize + 1).max().unwrap_or(0));
    let same = |n: usize| match reads.iter().all(|r| places(r) == written) && from.len() == n {
        true => Ok(()),
        false => Err(Defect::Sizes),
    };
    match atom.op {
        AtomOp::Move => {
            same(1)?;
            if from[0].bits() != to.bits() {
                return Err(Defect::Types);
            }
            Ok(BoundOp::Move)
        }
        AtomOp::Accumulate(op) => {
            same(1)?;
            if from[0] != to {
                return Err(Defect::Types);
            }
            Ok(BoundOp::Accumulate(op))
        }
        AtomOp::Select => {
            same(3)?;
            if from[0] != Scalar::Bool || from[1] != from[2] || from[1] != to {
                return Err(Defect::Types);
            }
            Ok(BoundOp::Select)
        }
        AtomOp::Unary(UnaryOp::Cast) if atom.rounding == Rounding::NearestAway => {
            same(1)?;
            match (from[0], to) {
                (Scalar::F32, Scalar::Tf32) => Ok(BoundOp::Tf32Away),
                (from, to) => Err(Defect::Ties(from, to)),
            }
        }
        AtomOp::Unary(op) => same(1).map(|()| BoundOp::Unary(op, from[0], to)),
        AtomOp::Binary(op) => match from[..] {
            // A literal and a tensor.
            [from] if reads.len() == 2 && reads.iter().all(|r| places(r) == written) => {
                Ok(BoundOp::Binary(op, from, to))
            }
            _ => same(2).map(|()| BoundOp::Binary(op, from[0], to)),
        },
        AtomOp::Init => Ok(BoundOp::Init(to)),
        AtomOp::Sync(_) | AtomOp::Barrier(_) | AtomOp::Elect => Err(Defect::NoSpec),
        AtomOp::MatMul { l, m, n, k } => {
            let [l, m, n, k] = [l, m, n, k].map(|x| x.max(0) as usize);
            let (&[a, b], true) = (&from[..], reads.len() == 2) else {
                return Err(Defect::Tiles);
            };
            let fit = places(&reads[0]) == l * m * k && places(&reads[1]) == l * k * n;
            if !fit || written != l * m * n {
                return Err(Defect::Tiles);
            }
            Ok(BoundOp::MatMul { extents: [l, m, n, k], from: [a, b], to })
        }
        AtomOp::Reduction(op) => match (&from[..], written) {
            ([from], 1) if *from == to => Ok(BoundOp::Reduction(op, to)),
            _ => Err(Defect::Reduction),
        },
        AtomOp::Shfl(op) => {
            same(1)?;
            let lane = cx.lane.ok_or(Defect::Lane)?;
            let per_unit = atom.operands[0].elem.scalars_per_unit(to).unwrap_or(1);
            let (n_lanes, per_unit) = (atom.group.max(1) as usize, per_unit.max(1) as usize);
            if !written.is_multiple_of(n_lanes * per_unit) {
                return Err(Defect::Lanes);
            }
            Ok(BoundOp::Shuffle { op, lane, n_lanes, per_unit })
        }
    }
}

/// The slots of one operand.
fn bind_operand(
    operand: &AtomOperand,
    source: Source,
    views: &[View],
    group: usize,
) -> Result<BoundOperand, Defect> {
    let view = match source {
        Source::View(v) => &views[v],
        Source::Number(_) => {
            // Every value of a thread is the literal.
            let n = usize::try_from(operand.tile_size()).unwrap_or(1);
            let (reads, writes) = (vec![Slot { lane: 0, element: 0 }; n], Vec::new());
            let described = false;
            let (align, bytes, order) = (1, 0, vec![]);
            return Ok(BoundOperand { source, reads, writes, align, bytes, described, order });
        }
    };
    let in_registers = matches!(view.space, Space::Registers(_));
    let per_unit = operand.elem.scalars_per_unit(view.scalar).unwrap_or(1);
    let layout = Defect::Layout(operand.name);
    let (t_mode, v_mode) = match (operand.tv.mode(0), operand.tv.mode(1)) {
        (Ok(t), Ok(v)) if operand.tv.rank() == 2 => (t, v),
        _ => return Err(layout),
    };
    let (n_threads, n_values, n_units) = (t_mode.size(), v_mode.size(), operand.tile_size());
    let wanted = n_values.saturating_mul(per_unit);
    let fits_limits = n_units > 0
        && n_units.saturating_mul(per_unit) <= 1 << 16
        && wanted <= i64::from(u16::MAX)
        && (1..=1024).contains(&n_threads);
    if !fits_limits || n_threads != group as i64 {
        return Err(layout);
    }
    let described = operand.matrix_rule().is_some();
    // In memory, only the first of several threads that name an element writes it.
    let copies = in_registers;
    let mut reads: Vec<Option<Slot>> = vec![None; (n_units * per_unit) as usize];
    let mut writes = Vec::new();
    // A descriptor names the complete tile, which is equal for all threads.
    for t in 0..if described { 1 } else { n_threads } {
        for v in 0..n_values {
            let unit = t_mode.at(t).saturating_add(v_mode.at(v));
            if !(0..n_units).contains(&unit) {
                return Err(Defect::Outside { operand: operand.name, unit, of: n_units });
            }
            for j in 0..per_unit {
                let slot = Slot { lane: t as u16, element: (v * per_unit + j) as u16 };
                let place = unit * per_unit + j;
                if copies || reads[place as usize].is_none() {
                    writes.push((slot, place as u32));
                }
                reads[place as usize].get_or_insert(slot);
            }
        }
    }
    let all: Option<Vec<Slot>> = reads.into_iter().collect();
    let reads = all.ok_or(Defect::Untouched(operand.name))?;
    let align = if in_registers { 1 } else { operand.align };
    let writes = if operand.access == OperandAccess::Read { Vec::new() } else { writes };
    let reads = if operand.access == OperandAccess::Write { Vec::new() } else { reads };
    let bytes = (wanted * view.scalar.bits() + 7) / 8;
    let n = if described { reads.len() as u32 } else { 0 };
    let mut order: Vec<u32> = (0..n).collect();
    order.sort_by_key(|place| view.element(usize::from(reads[*place as usize].element)));
    Ok(BoundOperand { source, reads, writes, align, bytes, described, order })
}

/// A copy of complete operands, issued by one thread.
pub(crate) struct BoundBulk {
    /// The source view.
    pub source: usize,
    /// The target view.
    pub target: usize,
    /// The box, if one side has a tensor map.
    pub boxed: Option<BoxPlace>,
    /// The mbarrier that counts the bytes.
    pub bar: Option<usize>,
    /// The number of bytes copied.
    pub bytes: i64,
    /// The blocks of the cluster that receive the bytes, one bit each.
    pub mask: Option<Index>,
    /// The operation that accumulates into the target; none for a plain copy.
    pub adds: Option<AccumulateOp>,
    /// The elements in the order of the target's memory; empty if several elements share an
    /// address, or if there are too many.
    pub order: Vec<u32>,
}

/// The position of a box in its tensor. Modes are in the order of the text.
pub(crate) struct BoxPlace {
    /// Whether the tensor map belongs to the source; otherwise it belongs to the target.
    pub of_source: bool,
    /// The coordinates of the first element.
    pub at: Vec<Index>,
    /// The extents of the tensor.
    pub extents: Vec<i64>,
}
