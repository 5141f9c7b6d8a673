//! Defines the operands of a probe, a test program that executes one atom ([`ProbeOperand`]), and
//! how each passes between the caller's tensors and the probe ([`Passing`]: in registers, in
//! memory, by value, ...). [`ProbeOperand::elements`] maps each position of a caller's tensor to an
//! element of the atom's tile and, for registers, to (thread, value). By this map the test fills
//! the tensors, and names the lane and register, or the coordinates, of a wrong result.

use super::choice::Choice;
use crate::atom::{Atom, AtomOp, AtomOperand, Elem, OperandAccess};
use crate::descriptor::{Canonical, SwizzleMode, canonical};
use carbyne_ir::ast::Stmt;
use carbyne_ir::build::statements::tensor;
use carbyne_ir::layout::{Layout, LayoutError};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::tuple::IntTuple;
use std::fmt;

/// An operand of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeOperand {
    /// The name in the atom.
    pub name: &'static str,
    /// Whether the atom reads it, writes it, or both.
    pub access: OperandAccess,
    /// The scalar type of its elements in this probe.
    pub scalar: Scalar,
    /// The caller's tensor from which it is loaded, without `%`.
    pub input: Option<String>,
    /// The caller's tensor to which it is stored, without `%`. A read operand is stored unchanged.
    pub output: Option<String>,
    /// The map from (thread of the block, value) to the column-major index in `tile`, in scalars.
    pub tv: Layout,
    /// The extents of a block's tile, in scalars. If several groups of the block execute the atom,
    /// each on its own tile, the first mode is the group. Otherwise it is the tile of the atom.
    pub tile: Vec<i64>,
    /// How it is passed between the caller and the probe.
    pub passing: Passing,
    pub(super) blocks: i64,
}

/// How an operand is passed between the caller and the probe.
#[derive(Clone, Debug, PartialEq)]
pub enum Passing {
    /// In registers: the caller's tensor is \[block, thread, value\], row-major.
    Registers {
        /// Threads of a block.
        threads: i64,
    },
    /// In memory: the caller's tensor has one mode, which contains tile after tile.
    Memory {
        /// The memory that holds it while the atom executes.
        memory: Memory,
        /// The map from the column-major index in the tile to the offset in the block's part of
        /// that mode.
        layout: Layout,
    },
    /// A number that is passed by value to all threads: the caller's tensor has no modes.
    Number,
    /// No memory: the value is the coordinate of each thread along the second mode of `of`, a
    /// tensor in registers that the atom writes.
    Coordinate {
        /// The tensor's name without `%`.
        of: String,
    },
    /// In global memory as a whole tensor: the caller's tensor has the extents of the tile,
    /// row-major.
    Whole,
    /// A tile in shared memory that a descriptor addresses. The caller's tensor has one mode, which
    /// contains the elements of tile after tile in column-major order.
    Described {
        /// The map from the column-major index in the tile to the offset in shared memory.
        layout: Layout,
        /// The swizzle mode of the tensor in shared memory.
        swizzle: SwizzleMode,
    },
}

/// The dense layouts of the operand's tile that a descriptor can describe, each with its swizzle.
/// Empty for an operand that threads address.
#[must_use]
pub fn described(o: &AtomOperand) -> Vec<Canonical> {
    let Some(rule) = o.matrix_rule() else { return vec![] };
    let mut found: Vec<Canonical> = vec![];
    for major in rule.majors {
        for mode in SwizzleMode::ALL {
            let Some(one) = canonical(&o.tile, o.elem.bits(), &rule, *major, mode) else {
                continue;
            };
            let dense = one.layout.cosize() == o.tile_size();
            if dense && !found.contains(&one) {
                found.push(one);
            }
        }
    }
    found
}

/// An element of a caller's tensor, as the atom sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// The block of the grid.
    pub block: i64,
    /// The thread of the block and the index of its value; `None` for an operand in memory.
    pub held_by: Option<(i64, i64)>,
    /// The coordinates in [`ProbeOperand::tile`].
    pub at: Vec<i64>,
    /// The column-major index in [`ProbeOperand::tile`].
    pub index: i64,
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((thread, value)) = self.held_by {
            write!(f, "thread {thread}, value {value}, ")?;
        }
        let at: Vec<String> = self.at.iter().map(i64::to_string).collect();
        write!(f, "element ({})", at.join(","))?;
        if self.block > 0 { write!(f, " of block {}", self.block) } else { Ok(()) }
    }
}

/// The layout with one unused scalar between any two runs of `n` consecutive scalars, so that runs
/// begin at unaligned addresses.
fn apart(layout: &Layout, n: i64) -> Result<Layout, LayoutError> {
    fn steps(stride: IntTuple<i64>, n: i64) -> IntTuple<i64> {
        match stride {
            IntTuple::Leaf(s) if s < n => IntTuple::Leaf(s),
            IntTuple::Leaf(s) => IntTuple::Leaf(s / n * (n + 1)),
            IntTuple::Tuple(all) => IntTuple::Tuple(all.into_iter().map(|s| steps(s, n)).collect()),
        }
    }
    Layout::new(layout.shape(), steps(layout.stride(), n))
}

impl ProbeOperand {
    pub(super) fn new(
        atom: &Atom,
        o: &AtomOperand,
        choice: Choice,
        threads: i64,
        groups: i64,
    ) -> Result<Self, LayoutError> {
        let last = |n: usize| choice.pick.min(n.saturating_sub(1));
        let memory = o.memory.get(last(o.memory.len())).copied().unwrap_or(Memory::Rf);
        let options = scalars(o.elem);
        let scalar = options[last(options.len())];
        let per = o.elem.bits() / scalar.bits();
        let mut tile = o.tile.clone();
        if let Some(first) = tile.first_mut() {
            *first *= per;
        }
        let tv = in_scalars(&o.tv, per)?;
        let (tv, modes) = match groups {
            1 => (tv, col_major(&tile)?),
            _ => {
                let one = col_major(&tile)?;
                let modes = batched_modes(atom, groups, &one)?;
                match is_batched(atom) {
                    true => tile[0] *= groups,
                    false => tile.insert(0, groups),
                }
                (batched(atom, groups, threads, &tv)?, modes)
            }
        };
        let named = described(o);
        let passing = match memory {
            Memory::Pm => Passing::Number,
            Memory::Ix => {
                let to = atom.operands.iter().find(|o| o.access == OperandAccess::Write);
                Passing::Coordinate { of: format!("out{}", to.map_or("", |o| o.name)) }
            }
            Memory::Rf => Passing::Registers { threads },
            _ if !named.is_empty() => {
                let Canonical { layout, mode: swizzle } = named[last(named.len())].clone();
                Passing::Described { layout, swizzle }
            }
            memory @ (Memory::Gl | Memory::Sh) => {
                let layout = if o.around > 0 { apart(&modes, per)? } else { modes };
                Passing::Memory { memory, layout }
            }
        };
        // An atom that updates the caller's memory has one tensor for input and output.
        let in_place = memory.is_global() && o.access == OperandAccess::ReadWrite && !choice.set;
        let named_in = |prefix: &str| format!("{}{}", if in_place { "io" } else { prefix }, o.name);
        let reads = match o.access {
            OperandAccess::Read => true,
            OperandAccess::ReadWrite => !choice.set,
            OperandAccess::Write => false,
        };
        let given_back = choice.give_back && memory.is_per_thread();
        Ok(ProbeOperand {
            name: o.name,
            access: o.access,
            scalar,
            input: (reads && !memory.is_computed()).then(|| named_in("in")),
            output: (o.access != OperandAccess::Read || given_back).then(|| named_in("out")),
            tv,
            tile,
            passing,
            blocks: choice.blocks,
        })
    }

    /// The number of scalars in a block's tile.
    #[must_use]
    pub fn tile_size(&self) -> i64 {
        self.tile.iter().product()
    }

    /// The number of scalars in a block's part of the caller's tensor, including unused scalars
    /// between the elements of a tile in memory.
    #[must_use]
    pub fn span(&self) -> i64 {
        match self.is_apart() {
            true => self.tile_size() / self.n_values() * (self.n_values() + 1),
            false => self.tile_size(),
        }
    }

    /// Whether there are unused scalars between the runs of threads, so that runs begin at
    /// unaligned addresses.
    pub(super) fn is_apart(&self) -> bool {
        matches!(&self.passing, Passing::Memory { layout, .. } if layout.cosize() > layout.size())
    }

    /// The number of scalars that one thread holds or addresses.
    #[must_use]
    pub fn n_values(&self) -> i64 {
        self.tv.mode(1).map_or(1, |v| v.size())
    }

    /// Extents of the caller's tensors, slowest first.
    #[must_use]
    pub fn extents(&self) -> Vec<i64> {
        match self.passing {
            Passing::Registers { threads } => vec![self.blocks, threads, self.n_values()],
            Passing::Whole => self.tile.clone(),
            Passing::Number | Passing::Coordinate { .. } => vec![],
            Passing::Memory { .. } | Passing::Described { .. } => vec![self.blocks * self.span()],
        }
    }

    /// The elements of a caller's tensor, in the order of memory.
    #[must_use]
    pub fn elements(&self) -> Vec<Element> {
        let of_block: Vec<(Option<(i64, i64)>, i64)> = match &self.passing {
            Passing::Registers { threads } => {
                let (n, values) = (*threads, self.n_values());
                let held = |i: i64| (i / values, i % values);
                (0..n * values)
                    .map(|i| (Some(held(i)), self.tv.at(i / values + n * (i % values))))
                    .collect()
            }
            Passing::Memory { layout, .. } => {
                // Scalars between elements are read and ignored. They may have any index.
                let mut indices = vec![0; usize::try_from(self.span()).unwrap_or(0)];
                for index in 0..layout.size() {
                    let at = usize::try_from(layout.at(index)).unwrap_or(usize::MAX);
                    if let Some(place) = indices.get_mut(at) {
                        *place = index;
                    }
                }
                indices.into_iter().map(|i| (None, i)).collect()
            }
            Passing::Described { .. } => (0..self.tile_size()).map(|i| (None, i)).collect(),
            Passing::Number => vec![(None, 0)],
            Passing::Coordinate { .. } => vec![],
            Passing::Whole => (0..self.tile_size()).map(|i| (None, self.col_major(i))).collect(),
        };
        let element = |block: i64, held_by: Option<(i64, i64)>, index: i64| {
            let mut rest = index;
            let mut next = |n: &i64| {
                let c = rest % n;
                rest /= n;
                c
            };
            let at = self.tile.iter().map(&mut next).collect();
            Element { block, held_by, at, index }
        };
        // A number is shared by all blocks.
        let blocks = if self.passing == Passing::Number { 1 } else { self.blocks };
        (0..blocks)
            .flat_map(|b| of_block.iter().map(move |(h, i)| (b, *h, *i)))
            .map(|(b, h, i)| element(b, h, i))
            .collect()
    }

    /// The column-major index of the element with the index `place` in row-major order.
    fn col_major(&self, place: i64) -> i64 {
        let mut rest = place;
        let digits: Vec<i64> = self
            .tile
            .iter()
            .rev()
            .map(|n| {
                let c = rest % n;
                rest /= n;
                c
            })
            .collect();
        // The digit of the last mode comes first.
        digits.iter().zip(self.tile.iter().rev()).fold(0, |index, (c, n)| index * n + c)
    }

    /// The caller's tensors, as statements.
    pub(super) fn declarations(&self) -> impl Iterator<Item = Stmt> {
        let second = self.output.as_ref().filter(|o| Some(*o) != self.input.as_ref());
        let memory = (self.passing != Passing::Number).then_some(Memory::Gl);
        let declared = move |name: &String| tensor(name, &self.extents(), self.scalar, memory);
        self.input.iter().chain(second).map(declared)
    }
}

/// The atom's layout in scalars, with `per` scalars per unit.
fn in_scalars(tv: &Layout, per: i64) -> Result<Layout, LayoutError> {
    if per == 1 {
        return Ok(tv.clone());
    }
    let (t, v) = (times(&tv.mode(0)?, per)?, times(&tv.mode(1)?, per)?);
    Layout::concat(&[t, Layout::concat(&[Layout::new(per, 1)?, v])?])
}

fn times(layout: &Layout, n: i64) -> Result<Layout, LayoutError> {
    Layout::new(layout.shape().clone(), layout.stride().map(&mut |s| s * n))
}

fn col_major(tile: &[i64]) -> Result<Layout, LayoutError> {
    let layout = Layout::col_major(tile.to_vec())?;
    // A single mode also becomes a list of modes.
    if tile.len() == 1 { Layout::concat(&[Layout::new(tile[0], 1)?]) } else { Ok(layout) }
}

/// Whether the first mode of the atom's tiles is already a batch.
fn is_batched(atom: &Atom) -> bool {
    matches!(atom.op, AtomOp::MatMul { l, .. } if l > 1)
}

/// The layout of the tiles of `n` groups, one after the other in memory. The first mode counts
/// groups.
fn batched_modes(atom: &Atom, n: i64, one: &Layout) -> Result<Layout, LayoutError> {
    let groups = Layout::new(n, one.size())?;
    let mut modes: Vec<Layout> = (0..one.rank()).map(|i| one.mode(i)).collect::<Result<_, _>>()?;
    if is_batched(atom) {
        modes[0] = Layout::concat(&[groups, modes[0].clone()])?;
    } else {
        modes.insert(0, groups);
    }
    Layout::concat(&modes)
}

/// The thread-value layout of `n` groups, derived from that of one group. Each group has one batch
/// of the spec, which is the first mode.
fn batched(atom: &Atom, n: i64, threads: i64, tv: &Layout) -> Result<Layout, LayoutError> {
    let (t, v) = (times(&tv.mode(0)?, n)?, times(&tv.mode(1)?, n)?);
    // `places` maps a thread to its index in its group and to the group; `elements` maps these to
    // the element.
    let groups = atom.thread_layout.complement(threads)?;
    let places = Layout::concat(&[atom.thread_layout.clone(), groups])?.right_inverse();
    let elements = Layout::concat(&[t, Layout::new(n, 1)?])?;
    Layout::concat(&[elements.compose(&places)?, v])
}

/// The scalar types that probes use for an operand's elements, the widest first.
#[must_use]
pub fn scalars(elem: Elem) -> &'static [Scalar] {
    match elem {
        Elem::Scalar(s) => {
            // A slice with one element of the list of all types.
            let at = Scalar::ALL.iter().position(|t| *t == s).unwrap_or(0);
            &Scalar::ALL[at..=at]
        }
        Elem::Bits(8) => &[Scalar::U8, Scalar::I4],
        Elem::Bits(16) => &[Scalar::F16, Scalar::U8],
        Elem::Bits(_) => &[Scalar::F32, Scalar::F16, Scalar::I8],
    }
}
