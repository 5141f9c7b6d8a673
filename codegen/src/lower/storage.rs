//! Names the parameters of a kernel, and prints the declarations of the buffers that it allocates.
//! A buffer whose memory or layout is still open is an error.
//!
//! A buffer in registers is an array, aligned so that vectors and words of it can be accessed.
//! Pointers to the array as words of 16, 32 and 64 bits are declared for inline PTX; those that
//! nothing uses are not printed. A buffer in shared memory is a pointer into the block's
//! allocation.

use super::helper::Helper;
use super::state::{Lowering, Stored};
use crate::cpp::ast::{Binary, Declare, Expr, Stmt, StmtKind, Type};
use crate::scalars::{storage, storage_bits};
use crate::{Fallible, errors};
use carbyne_atoms::AsmClass;
use carbyne_ir::diag::Code;
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::{Buffer, BufferId, TensorId};
use carbyne_ir::scalar::Memory;

/// The integer registers of inline PTX, and the suffix of a buffer's name for each.
const WORDS: [(AsmClass, &str); 3] =
    [(AsmClass::H, "u16"), (AsmClass::R, "u32"), (AsmClass::L, "u64")];

/// The most bytes of an array of one thread: all of its registers.
const MAX_ARRAY_BYTES: i64 = 4 * 255 * 64;

impl Lowering<'_> {
    /// A buffer that the caller provides.
    pub(super) fn parameter(&mut self, id: BufferId, written: bool) -> Fallible<Stored> {
        let b = &self.p.buffers[id];
        if b.is_number() {
            return self.stored(b, Memory::Pm, true);
        }
        if !b.is_global() {
            return Err(errors::new(
                Code::Unprintable,
                b.span,
                format!("`%{}` is provided by the caller, but is not in global memory", b.name),
                "declare the tensor in GL, or allocate it in the kernel",
            ));
        }
        self.stored(b, Memory::Gl, !written)
    }

    /// `Allocate`.
    pub(super) fn allocate(&mut self, t: TensorId, line: u32) -> Fallible<Vec<Stmt>> {
        let id = self.p.tensors[t].buffer;
        let b = &self.p.buffers[id];
        let Some(memory) = b.memory else {
            return Err(errors::new(
                Code::NotDecomposed,
                b.span,
                format!("`%{}` has no memory yet", b.name),
                "write GL, SH or RF, or decompose the program first",
            ));
        };
        let dist_open = self.p.tensors[b.tensor].dist.as_ref().is_some_and(|d| d.tv.is_none());
        if b.open || dist_open {
            return Err(errors::new(
                Code::OpenLayout,
                b.span,
                format!("the layout of `%{}` is still open", b.name),
                "write the layout, or decompose the program first",
            ));
        }
        let mut stored = self.stored(b, memory, false)?;
        let name = stored.name.clone();
        let mut stmts = match memory {
            Memory::Rf => self.registers(b, &mut stored)?,
            Memory::Sh => {
                let offset = self.arena.offset(id).unwrap_or(0);
                let base = match offset {
                    0 => Expr::name("smem"),
                    n => Expr::name("smem").binary(Binary::Add, Expr::Int(n)),
                };
                let ty = Type::pointer(stored.storage.cxx, false);
                let init = Expr::Reinterpret(ty.clone(), Box::new(base));
                vec![Stmt::new(StmtKind::Declare(Declare {
                    align: None,
                    ty,
                    name: name.into(),
                    array: None,
                    init: Some(init),
                    droppable: true,
                }))]
            }
            Memory::Gl | Memory::Ix | Memory::Pm => {
                return Err(errors::new(
                    Code::Unprintable,
                    b.span,
                    format!("`%{}` is allocated in global memory inside a kernel", b.name),
                    "declare the tensor at the top level, so that the caller provides it",
                ));
            }
        };
        self.buffers.insert(id, stored);
        self.declare_in_flight(id);
        if let Some(first) = stmts.first_mut() {
            first.comment = super::stmts::line_comment(line, "");
        }
        Ok(stmts)
    }

    fn stored(&mut self, b: &Buffer, memory: Memory, is_const: bool) -> Fallible<Stored> {
        let storage = storage(b.scalar);
        self.headers.extend(storage.header);
        let swizzle = match b.swizzle {
            None => Swizzle::none(),
            Some(bytes) => bytes.recast(8, storage_bits(b.scalar) as u32).map_err(|e| {
                let mut d = errors::layout(e);
                d.span = b.span;
                d
            })?,
        };
        if !swizzle.is_none() {
            self.helpers.insert(Helper::Swizzle);
        }
        let name = self.namer.admit(&b.name, "t");
        Ok(Stored {
            name,
            memory,
            scalar: b.scalar,
            storage,
            is_const,
            swizzle,
            words: vec![],
            gather: None,
        })
    }

    /// `alignas(16) __half a[8];`, and views of the registers as words for inline PTX.
    fn registers(&mut self, b: &Buffer, stored: &mut Stored) -> Fallible<Vec<Stmt>> {
        let Some(cosize) = b.cosize.as_const() else {
            return Err(errors::new(
                Code::Symbolic,
                b.span,
                format!("the size of `%{}` must be known", b.name),
                "give the register tensor constant extents",
            ));
        };
        let elements = (cosize + stored.storage.packed - 1) / stored.storage.packed;
        let element_bytes = storage_bits(b.scalar) / 8;
        let bytes = elements.saturating_mul(element_bytes);
        if bytes > MAX_ARRAY_BYTES {
            return Err(errors::new(
                Code::TooLarge,
                b.span,
                format!("`%{}` takes {bytes} bytes of registers of each thread", b.name),
                "distribute the tensor over more threads",
            ));
        }
        // The largest vector that fits into the array.
        let align = 1i64 << (63 - bytes.clamp(1, 16).leading_zeros());
        let mut stmts = vec![Stmt::new(StmtKind::Declare(Declare {
            align: (align > element_bytes).then_some(align),
            ty: Type::named(stored.storage.cxx),
            name: stored.name.clone().into(),
            array: Some(elements),
            init: None,
            droppable: true,
        }))];
        for (class, suffix) in WORDS {
            if class.cxx() == stored.storage.cxx || bytes % (class.bits() / 8) != 0 {
                continue;
            }
            let name = self.namer.admit(&format!("{}_{suffix}", stored.name), "t");
            let ty = Type::pointer(class.cxx(), false);
            let array = Expr::name(stored.name.clone());
            stmts.push(Stmt::new(StmtKind::Declare(Declare {
                align: None,
                ty: ty.clone(),
                name: name.clone().into(),
                array: None,
                init: Some(Expr::Reinterpret(ty, Box::new(array))),
                droppable: true,
            })));
            stored.words.push((class, name));
        }
        Ok(stmts)
    }
}
