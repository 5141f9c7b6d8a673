//! Views to elements: where the values of an operand lie, and how C++ names them.
//!
//! An operand's value `v` is element `v` of its view in column-major order, outermost level first;
//! that is the order in which the atom counts the values of a thread. That values which one access
//! covers lie side by side, aligned, is what [`carbyne_atoms::bind`] has judged.

use super::helper::Helper;
use super::state::{Lowering, Stored, Through};
use crate::cpp::ast::{Binary, Expr, Type};
use crate::{Fallible, errors};
use carbyne_atoms::AtomOperand;
use carbyne_ir::expr::{Dim, Node};
use carbyne_ir::program::{Gather, TensorId};
use carbyne_ir::scalar::Memory;

/// Most values of one operand of one thread.
const MAX_VALUES: i64 = 1024;

/// The values that the executing thread gives to an operand.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) stored: Stored,
    /// Offsets in scalars of the buffer, by value.
    pub(super) at: Vec<Dim>,
    /// The tensor as the text names it.
    pub(super) text: String,
}

impl Lowering<'_> {
    /// The storage of a tensor, and the tensor as the text names it.
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

    /// A buffer whose elements are found through coordinates.
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
            let found = n.map_or("not known".to_owned(), |n| n.to_string());
            let message = format!("the elements of {text} are {found}, named at once");
            return Err(errors::unprintable(message, "name fewer elements, of a known number"));
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

    /// The address of that element; of element zero, the array itself.
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

    /// The address of that element of shared memory as PTX takes it: `shared_address(a, i)`, or
    /// `shared_address(a)` of the first. What is added to the array's own address is added in 32
    /// bits: added to a pointer, NVRTC keeps it in 64.
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

    /// The index in the array of the scalar at `offset`.
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
                // Whole periods stay what they are. Where a loop moves them, what is within is the
                // same in every turn; what loops that are written out add, the compiler adds up
                // either way.
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

    /// Whether an index depends on a loop that is not written out.
    fn turns(&self, index: Dim) -> bool {
        let vars = self.p.vars_in(index);
        self.advances.iter().any(|a| vars.contains(&a.var))
    }

    /// An index as a multiple of the period and the rest.
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
        // What is left alone says whether it may be negative.
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
