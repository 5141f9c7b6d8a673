//! Selects the operands of a step of a random kernel: parts of tensors whose shape and type fit,
//! which the program may read or write at this statement. A result in registers or shared memory
//! may get a new tensor.

use super::state::{ALL, Body, Local, Owner, View};
use super::{Tensor, Writer};
use crate::gate::description::{Pick, Place};
use carbyne_ir::scalar::Scalar;

/// An element of a list, counted from the last one.
pub(super) fn nth<T: Clone>(list: &[T], which: u8) -> Option<T> {
    let i = usize::from(which).checked_rem(list.len())?;
    list.get(list.len() - 1 - i).cloned()
}

impl Body {
    /// A tile of one of the caller's tensors.
    pub(super) fn tile(&self, w: &Writer, g: usize, part: u8) -> View {
        let t = &w.globals[g];
        let own = self.writes_to(g);
        let (rows, columns) = t.tiles;
        let inner = self.loops.last();
        let step = |n: i64, c: i64| match inner {
            _ if n == 1 => "0".to_owned(),
            Some((k, trips)) if *trips <= n && c == 0 => k.clone(),
            Some((k, _)) if c % 2 == 0 => format!("({k} + {c}) % {n}"),
            _ => format!("{}", c % n),
        };
        let c = i64::from(part);
        let row = match part % 4 {
            _ if own && rows > 1 => "@i".to_owned(),
            0 | 1 if rows == w.grid.0 && rows > 1 => "@i".to_owned(),
            _ => step(rows, c / 4),
        };
        let column = match w.grid.1 {
            n if n > 1 && columns == n && (own || part % 3 != 2) => "@j".to_owned(),
            _ => step(columns, c / 2),
        };
        View {
            text: format!("%{}.tile([{},{}])[{row}, {column}]", t.name, t.tile.0, t.tile.1),
            owner: Owner::Global(g),
            scalar: t.scalar,
            shape: t.tile,
            quarters: ALL,
            stage: Some(0),
            slot: g,
        }
    }

    /// Whether the kernel may write a tensor. Tensors after the eighth are inputs.
    fn writes_to(&self, g: usize) -> bool {
        self.writes.checked_shr(g as u32).unwrap_or(0) & 1 == 1
    }

    /// Whether each block has a separate part of a tensor.
    pub(super) fn writable(&self, w: &Writer, g: usize) -> bool {
        let t = &w.globals[g];
        let own = t.tiles.0 == w.grid.0 && (w.grid.1 == 1 || t.tiles.1 == w.grid.1);
        let full = t.tile.0 > 1 && t.tile.1 > 1;
        self.writes_to(g) && own && full && !t.repeats()
    }

    fn may_read(&self, w: &Writer, g: usize) -> bool {
        let t: &Tensor = &w.globals[g];
        t.readable() && (!self.writes_to(g) || self.writable(w, g))
    }

    /// A whole tensor of the kernel, or one of its stages.
    pub(super) fn whole_tensor(&self, l: usize, part: u8) -> View {
        let t = &self.locals[l];
        let turn = self.loops.last().filter(|_| part % 2 == 1);
        let c = usize::from(part / 2) % t.stages;
        let (index, stage) = match turn {
            _ if t.stages == 1 => (String::new(), Some(0)),
            Some((k, _)) => (format!("[({k} + {c}) % {}]", t.stages), None),
            None => (format!("[{c}]"), Some(c)),
        };
        View {
            text: format!("%{}{index}", t.name),
            owner: Owner::Local(l),
            scalar: t.scalar,
            shape: t.shape,
            quarters: ALL,
            stage,
            slot: t.slot,
        }
    }

    /// A half or a quarter of a stage.
    pub(super) fn part(&self, l: usize, part: u8) -> View {
        let whole = self.whole_tensor(l, part);
        let (r, c) = whole.shape;
        let cut = match part {
            8 => Some(((r / 2, c), (0, 0), 0b0011)),
            9 => Some(((r / 2, c), (1, 0), 0b1100)),
            10 => Some(((r, c / 2), (0, 0), 0b0101)),
            11 => Some(((r, c / 2), (0, 1), 0b1010)),
            12 => Some(((r / 2, c / 2), (0, 0), 0b0001)),
            13 => Some(((r / 2, c / 2), (0, 1), 0b0010)),
            14 => Some(((r / 2, c / 2), (1, 0), 0b0100)),
            15 => Some(((r / 2, c / 2), (1, 1), 0b1000)),
            _ => None,
        };
        let Some((shape, (i, j), quarters)) = cut.filter(|_| r >= 16 && c >= 16) else {
            return whole;
        };
        let text = format!("{}.tile([{},{}])[{i}, {j}]", whole.text, shape.0, shape.1);
        View { text, shape, quarters, ..whole }
    }

    fn is_there(&self, v: &View) -> bool {
        let Owner::Local(l) = v.owner else { return true };
        let t = &self.locals[l];
        match v.stage {
            Some(s) => t.written[s] & v.quarters == v.quarters,
            None => t.written.iter().all(|w| w & v.quarters == v.quarters),
        }
    }

    /// The views in a memory that can be read.
    pub(super) fn readable(&self, w: &Writer, place: Place, part: u8) -> Vec<View> {
        let locals = |shared: bool| {
            let own = move |(_, t): &(usize, &Local)| t.visible && t.shared == shared;
            self.locals.iter().enumerate().filter(own).map(|(l, _)| l)
        };
        match place {
            Place::Global => (0..w.globals.len())
                .filter(|g| self.may_read(w, *g))
                .map(|g| self.tile(w, g, part))
                .collect(),
            Place::Shared => {
                locals(true).map(|l| self.part(l, part)).filter(|v| self.is_there(v)).collect()
            }
            Place::Registers => locals(false)
                .map(|l| self.whole_tensor(l, 0))
                .filter(|v| v.scalar != Scalar::Bool && self.is_there(v))
                .collect(),
        }
    }

    /// A readable view that satisfies a condition, preferably in registers, then in shared memory,
    /// then in global memory.
    pub(super) fn operand(
        &self,
        w: &Writer,
        pick: Pick,
        fits: &dyn Fn(&View) -> bool,
    ) -> Option<View> {
        let order = match pick.part {
            15 => [Place::Shared, Place::Registers, Place::Global],
            _ => [Place::Registers, Place::Shared, Place::Global],
        };
        order.into_iter().find_map(|place| {
            let list = self.readable(w, place, pick.part);
            let list: Vec<View> = list.into_iter().filter(fits).collect();
            nth(&list, pick.which)
        })
    }

    /// The target of a result.
    pub(super) fn target(
        &mut self,
        w: &Writer,
        place: Place,
        pick: Pick,
        shape: (i64, i64),
        scalar: Scalar,
        code: &mut super::state::Code,
    ) -> Option<View> {
        let fits = |v: &View| v.scalar == scalar && v.shape == shape;
        let locals = |shared: bool| {
            let own = move |(_, t): &(usize, &Local)| t.visible && t.shared == shared;
            self.locals.iter().enumerate().filter(own).map(|(l, _)| l)
        };
        let list: Vec<View> = match place {
            Place::Global => {
                let own = (0..w.globals.len()).filter(|g| self.writable(w, *g));
                own.map(|g| self.tile(w, g, pick.part)).filter(fits).collect()
            }
            Place::Shared => locals(true)
                .flat_map(|l| [self.whole_tensor(l, pick.part), self.part(l, 8 + pick.part % 8)])
                .filter(fits)
                .collect(),
            Place::Registers => {
                locals(false).map(|l| self.whole_tensor(l, 0)).filter(fits).collect()
            }
        };
        if let (Some(v), true) = (nth(&list, pick.which), pick.new != 0 || place == Place::Global) {
            return Some(v);
        }
        match place {
            Place::Global => None,
            _ => Some(self.allocate(place == Place::Shared, pick, shape, scalar, code)),
        }
    }

    /// Allocates a tensor.
    pub(super) fn allocate(
        &mut self,
        shared: bool,
        pick: Pick,
        shape: (i64, i64),
        scalar: Scalar,
        code: &mut super::state::Code,
    ) -> View {
        let name = self.fresh(if shared { "s" } else { "r" });
        let (r, c) = shape;
        let root = self.locals.len();
        let slot = self.slot();
        let mut new = Local {
            name: name.clone(),
            shared,
            scalar,
            shape,
            stages: 1,
            fixed: false,
            written: vec![0],
            root,
            fills: 0,
            visible: true,
            locked: false,
            inner: self.depth > 0 && pick.part % 4 == 3,
            slot,
        };
        // An allocation in a loop happens in every iteration.
        let inner = new.inner;
        let mut ty = format!("[{r},{c}].{scalar}.{}{{?}}", if shared { "SH" } else { "RF" });
        if shared {
            let open = format!("[{r},{c}].{scalar}.SH{{?}}");
            let fixed = format!("[({r},{c}):({c},1)].{scalar}.SH");
            ty = match pick.part {
                3..=6 => fixed.clone(),
                7 if c >= 64 => format!("{fixed}{{swizzle=(3,4,3)}}"),
                8 => format!("[({r},{c}):({},1)].{scalar}.SH", c + 16),
                9..=11 => {
                    let fits = |(_, t): &(usize, &Local)| {
                        t.shared && !t.inner && !t.locked && t.bytes() >= new.bytes()
                    };
                    let of = self.locals.iter().enumerate().rev().find(fits);
                    match of.map(|(i, t)| (i, t.root, t.name.clone())) {
                        Some((i, first, other)) if !inner && first == i => {
                            new.root = first;
                            self.has("reuses=");
                            match pick.part {
                                11 => format!("{fixed}{{reuses=%{other}}}"),
                                _ => format!("[{r},{c}].{scalar}.SH{{?, reuses=%{other}}}"),
                            }
                        }
                        _ => open,
                    }
                }
                12 | 13 => {
                    (new.stages, new.written) = (2, vec![0; 2]);
                    format!("[2].{open}")
                }
                14 => {
                    (new.stages, new.written) = (3, vec![0; 3]);
                    format!("[3].{open}")
                }
                _ => open,
            };
            new.fixed =
                matches!(pick.part, 5 | 6 | 8) || ty.starts_with(&format!("{fixed}{{reuses"));
            if new.fixed || ty.contains("swizzle") {
                self.has("stated shared layout");
            }
        }
        let line = format!("Allocate %{name}:{ty}");
        if inner {
            code.line(line);
            self.has("allocation in a loop or condition");
        } else {
            self.head.line(line);
        }
        self.locals.push(new);
        let l = self.locals.len() - 1;
        let stage = if self.locals[l].stages > 1 { pick.part / 2 * 2 } else { 0 };
        self.whole_tensor(l, stage)
    }
}
