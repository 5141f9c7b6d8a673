//! Converts the views of a leaf to C++ expressions: for each value of an operand, its offset in a
//! buffer, and the expression of the array element or address.
//!
//! Value `v` of an operand is element `v` of its view in column-major order; the modes of the
//! outermost level (pair of brackets) vary fastest. This is the order in which the atom counts the
//! values of a thread. [`carbyne_atoms::bind`] has checked that the values of one access are
//! adjacent and aligned.

use super::helper::Helper;
use super::state::{Lowering, Stored, Through};
use crate::cpp::ast::{Binary, Expr, Type};
use crate::{Fallible, errors};
use carbyne_atoms::AtomOperand;
use carbyne_ir::expr::{Dim, Node};
use carbyne_ir::program::{Gather, TensorId};
use carbyne_ir::scalar::Memory;

/// The most values of an operand per thread.
const MAX_VALUES: i64 = 1024;

/// The values of an operand in the executing thread.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) stored: Stored,
    /// The offset of each value, in scalars of the buffer.
    pub(super) at: Vec<Dim>,
    /// The tensor as named in the text.
    pub(super) text: String,
}

impl Lowering<'_> {
    /// The storage of a tensor, and the tensor as named in the text.
    pub(super) fn storage_of(&self, t: TensorId) -> Fallible<(Stored, String)> {
        let tensor = &self.p.tensors[t];
        let text = self.p.tensor_name(t);
        let buffer = &self.p.buffers[tensor.buffer];
        let stored = match (buffer.memory, buffer.gather) {
            (Some(Memory::Ix), _) => Some(Stored::computed(buffer.scalar)),
            (_, Some(gather)) => self.through(gather),
            _ => self.buffers.get(&tensor.buffer).cloned(),
        };
        match stored {
            Some(stored) => Ok((stored, text)),
            None => Err(errors::undeclared(&text)),
        }
    }

    /// A buffer whose elements are selected by coordinates.
    fn through(&self, gather: Gather) -> Option<Stored> {
        let source = self.buffers.get(&gather.source)?;
        let index = self.buffers.get(&gather.index)?;
        let last = self.p.arena.range(self.p.buffers[gather.source].cosize).1;
        let wide = last.is_none_or(|n| n > i64::from(i32::MAX));
        let through =
            Through { index: index.name.clone(), stride: gather.stride, unit: gather.unit, wide };
        Some(Stored { gather: Some(through), ..source.clone() })
    }

    /// All elements of a tensor.
    pub(super) fn values(&self, t: TensorId) -> Fallible<Values> {
        let tensor = &self.p.tensors[t];
        let (stored, text) = self.storage_of(t)?;
        let layout = tensor.concat();
        let n = layout.size_in(&self.p.arena).map_err(errors::layout)?.as_const();
        let Some(n) = n.filter(|n| *n <= MAX_VALUES) else {
            let found = n.map_or("an unknown number of".to_owned(), |n| n.to_string());
            let message = format!("{text} has {found} elements in one operand");
            let help =
                format!("use a view with a constant number of at most {MAX_VALUES} elements");
            return Err(errors::unprintable(message, help));
        };
        let at = |v| {
            let inside = layout.at_in(&self.p.arena, Dim::Const(v))?;
            self.p.arena.add(tensor.offset, inside)
        };
        let at = (0..n).map(at).collect::<Result<_, _>>().map_err(errors::layout)?;
        Ok(Values { stored, at, text })
    }

    /// The array element that holds the scalar at `offset`.
    pub(super) fn element(&mut self, s: &Stored, offset: Dim) -> Fallible<Expr> {
        match s.memory {
            Memory::Ix => return self.index(offset),
            Memory::Pm => return Ok(Expr::name(s.name.clone())),
            Memory::Gl | Memory::Sh | Memory::Rf => {}
        }
        if s.memory.is_global()
            && s.gather.is_none()
            && s.swizzle.is_none()
            && s.storage.packed == 1
            && let Some(element) = self.behind_base(s, offset)?
        {
            return Ok(element);
        }
        Ok(Expr::name(s.name.clone()).at(self.position(s, offset)?))
    }

    /// The address of the element at `offset`; for element 0, the array itself.
    pub(super) fn address(&mut self, s: &Stored, offset: Dim) -> Fallible<Expr> {
        let name = Expr::name(s.name.clone());
        if s.memory.is_number() {
            return Ok(name.address());
        }
        match self.position(s, offset)? {
            Expr::Int(0) => Ok(name),
            i => Ok(name.at(i).address()),
        }
    }

    /// The address of the element at `offset` in shared memory, as PTX expects it:
    /// `shared_address(a, i)`, or `shared_address(a)` for the first element. The offset is added in
    /// 32 bits; if it were added to a pointer, NVRTC would compute in 64 bits.
    pub(super) fn shared_address(&mut self, s: &Stored, offset: Dim) -> Fallible<Expr> {
        self.helpers.insert(Helper::SharedAddress);
        let array = Expr::name(s.name.clone());
        Ok(Expr::call(
            "shared_address",
            match self.position(s, offset)? {
                Expr::Int(0) => vec![array],
                i => vec![array, i],
            },
        ))
    }

    /// The array index of the scalar at `offset`.
    pub(super) fn position(&mut self, s: &Stored, offset: Dim) -> Fallible<Expr> {
        let packed = Dim::Const(s.storage.packed);
        if !self.p.arena.rem(offset, packed).is_ok_and(|r| r == Dim::Const(0)) {
            return Err(errors::unprintable(
                format!("an access to `{}` is not known to begin at a whole byte", s.name),
                format!("access multiples of {} elements", s.storage.packed),
            ));
        }
        if let Some(through) = &s.gather {
            let unit = Dim::Const(through.unit);
            let at = self.p.arena.div(offset, unit).map_err(errors::layout)?;
            let rest = self.p.arena.rem(offset, unit).map_err(errors::layout)?;
            let stride = through.stride / s.storage.packed;
            if through.stride % s.storage.packed != 0 {
                return Err(errors::unprintable(
                    format!("coordinates of `{}` are not whole bytes apart", s.name),
                    "index a mode whose stride is a multiple of a byte",
                ));
            }
            let rest = self.p.arena.div(rest, packed).map_err(errors::layout)?;
            let mut row = Expr::name(through.index.clone()).at(self.index(at)?);
            if through.wide {
                row = Expr::Cast(Type::named("long long"), Box::new(row));
            }
            let row = row.binary(Binary::Mul, Expr::Int(stride));
            return Ok(match rest {
                Dim::Const(0) => row,
                rest => row.binary(Binary::Add, self.index(rest)?),
            });
        }
        let index = self.p.arena.div(offset, packed).map_err(errors::layout)?;
        match index {
            Dim::Const(i) => Ok(Expr::Int(s.swizzle.apply(i))),
            _ if s.swizzle.is_none() => self.index(index),
            _ => {
                let (b, m, shift) = (s.swizzle.bits(), s.swizzle.base(), s.swizzle.shift());
                // A swizzle does not change multiples of its period. If a loop advances the index
                // by such multiples, the swizzled rest is the same in every iteration. For unrolled
                // loops the compiler folds the sum either way.
                let (whole, rest) = match self.periods(index, s.swizzle.period())? {
                    (whole, rest) if self.turns(whole) => (whole, rest),
                    _ => (Dim::Const(0), index),
                };
                let within = match rest {
                    Dim::Const(i) => Expr::Int(s.swizzle.apply(i)),
                    Dim::Expr(_) => {
                        self.helpers.insert(Helper::Swizzle);
                        let i = self.index(rest)?;
                        Expr::call(format!("swizzle<{b}, {m}, {shift}>"), [i])
                    }
                };
                match whole {
                    Dim::Const(0) => Ok(within),
                    whole => Ok(self.index(whole)?.binary(Binary::Add, within)),
                }
            }
        }
    }

    /// Whether an index depends on a loop that is not unrolled.
    fn turns(&self, index: Dim) -> bool {
        let vars = self.p.vars_in(index);
        self.advances.iter().any(|a| vars.contains(&a.var))
    }

    /// Splits an index into a multiple of the period and the rest.
    fn periods(&self, index: Dim, period: i64) -> Fallible<(Dim, Dim)> {
        let arena = &self.p.arena;
        let Dim::Expr(id) = index else { return Ok((Dim::Const(0), index)) };
        let Node::Linear { terms, constant } = arena.node(id) else {
            return Ok((Dim::Const(0), index));
        };
        let mut whole = Dim::Const(constant - constant.rem_euclid(period));
        for (term, factor) in terms.iter().filter(|(_, factor)| factor % period == 0) {
            let own = arena.mul(Dim::Expr(*term), Dim::Const(*factor)).map_err(errors::layout)?;
            whole = arena.add(whole, own).map_err(errors::layout)?;
        }
        let rest = arena.sub(index, whole).map_err(errors::layout)?;
        // The rest may be negative, in which case the index is not split.
        match arena.range(rest).0 {
            Some(0..) => Ok((whole, rest)),
            _ => Ok((Dim::Const(0), index)),
        }
    }

    /// All values as one lvalue of the C++ type `cxx`, or of the buffer's own type.
    pub(super) fn lvalue(&mut self, v: &Values, o: &AtomOperand) -> Fallible<Expr> {
        let own = v.stored.storage.cxx;
        let cxx = o.cxx.unwrap_or(own);
        let Some(&first) = v.at.first() else {
            return Err(errors::valueless(&v.text));
        };
        if cxx == own && v.at.len() == 1 {
            return self.element(&v.stored, first);
        }
        let ty = Type::pointer(cxx, v.stored.is_const);
        let address = self.address(&v.stored, first)?;
        Ok(Expr::Reinterpret(ty, Box::new(address)).deref())
    }
}
