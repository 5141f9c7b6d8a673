//! Collects the accesses of a thread's C++ statements: elements of its registers, and memory by the
//! name of the pointer. By these accesses `fuse` decides which statements may change their order. A
//! statement whose accesses are not known takes no part in fusing.

use crate::cpp::ast::{Assign, Binary, Expr, Piece, Pointer, Stmt, StmtKind, Unary, Word};
use std::collections::HashMap;

/// The meaning of names in scope.
#[derive(Clone, Default)]
pub(super) struct Scope {
    /// Arrays of registers: bytes per element, number of elements.
    arrays: HashMap<String, (i64, i64)>,
    /// Arrays of registers viewed as another type: the array, bytes per element.
    pub(super) aliases: HashMap<String, (String, i64)>,
    /// The target of each pointer: all of shared memory (whose buffers may overlap), or a
    /// parameter; none if unknown.
    pointers: HashMap<String, Option<Place>>,
}

/// An accessed place.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// An element of an array over which loops iterate.
    Value(String, i64),
    /// An element of a small array.
    Single(String, i64),
    /// Any memory behind a pointer.
    Memory(String),
}

/// One iteration of a loop, or a statement.
#[derive(Clone, Default)]
pub(super) struct Iteration {
    /// The value of the loop variable.
    pub(super) at: i64,
    /// The accessed places, and whether each is written.
    pub(super) accesses: Vec<(Place, bool)>,
    /// The number of elements of the arrays over which loops iterate.
    pub(super) values: Option<i64>,
    /// The most values of one access.
    pub(super) width: i64,
}

impl Scope {
    pub(super) fn knows(&self, name: &str) -> bool {
        self.arrays.contains_key(name) || self.aliases.contains_key(name)
    }

    pub(super) fn declare(&mut self, stmt: &Stmt) {
        let StmtKind::Declare(d) = &stmt.kind else { return };
        let name = d.name.to_string();
        self.arrays.remove(&name);
        self.aliases.remove(&name);
        self.pointers.remove(&name);
        match (&d.init, d.array, bytes(&d.ty.name)) {
            (None, Some(n), Some(bytes)) => {
                self.arrays.insert(name, (bytes, n));
            }
            (Some(Expr::Reinterpret(_, of)), None, Some(bytes))
                if let Expr::Name(of) = &**of
                    && self.arrays.contains_key(of.as_ref()) =>
            {
                self.aliases.insert(name, (of.to_string(), bytes));
            }
            (Some(init), ..) if d.ty.pointer != Pointer::None => {
                let to = self.leads_to(init);
                self.pointers.insert(name, to);
            }
            _ => {}
        }
    }

    /// The target of a pointer with this initial value, if known.
    fn leads_to(&self, init: &Expr) -> Option<Place> {
        match init {
            Expr::Name(name) if name == "smem" => Some(Place::Memory(String::new())),
            Expr::Name(name) => self.memory(name),
            Expr::Index(of, _) | Expr::Binary(_, of, _) => self.leads_to(of),
            Expr::Unary(_, of) | Expr::Cast(_, of) | Expr::Reinterpret(_, of) => self.leads_to(of),
            Expr::Call(_, args) => match &args[..] {
                [one] => self.leads_to(one),
                _ => None,
            },
            Expr::Int(_) | Expr::Literal(_) | Expr::Choose(..) => None,
        }
    }

    /// Collects the accesses of a statement that each thread executes by itself.
    pub(super) fn statement(
        &self,
        stmt: &Stmt,
        at: Option<(&Word, i64)>,
        iteration: &mut Iteration,
    ) -> Option<()> {
        if !stmt.alone {
            return None;
        }
        self.alone(stmt, at, iteration)
    }

    fn alone(
        &self,
        stmt: &Stmt,
        at: Option<(&Word, i64)>,
        iteration: &mut Iteration,
    ) -> Option<()> {
        match &stmt.kind {
            StmtKind::Filled(pieces) => {
                let mut any = false;
                for (n, piece) in pieces.iter().enumerate() {
                    let Piece::Operand(e) = piece else { continue };
                    let written =
                        matches!(pieces.get(n + 1), Some(Piece::Text(t)) if t.starts_with(" = "));
                    any |= written;
                    // The atom's text does not state what it does with a pointer; it counts as a
                    // read.
                    if let Expr::Name(name) = e
                        && !written
                        && !self.knows(name)
                    {
                        iteration.accesses.push((self.memory(name)?, false));
                    }
                    self.operand(e, written, at, iteration)?;
                }
                any.then_some(())
            }
            StmtKind::Assign { to, op: Assign::Set, value } => {
                self.operand(to, true, at, iteration)?;
                self.operand(value, false, at, iteration)
            }
            StmtKind::Asm(x) if !x.memory => {
                for (constraint, e) in &x.outputs {
                    if constraint.starts_with('+') {
                        self.operand(e, false, at, iteration)?;
                    }
                    self.operand(e, true, at, iteration)?;
                }
                x.inputs.iter().try_for_each(|(_, e)| self.operand(e, false, at, iteration))
            }
            StmtKind::If { cond, then, otherwise } => {
                self.operand(cond, false, at, iteration)?;
                then.iter().chain(otherwise).try_for_each(|s| self.alone(s, at, iteration))
            }
            StmtKind::Comment(_) | StmtKind::Line { .. } => Some(()),
            StmtKind::Assign { .. }
            | StmtKind::Asm(_)
            | StmtKind::Declare(_)
            | StmtKind::Expr(_)
            | StmtKind::For(_)
            | StmtKind::Block(_) => None,
        }
    }

    /// Collects the accesses of an expression; the outermost one may be a write.
    fn operand(
        &self,
        e: &Expr,
        written: bool,
        at: Option<(&Word, i64)>,
        iteration: &mut Iteration,
    ) -> Option<()> {
        match e {
            Expr::Index(of, index) => {
                let Expr::Name(name) = &**of else { return None };
                self.operand(index, false, at, iteration)?;
                match self.elements(name, 1) {
                    Some((array, bytes)) => {
                        self.registers(&array, value(index, at)? * bytes, bytes, written, iteration)
                    }
                    None => {
                        iteration.accesses.push((self.memory(name)?, written));
                        Some(())
                    }
                }
            }
            Expr::Unary(Unary::Deref, pointer) => {
                let Expr::Reinterpret(ty, of) = &**pointer else { return None };
                if ty.pointer == Pointer::None {
                    return None;
                }
                let zero = Expr::Int(0);
                let (name, index) = match &**of {
                    Expr::Name(name) => (name, &zero),
                    Expr::Unary(Unary::Address, of) => match &**of {
                        Expr::Index(of, index) => match &**of {
                            Expr::Name(name) => (name, &**index),
                            _ => return None,
                        },
                        _ => return None,
                    },
                    _ => return None,
                };
                self.operand(index, false, at, iteration)?;
                match self.elements(name, 1) {
                    Some((array, unit)) => {
                        let n = bytes(&ty.name)?;
                        self.registers(&array, value(index, at)? * unit, n, written, iteration)
                    }
                    None => {
                        iteration.accesses.push((self.memory(name)?, written));
                        Some(())
                    }
                }
            }
            // The use of a whole array or of a written pointer is unknown.
            Expr::Name(name) => (!self.knows(name) && !written).then_some(()),
            Expr::Int(_) | Expr::Literal(_) => Some(()),
            Expr::Call(_, args) => {
                args.iter().try_for_each(|e| self.operand(e, false, at, iteration))
            }
            Expr::Binary(_, a, b) => {
                self.operand(a, false, at, iteration)?;
                self.operand(b, false, at, iteration)
            }
            Expr::Choose(a, b, c) => {
                [a, b, c].into_iter().try_for_each(|e| self.operand(e, false, at, iteration))
            }
            Expr::Cast(_, e) | Expr::Unary(Unary::Neg, e) => self.operand(e, false, at, iteration),
            Expr::Unary(Unary::Address, _) | Expr::Reinterpret(..) => None,
        }
    }

    /// The array of registers that a name denotes or views, and the bytes of `n` of its elements.
    fn elements(&self, name: &str, n: i64) -> Option<(String, i64)> {
        match (self.arrays.get(name), self.aliases.get(name)) {
            (Some((bytes, _)), _) => Some((name.to_owned(), n * bytes)),
            (None, Some((array, bytes))) => Some((array.clone(), n * bytes)),
            (None, None) => None,
        }
    }

    /// The memory to which a pointer points; a parameter points to its own memory.
    fn memory(&self, name: &str) -> Option<Place> {
        self.pointers.get(name).cloned().unwrap_or_else(|| Some(Place::Memory(name.to_owned())))
    }

    /// Records an access to bytes of an array of registers.
    fn registers(
        &self,
        array: &str,
        from: i64,
        n: i64,
        written: bool,
        iteration: &mut Iteration,
    ) -> Option<()> {
        let (unit, elements) = *self.arrays.get(array)?;
        let (first, end) = (from / unit, (from + n + unit - 1) / unit);
        if from < 0 || end > elements {
            return None;
        }
        for at in first..end {
            let place = if elements <= SMALL {
                Place::Single(array.to_owned(), at)
            } else {
                Place::Value(array.to_owned(), at)
            };
            iteration.accesses.push((place, written));
        }
        if elements > SMALL {
            iteration.width = iteration.width.max(end - first);
            if elements < FEW || iteration.values.is_some_and(|n| n != elements) {
                return None;
            }
            iteration.values = Some(elements);
        }
        Some(())
    }
}

/// The bytes of a value of a C++ type.
pub(super) fn bytes(cxx: &str) -> Option<i64> {
    Some(match cxx {
        "bool" | "signed char" | "unsigned char" | "__nv_fp8_e4m3" | "__nv_fp8_e5m2" => 1,
        "__half" | "__nv_bfloat16" | "short" | "unsigned short" => 2,
        "float" | "int" | "unsigned" | "__half2" | "__nv_bfloat162" => 4,
        "double" | "long long" | "unsigned long long" | "float2" | "uint2" => 8,
        "uint4" => 16,
        _ => return None,
    })
}

/// The value of an index for a value of the loop variable.
pub(super) fn value(e: &Expr, at: Option<(&Word, i64)>) -> Option<i64> {
    match e {
        Expr::Int(n) => Some(*n),
        Expr::Name(name) => at.filter(|(var, _)| *var == name).map(|(_, n)| n),
        Expr::Unary(Unary::Neg, e) => value(e, at)?.checked_neg(),
        Expr::Binary(op, a, b) => {
            let (a, b) = (value(a, at)?, value(b, at)?);
            match op {
                Binary::Add => a.checked_add(b),
                Binary::Sub => a.checked_sub(b),
                Binary::Mul => a.checked_mul(b),
                Binary::Div => a.checked_div(b),
                Binary::Rem => a.checked_rem(b),
                Binary::Shl
                | Binary::Lt
                | Binary::Le
                | Binary::Gt
                | Binary::Ge
                | Binary::Eq
                | Binary::Ne
                | Binary::And
                | Binary::Or => None,
            }
        }
        _ => None,
    }
}

/// Threads with fewer values do not run out of registers.
pub(super) const FEW: i64 = 16;

/// Arrays of at most this many elements are results and counters, not values over which loops
/// iterate.
pub(super) const SMALL: i64 = 4;
