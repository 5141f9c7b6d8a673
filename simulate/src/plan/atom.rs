//! Atoms bound to a leaf's operands: which lane's which element goes where.
//!
//! An atom names each operand's elements by their place in a tile, for every thread and value. Binding turns
//! that into lists over (lane, element) slots: for each place of a read tile the first slot that holds it,
//! so that the addresses of idle lanes are never used; so it is for a written tile in memory, and every
//! slot for one in registers.
//!
//! Nothing here or in [`crate::exec`] looks at an atom's name.

use super::{Checked, Site, Source, Space, View};
use crate::index::Index;
use carbyne_atoms::{Atom, AtomOp, AtomOperand, OperandAccess, Rounding, Visibility, descriptor};
use carbyne_ir::ast::{AccumulateOp, BinaryOp, ReduceOp, ShflOp, SpecKind, UnaryOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Buffer, Program};
use carbyne_ir::scalar::{Memory, Scalar};

/// A lane of a group and an element of its view.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Position in the group.
    pub lane: u16,
    /// Element of that lane's view.
    pub element: u16,
}

/// An atom bound to operands.
pub(crate) struct BoundAtom {
    /// Threads that are looked at together: one warp, or as many as the group spans.
    pub window: usize,
    /// The groups in a window, as offsets from its first thread; empty for atoms of one thread.
    pub instances: Vec<Instance>,
    /// Threads of a group.
    pub group: usize,
    /// Read operands in the order of the spec.
    pub reads: Vec<BoundOperand>,
    /// Written operands in the order of the spec.
    pub writes: Vec<BoundOperand>,
    /// What is computed.
    pub op: BoundOp,
    /// Whether outputs are there only after a wait.
    pub asynchronous: bool,
    /// Whether it is a MatMul of warps that goes on until they wait for it.
    pub in_flight: bool,
    /// How many elements a thread reads of its source; the others are 0. All where it is none.
    pub valid: Option<Index>,
    /// Whether it is of one thread and touches nothing but the thread's own registers, one after the other.
    pub private: bool,
}

/// An operand of a bound atom.
pub(crate) struct BoundOperand {
    /// Where its values are.
    pub source: Source,
    /// For each place of the tile, in scalars: of a read operand one slot.
    pub reads: Vec<Slot>,
    /// Of a written one every slot that writes, with its place.
    pub writes: Vec<(Slot, u32)>,
    /// Of the address each thread gives, in bytes.
    pub align: i64,
    /// Bytes that one thread accesses together.
    pub bytes: i64,
    /// Whether a descriptor names it: every warp reads all of it, and it is the same for every thread.
    pub described: bool,
}

/// What a bound atom computes.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum BoundOp {
    /// Bits are kept.
    Move,
    /// They are put to what is there.
    Accumulate(AccumulateOp),
    /// One of two, by the first.
    Select,
    /// D += A·B.
    MatMul {
        /// Batches, rows, columns, depth.
        extents: [usize; 4],
        /// Types of A and B.
        from: [Scalar; 2],
        /// Type of D.
        to: Scalar,
    },
    /// One operand.
    Unary(UnaryOp, Scalar, Scalar),
    /// From f32 to tf32, ties away from zero.
    Tf32Away,
    /// Two operands.
    Binary(BinaryOp, Scalar, Scalar),
    /// Every element is the literal.
    Init(Scalar),
    /// All elements to one.
    Reduction(ReduceOp, Scalar),
    /// Those of another lane: how many lanes there are, and how many scalars a lane's value is.
    Shuffle {
        /// How the lane is found.
        op: ShflOp,
        /// Lane, distance or mask.
        lane: i64,
        /// Lanes of the tile.
        n_lanes: usize,
        /// Scalars of one unit.
        per_unit: usize,
    },
}

/// Threads that execute an atom together, in its order.
pub(crate) type Instance = Vec<u16>;

/// Everything about the leaf that binding needs.
pub(crate) struct Operands<'a> {
    /// Read operands.
    pub inputs: &'a [Source],
    /// Written operands.
    pub outputs: &'a [usize],
    /// The kernel's views so far.
    pub views: &'a [View],
    /// The kernel's distributed tensors so far.
    pub dists: &'a [super::Dist],
    /// `lane=` of a Shfl, where it is a constant.
    pub lane: Option<i64>,
    /// Whether the leaf asks for what only bulk atoms do.
    pub bulk: bool,
    /// `valid=` of a Move.
    pub valid: Option<Index>,
    /// The program.
    pub program: &'a Program,
    /// Where the spec is.
    pub site: Site,
}

impl BoundAtom {
    /// Binds an atom to the operands of a spec.
    ///
    /// # Errors
    /// `D0302`, saying which operand does not fit and why.
    pub(crate) fn new(atom: &Atom, kind: SpecKind, operands: &Operands<'_>) -> Checked<Self> {
        let refuse = |why: String| mismatch(operands.site, atom, why);
        if !atom.implements(kind) {
            return Err(refuse(format!("it computes {}, the spec is {kind}", atom.op)));
        }
        if operands.bulk {
            return Err(refuse("it knows no `bar=`, `multicast=` or `cache=`".to_owned()));
        }
        let read: Vec<&AtomOperand> =
            atom.operands.iter().filter(|o| o.access == OperandAccess::Read).collect();
        let written: Vec<&AtomOperand> = atom.writes().collect();
        if read.len() != operands.inputs.len() || written.len() != operands.outputs.len() {
            return Err(refuse(format!(
                "it reads {} and writes {} operands, the spec {} and {}",
                read.len(),
                written.len(),
                operands.inputs.len(),
                operands.outputs.len()
            )));
        }
        let layout = &atom.thread_layout;
        let lanes: Option<Vec<u16>> =
            (0..layout.size()).map(|t| u16::try_from(layout.at(t)).ok()).collect();
        let lanes = lanes
            .filter(|l| l.len() as i64 == atom.group && (1..=128).contains(&atom.group))
            .ok_or_else(|| refuse("its threads cannot be placed".to_owned()))?;
        let bind = |o: &AtomOperand, source: Source| {
            bind_operand(o, source, operands, lanes.len())
                .map_err(|why| refuse(format!("operand {} {why}", o.name)))
        };
        let reads: Vec<BoundOperand> = read
            .iter()
            .zip(operands.inputs)
            .map(|(o, source)| bind(o, *source))
            .collect::<Checked<_>>()?;
        let writes: Vec<BoundOperand> = written
            .iter()
            .zip(operands.outputs)
            .map(|(o, view)| bind(o, Source::View(*view)))
            .collect::<Checked<_>>()?;
        let mut writes = writes;
        if kind == SpecKind::MatMulSet {
            // What D held before does not matter.
            writes.iter_mut().for_each(|w| w.reads.clear());
        }
        let op = bound_op(atom, &reads, &writes, operands).map_err(refuse)?;
        let asynchronous = atom.visibility == Visibility::AsyncGroup;
        let into_shared = |w: &BoundOperand| match w.source {
            Source::View(v) => matches!(operands.views[v].space, Space::Shared(_)),
            Source::Number(_) => false,
        };
        if asynchronous && !writes.iter().all(into_shared) {
            return Err(refuse("only copies to shared memory complete later".to_owned()));
        }
        let (window, instances) = instances(&lanes)
            .ok_or_else(|| refuse("groups of its threads do not fill a warp".to_owned()))?;
        let in_flight = atom.visibility == Visibility::WgmmaGroup;
        let group = lanes.len();
        let valid = operands.valid.clone();
        if valid.is_some() != atom.number("valid").is_some() {
            let what = if valid.is_some() { "knows no" } else { "takes a number of elements," };
            return Err(refuse(format!("it {what} `valid=`")));
        }
        let own = |o: &BoundOperand| match o.source {
            Source::View(v) => {
                let view = &operands.views[v];
                matches!(view.space, Space::Registers(_)) && view.dist.is_none()
            }
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
            asynchronous,
            in_flight,
            valid,
            private,
        })
    }

    /// Multiply-adds of one group.
    pub(crate) fn multiply_adds(&self) -> u64 {
        match self.op {
            BoundOp::MatMul { extents, .. } => extents.iter().map(|n| *n as u64).product(),
            _ => 0,
        }
    }
}

/// Fills a window of whole warps with groups, each beginning at the first free thread.
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

fn mismatch(site: Site, atom: &Atom, why: String) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            Code::AtomMismatch,
            site.span,
            format!("`{}` does not implement the spec", atom.name),
        )
        .label(why)
        .help("choose another atom, or change the operands to what it states"),
    )
}

fn bound_op(
    atom: &Atom,
    reads: &[BoundOperand],
    writes: &[BoundOperand],
    cx: &Operands<'_>,
) -> Result<BoundOp, String> {
    let views = cx.views;
    let scalar = |o: &BoundOperand| match o.source {
        Source::View(v) => Some(views[v].scalar),
        Source::Number(_) => None,
    };
    let from: Vec<Scalar> = reads.iter().filter_map(scalar).collect();
    let to = writes.first().and_then(scalar).ok_or("it writes nothing")?;
    let places = |o: &BoundOperand| o.reads.len();
    let written: usize = writes
        .first()
        .map_or(0, |w| w.writes.iter().map(|(_, place)| *place as usize + 1).max().unwrap_or(0));
    let same = |n: usize| match reads.iter().all(|r| places(r) == written) && from.len() == n {
        true => Ok(()),
        false => Err("its operands have tiles of different sizes".to_owned()),
    };
    match atom.op {
        AtomOp::Move => {
            same(1)?;
            if from[0].bits() != to.bits() {
                return Err(format!("it keeps bits, from {} to {to}", from[0]));
            }
            Ok(BoundOp::Move)
        }
        AtomOp::Accumulate(op) => {
            same(1)?;
            if from[0] != to {
                return Err(format!("it puts {} to {to}", from[0]));
            }
            Ok(BoundOp::Accumulate(op))
        }
        AtomOp::Select => {
            same(3)?;
            if from[0] != Scalar::Bool || from[1] != from[2] || from[1] != to {
                return Err("it chooses between values of one type by a bool".to_owned());
            }
            Ok(BoundOp::Select)
        }
        AtomOp::Unary(UnaryOp::Cast) if atom.rounding == Rounding::NearestAway => {
            same(1)?;
            match (from[0], to) {
                (Scalar::F32, Scalar::Tf32) => Ok(BoundOp::Tf32Away),
                (from, _) => Err(format!("ties of {from} to {to} away from zero are not known")),
            }
        }
        AtomOp::Unary(op) => same(1).map(|()| BoundOp::Unary(op, from[0], to)),
        AtomOp::Binary(op) => match from[..] {
            // One literal beside a tensor of one value.
            [from] if reads.len() == 2 && written == 1 => Ok(BoundOp::Binary(op, from, to)),
            _ => same(2).map(|()| BoundOp::Binary(op, from[0], to)),
        },
        AtomOp::Init => Ok(BoundOp::Init(to)),
        AtomOp::Sync(_) | AtomOp::Barrier(_) | AtomOp::Elect => {
            Err("it implements no spec".to_owned())
        }
        AtomOp::MatMul { l, m, n, k } => {
            let [l, m, n, k] = [l, m, n, k].map(|x| x.max(0) as usize);
            let (&[a, b], true) = (&from[..], reads.len() == 2) else {
                return Err("it multiplies two tensors".to_owned());
            };
            let fit = places(&reads[0]) == l * m * k && places(&reads[1]) == l * k * n;
            if !fit || written != l * m * n {
                return Err("its tiles are not A[m,k], B[k,n], D[m,n]".to_owned());
            }
            Ok(BoundOp::MatMul { extents: [l, m, n, k], from: [a, b], to })
        }
        AtomOp::Reduction(op) => match (&from[..], written) {
            ([from], 1) if *from == to => Ok(BoundOp::Reduction(op, to)),
            _ => Err("it reduces its tile to one element of the same type".to_owned()),
        },
        AtomOp::Shfl(op) => {
            same(1)?;
            let lane = cx.lane.ok_or("its lane is not a constant")?;
            let per_unit = atom.operands[0].elem.scalars_per_unit(to).unwrap_or(1);
            let (n_lanes, per_unit) = (atom.group.max(1) as usize, per_unit.max(1) as usize);
            if !written.is_multiple_of(n_lanes * per_unit) {
                return Err("its tile is not one value a lane".to_owned());
            }
            Ok(BoundOp::Shuffle { op, lane, n_lanes, per_unit })
        }
    }
}

/// The slots of one operand; an error says what does not fit.
fn bind_operand(
    operand: &AtomOperand,
    source: Source,
    cx: &Operands<'_>,
    group: usize,
) -> Result<BoundOperand, String> {
    let view = match source {
        Source::View(v) => &cx.views[v],
        Source::Number(_) if operand.access == OperandAccess::Read => {
            let (reads, writes) = (Vec::new(), Vec::new());
            return Ok(BoundOperand {
                source,
                reads,
                writes,
                align: 1,
                bytes: 0,
                described: false,
            });
        }
        Source::Number(_) => return Err("is written and cannot be a literal".to_owned()),
    };
    if cx.program.tensors[view.tensor].map.is_some() {
        return Err("is a box of a tensor map".to_owned());
    }
    if cx.program.tensors[view.tensor].peer.is_some() {
        return Err("lies in another block's shared memory".to_owned());
    }
    let memory = match view.space {
        Space::Global(_) => Memory::Gl,
        Space::Shared(_) => Memory::Sh,
        Space::Registers(_) => Memory::Rf,
        Space::Gathered(_) => Memory::Gl,
        Space::Index => Memory::Ix,
        Space::Param(_) => Memory::Pm,
    };
    if !operand.allows(memory) {
        let may: Vec<&str> = operand.memory.iter().map(|m| m.as_str()).collect();
        return Err(format!("lies in {memory}, it may lie in {}", may.join(", ")));
    }
    let Some(per_unit) = operand.elem.scalars_per_unit(view.scalar) else {
        return Err(format!("consists of {}, the atom takes {}", view.scalar, operand.elem));
    };
    let (t_mode, v_mode) = match (operand.tv.mode(0), operand.tv.mode(1)) {
        (Ok(t), Ok(v)) if operand.tv.rank() == 2 => (t, v),
        _ => return Err("has no thread-value layout of two modes".to_owned()),
    };
    let (n_threads, n_values, n_units) = (t_mode.size(), v_mode.size(), operand.tile_size());
    let wanted = n_values.saturating_mul(per_unit);
    let fits_limits = n_units > 0
        && n_units.saturating_mul(per_unit) <= 1 << 16
        && wanted <= i64::from(u16::MAX)
        && (1..=1024).contains(&n_threads);
    if !fits_limits || n_threads != group as i64 {
        return Err(format!("is spread over {n_threads} threads of {group}"));
    }
    let part = |d: &carbyne_ir::program::Dist| !d.ops.is_empty();
    if cx.program.tensors[view.tensor].dist.as_ref().is_some_and(part) {
        return Err("is a part of a tensor that is spread over threads".to_owned());
    }
    let held = match view.dist {
        None => view.size,
        Some(d) => cx.dists[d].by_thread.first().map_or(0, |(_, regs)| regs.len() as i64),
    };
    if held != wanted {
        return Err(format!("holds {held} elements a thread, the atom takes {wanted}"));
    }
    let described = operand.matrix_rule().is_some();
    if described {
        descriptor::of_operand(cx.program, view.tensor, operand)
            .map_err(|why| format!("has no descriptor: {why}"))?;
    }
    // In memory, of several threads that name one element the first alone writes it.
    let copies = memory == Memory::Rf;
    let mut reads: Vec<Option<Slot>> = vec![None; (n_units * per_unit) as usize];
    let mut writes = Vec::new();
    // A descriptor names the whole tile, for the first thread as for all.
    for t in 0..if described { 1 } else { n_threads } {
        for v in 0..n_values {
            let unit = t_mode.at(t).saturating_add(v_mode.at(v));
            if !(0..n_units).contains(&unit) {
                return Err(format!("names unit {unit} of a tile of {n_units}"));
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
    let reads = all.ok_or("leaves part of its tile to no thread")?;
    if let Some(d) = view.dist {
        spread_alike(&cx.dists[d], t_mode.size(), &writes)?;
    }
    let bits = view.scalar.bits();
    let align = if memory == Memory::Rf { 1 } else { operand.align };
    if align > 1 && !described {
        contiguous(view, align * 8 / bits, cx.program.buffer_of(view.tensor), align)?;
    }
    let writes = if operand.access == OperandAccess::Read { Vec::new() } else { writes };
    let reads = if operand.access == OperandAccess::Write { Vec::new() } else { reads };
    let bytes = (wanted * bits + 7) / 8;
    Ok(BoundOperand { source, reads, writes, align, bytes, described })
}

/// A distributed operand must be spread as the atom spreads its tile.
fn spread_alike(dist: &super::Dist, group: i64, slots: &[(Slot, u32)]) -> Result<(), String> {
    for (slot, place) in slots {
        let thread = dist.by_thread.get(usize::from(slot.lane));
        if thread.and_then(|(_, regs)| regs.get(usize::from(slot.element))) != Some(place) {
            return Err("is spread over threads in another way than the atom states".to_owned());
        }
    }
    match dist.by_thread.len() as i64 == group {
        true => Ok(()),
        false => Err(format!("is spread over {} threads of {group}", dist.by_thread.len())),
    }
}

/// Checks that what one thread accesses at once is a contiguous vector.
fn contiguous(view: &View, vector: i64, buffer: &Buffer, align: i64) -> Result<(), String> {
    let vector = vector.max(1) as usize;
    for e in 0..view.size as usize {
        let first = e - e % vector;
        if view.element(e) != view.element(first).saturating_add((e - first) as i64) {
            return Err(format!(
                "is accessed {align} bytes at a time, and they are not contiguous"
            ));
        }
    }
    match buffer.swizzle {
        Some(s) if !s.is_none() && vector > 1 && 1i64 << s.base() < align => {
            Err(format!("is accessed {align} bytes at a time, and swizzle {s} takes them apart"))
        }
        _ => Ok(()),
    }
}
