//! Products by NVIDIA's library cuBLAS, to compare kernels with.
//!
//! It is not linked. [`CublasLibrary::find`] opens it at run time and says plainly when there is
//! none (R0710); what it does not do is R0711. Products of 8-bit floats, and those with an
//! epilogue, are `cublasLtMatmul` by the algorithm that its heuristic names first; all others are
//! `cublasGemmEx`, which chooses for itself.
//!
//! Matrices are given as we write them, rows of C consecutive. cuBLAS counts along columns: it is
//! asked for C^T = B^T A^T.
#![allow(unsafe_code, reason = "the C interface of cuBLAS")]

mod ffi;
mod find;

pub use find::CUBLAS_VARIABLE;

use super::driver::Kept;
use super::{Buffer, Gpu, Work};
use crate::{Fallible, refused};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::scalar::Scalar;
use ffi::{Algo, Functions, Heuristic, P, Status};
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

/// Bytes that it may use beside its operands.
const WORKSPACE: usize = 32 << 20;

/// cuBLAS, opened.
pub struct CublasLibrary {
    opened: find::Opened,
}

impl CublasLibrary {
    /// That of this machine, opened once.
    ///
    /// # Errors
    /// [`Code::NoCublas`], with every place that was tried.
    pub fn find() -> Fallible<&'static CublasLibrary> {
        static FOUND: OnceLock<Fallible<CublasLibrary>> = OnceLock::new();
        let open = || find::open().map(|opened| CublasLibrary { opened });
        FOUND.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    /// The file it was opened from.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.opened.file
    }

    /// Major, minor and patch.
    #[must_use]
    pub fn version(&self) -> (i32, i32, i32) {
        self.opened.version
    }

    fn check(&self, status: Status, what: &str) -> Fallible<()> {
        if status == 0 {
            return Ok(());
        }
        let name = self.opened.functions.status_name.map(|name| {
            // SAFETY: it gives a static string for every status, known or not.
            unsafe { name(status) }
        });
        let name = name.filter(|name| !name.is_null()).map_or_else(
            || format!("status {status}"),
            // SAFETY: a static string that ends in NUL.
            |name| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned(),
        );
        Err(failed(format!("{what}: {name}")))
    }
}

fn failed(message: String) -> Box<Diagnostic> {
    let help = "ask for types, majors and sizes that cuBLAS's documentation lists";
    refused(Code::CublasFailed, message, help)
}

/// How a matrix lies in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Transposed {
    /// Rows are consecutive.
    No,
    /// Columns are.
    Yes,
}

/// What is computed of a product before it is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Epilogue {
    /// Nothing.
    None,
    /// The larger of 0 and the sum with a number a column, of the type of C. The address is that of
    /// the numbers.
    BiasRelu(u64),
}

/// A product C = A B of matrices of M x K, K x N and M x N elements, with the addresses of the
/// first ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// M, N and K.
    pub sizes: [u32; 3],
    /// How A and B lie in memory; rows of C are consecutive.
    pub transposed: [Transposed; 2],
    /// Of A, B and C.
    pub types: [Scalar; 3],
    /// What sums are of.
    pub sums: Scalar,
    /// Of A, B and C.
    pub addresses: [u64; 3],
    /// What follows.
    pub epilogue: Epilogue,
}

/// cuBLAS on a GPU, with memory of its own.
pub struct Cublas<'g> {
    library: &'static CublasLibrary,
    gpu: &'g Gpu,
    // Dropped in this order.
    handles: Kept<Handles>,
    workspace: Buffer,
}

/// Those of both libraries.
struct Handles {
    library: &'static CublasLibrary,
    main: P,
    lt: P,
}

impl Drop for Handles {
    fn drop(&mut self) {
        let opened = &self.library.opened;
        // SAFETY: handles that were made are live until here, and null stands for those that were
        // not.
        unsafe {
            if !self.main.is_null() {
                (opened.functions.destroy)(self.main);
            }
            if !self.lt.is_null() {
                (opened.lt.destroy)(self.lt);
            }
        }
    }
}

impl<'g> Cublas<'g> {
    /// Starts it on a GPU, in the GPU's stream.
    ///
    /// # Errors
    /// [`Code::CublasFailed`], [`Code::GpuMemory`].
    pub fn start(library: &'static CublasLibrary, gpu: &'g Gpu) -> Fallible<Cublas<'g>> {
        let workspace = gpu.allocate(WORKSPACE)?;
        let mut handles = Handles { library, main: ptr::null_mut(), lt: ptr::null_mut() };
        let Functions { create, set_stream, set_workspace, .. } = &library.opened.functions;
        let what = "cuBLAS does not start";
        // SAFETY: the pointers are to live handles; the GPU's context is current.
        library.check(unsafe { create(&mut handles.main) }, what)?;
        // SAFETY: as above.
        library.check(unsafe { (library.opened.lt.create)(&mut handles.lt) }, what)?;
        let stream = gpu.stream.as_inner().cast();
        // SAFETY: the handle is live, the stream outlives `Cublas`, which borrows the GPU.
        library.check(unsafe { set_stream(handles.main, stream) }, what)?;
        // Of another stream it would forget the workspace, so that this comes second. SAFETY: the
        // memory is as long as we say and outlives the handle, which is dropped before it.
        let status =
            unsafe { set_workspace(handles.main, pointer(workspace.address()), WORKSPACE) };
        library.check(status, what)?;
        Ok(Cublas { library, gpu, handles: Kept::new(handles), workspace })
    }

    /// A product that can be timed.
    ///
    /// # Errors
    /// [`Code::CublasFailed`] for one that cuBLAS does not have.
    pub fn product<'c>(&'c self, product: &Product) -> Fallible<Box<dyn Work + 'c>> {
        let call = Call::of(product)?;
        let by_lt = product.epilogue != Epilogue::None
            || product.types[0].bits() == 8 && product.types[0].is_float();
        Ok(match by_lt {
            true => Box::new(LtProduct::new(self, call, product)?),
            false => Box::new(ExProduct { cublas: self, call }),
        })
    }
}

/// Memory of the GPU as C has it.
fn pointer(address: u64) -> P {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// A product as cuBLAS is asked for it: its A is our B, and its B our A.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Call {
    /// Rows of its C, which are our columns; columns; terms of a sum.
    m: c_int,
    n: c_int,
    k: c_int,
    /// Operations on its A and B: 0 for none, 1 for a transposition.
    ops: [c_int; 2],
    /// From one column of its A, B and C to the next.
    leading: [c_int; 3],
    /// `cudaDataType` of its A, B and C.
    types: [c_int; 3],
    /// `cublasComputeType_t`
    compute: c_int,
    scale: Scale,
    addresses: [u64; 3],
}

/// The type of the factors alpha and beta, which are 1 and 0.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Scale {
    /// `cudaDataType`
    ty: c_int,
    one: [u8; 8],
}

const ZERO: [u8; 8] = [0; 8];

impl Call {
    fn of(p: &Product) -> Fallible<Call> {
        let [m, n, k] = p.sizes.map(c_int::try_from);
        let (Ok(m), Ok(n), Ok(k)) = (m, n, k) else {
            return Err(failed("cuBLAS takes sizes below 2^31".to_owned()));
        };
        let [a, b, c] = p.types.map(data_type);
        let (Some(a), Some(b), Some(c)) = (a, b, c) else { return Err(unknown(p)) };
        let (compute, scale) = compute(p).ok_or_else(|| unknown(p))?;
        // Rows of ours are its columns: what we have written as it stands, it takes as it lies.
        let op = |t| c_int::from(t == Transposed::Yes);
        let [ta, tb] = p.transposed;
        let leading = |t, rows, columns| if t == Transposed::No { columns } else { rows };
        Ok(Call {
            m: n,
            n: m,
            k,
            ops: [op(tb), op(ta)],
            leading: [leading(tb, k, n), leading(ta, m, k), n],
            types: [b, a, c],
            compute,
            scale,
            addresses: [p.addresses[1], p.addresses[0], p.addresses[2]],
        })
    }
}

fn unknown(p: &Product) -> Box<Diagnostic> {
    let [a, b, c] = p.types;
    let what = format!("cuBLAS has no product of {a} and {b} into {c} with sums of {}", p.sums);
    failed(what)
}

/// `cudaDataType`
fn data_type(scalar: Scalar) -> Option<c_int> {
    Some(match scalar {
        Scalar::F32 | Scalar::Tf32 => 0,
        Scalar::F64 => 1,
        Scalar::F16 => 2,
        Scalar::I8 => 3,
        Scalar::I32 => 10,
        Scalar::Bf16 => 14,
        Scalar::E4m3 => 28,
        Scalar::E5m2 => 29,
        _ => return None,
    })
}

/// `cublasComputeType_t`, and what alpha and beta are.
fn compute(p: &Product) -> Option<(c_int, Scale)> {
    let scale = |scalar, one: &[u8]| {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(one).for_each(|(to, from)| *to = *from);
        Some(Scale { ty: data_type(scalar)?, one: bytes })
    };
    let of = match (p.types[0], p.sums) {
        (Scalar::F16, Scalar::F16) => (64, scale(Scalar::F16, &0x3c00u16.to_ne_bytes())?),
        (Scalar::Tf32, Scalar::F32) => (77, scale(Scalar::F32, &1f32.to_ne_bytes())?),
        (Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::E4m3 | Scalar::E5m2, Scalar::F32) => {
            (68, scale(Scalar::F32, &1f32.to_ne_bytes())?)
        }
        (Scalar::F64, Scalar::F64) => (70, scale(Scalar::F64, &1f64.to_ne_bytes())?),
        (Scalar::I8, Scalar::I32) => (72, scale(Scalar::I32, &1i32.to_ne_bytes())?),
        _ => return None,
    };
    Some(of)
}

/// What messages call a product.
const NAME: &str = "cuBLAS's product";

/// By `cublasGemmEx`.
struct ExProduct<'c> {
    cublas: &'c Cublas<'c>,
    call: Call,
}

impl Work for ExProduct<'_> {
    fn name(&self) -> &str {
        NAME
    }

    fn enqueue(&self, gpu: &Gpu) -> Fallible<()> {
        self.cublas.is_of(gpu)?;
        let Call { m, n, k, ops, leading, types, compute, scale, addresses } = &self.call;
        let [a, b, c] = addresses.map(pointer);
        // SAFETY: the handle is live; alpha and beta are of the type that `compute` asks for and
        // are read before the call returns. Whatever it does, it does to the GPU's memory, to which
        // there are no references.
        let status = unsafe {
            (self.cublas.library.opened.functions.gemm)(
                self.cublas.handles.main,
                ops[0],
                ops[1],
                *m,
                *n,
                *k,
                scale.one.as_ptr().cast(),
                a,
                types[0],
                leading[0],
                b,
                types[1],
                leading[1],
                ZERO.as_ptr().cast(),
                c,
                types[2],
                leading[2],
                *compute,
                ffi::GEMM_DEFAULT,
            )
        };
        self.cublas.library.check(status, "cuBLAS refuses the product")
    }
}

impl Cublas<'_> {
    /// That work is put into the stream in which cuBLAS was started.
    fn is_of(&self, gpu: &Gpu) -> Fallible<()> {
        match ptr::eq(self.gpu, gpu) {
            true => Ok(()),
            false => Err(failed("cuBLAS was started on another GPU".to_owned())),
        }
    }
}

/// By `cublasLtMatmul`.
struct LtProduct<'c> {
    cublas: &'c Cublas<'c>,
    call: Call,
    what: Made<'c>,
    /// Of its A, B and C.
    layouts: [Made<'c>; 3],
    algo: Algo,
}

/// Something of cuBLAS's that is destroyed when dropped.
struct Made<'c> {
    handle: P,
    destroy: &'c unsafe extern "C" fn(P) -> Status,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by the function that belongs to this one, and is not used afterwards.
        // Nothing waits.
        unsafe { (self.destroy)(self.handle) };
    }
}

impl<'c> LtProduct<'c> {
    fn new(cublas: &'c Cublas<'c>, call: Call, p: &Product) -> Fallible<LtProduct<'c>> {
        let (library, lt) = (cublas.library, &cublas.library.opened.lt);
        let refuses = "cuBLAS refuses the product";
        let mut handle: P = ptr::null_mut();
        // SAFETY: the pointer is to a live handle.
        let status = unsafe { (lt.desc_create)(&mut handle, call.compute, call.scale.ty) };
        library.check(status, refuses)?;
        let what = Made { handle, destroy: &lt.desc_destroy };
        let set = |attribute: u32, value: &[u8]| {
            let (at, n) = (value.as_ptr().cast::<c_void>(), value.len());
            // SAFETY: the descriptor is live, and as many bytes as we say are copied.
            library.check(unsafe { (lt.desc_set)(what.handle, attribute, at, n) }, refuses)
        };
        set(ffi::desc::TRANSA, &call.ops[0].to_ne_bytes())?;
        set(ffi::desc::TRANSB, &call.ops[1].to_ne_bytes())?;
        if p.types[0].bits() == 8 {
            // Sums stay where the instructions add them up, as in our kernels.
            set(ffi::desc::FAST_ACCUM, &1i8.to_ne_bytes())?;
        }
        if let Epilogue::BiasRelu(address) = p.epilogue {
            set(ffi::desc::EPILOGUE, &ffi::EPILOGUE_RELU_BIAS.to_ne_bytes())?;
            set(ffi::desc::BIAS_POINTER, &address.to_ne_bytes())?;
        }
        let layout = |i: usize, rows: c_int, columns: c_int| {
            let mut handle: P = ptr::null_mut();
            let (rows, columns) =
                (u64::from(rows.unsigned_abs()), u64::from(columns.unsigned_abs()));
            let leading = i64::from(call.leading[i]);
            // SAFETY: the pointer is to a live handle.
            let status =
                unsafe { (lt.layout_create)(&mut handle, call.types[i], rows, columns, leading) };
            library.check(status, refuses)?;
            Ok::<_, Box<Diagnostic>>(Made { handle, destroy: &lt.layout_destroy })
        };
        let Call { m, n, k, ops, .. } = call;
        // Layouts are of matrices as they lie in memory.
        let lies = |op, rows, columns| if op == 0 { (rows, columns) } else { (columns, rows) };
        let ((am, ak), (bk, bn)) = (lies(ops[0], m, k), lies(ops[1], k, n));
        let layouts = [layout(0, am, ak)?, layout(1, bk, bn)?, layout(2, m, n)?];
        let mut handle: P = ptr::null_mut();
        // SAFETY: the pointer is to a live handle.
        library.check(unsafe { (lt.preference_create)(&mut handle) }, refuses)?;
        let preference = Made { handle, destroy: &lt.preference_destroy };
        let most = (WORKSPACE as u64).to_ne_bytes();
        // SAFETY: the preference is live, and as many bytes as we say are copied.
        let status = unsafe {
            let (which, at) = (ffi::PREF_MAX_WORKSPACE_BYTES, most.as_ptr().cast());
            (lt.preference_set)(preference.handle, which, at, most.len())
        };
        library.check(status, refuses)?;
        let (mut found, mut count) = (Heuristic::default(), 0);
        let [a, b, c] = [0, 1, 2].map(|i: usize| layouts[i].handle);
        // SAFETY: all handles are live; there is room for the one result that is asked for.
        let status = unsafe {
            let (lt_handle, preference) = (cublas.handles.lt, preference.handle);
            let (to, n) = (&raw mut found, &raw mut count);
            (lt.heuristic)(lt_handle, what.handle, a, b, c, c, preference, 1, to, n)
        };
        library.check(status, "cuBLAS has no algorithm for the product")?;
        if count < 1 {
            return Err(failed("cuBLAS has no algorithm for the product".to_owned()));
        }
        library.check(found.state, "cuBLAS has no algorithm for the product")?;
        Ok(LtProduct { cublas, call, what, layouts, algo: found.algo })
    }
}

impl Work for LtProduct<'_> {
    fn name(&self) -> &str {
        NAME
    }

    fn enqueue(&self, gpu: &Gpu) -> Fallible<()> {
        self.cublas.is_of(gpu)?;
        let [a, b, c] = self.call.addresses.map(pointer);
        let [la, lb, lc] = [0, 1, 2].map(|i: usize| self.layouts[i].handle);
        // SAFETY: all handles are live; alpha and beta are of the type of the description and are
        // read before the call returns; the workspace has as many bytes as we say. Whatever it
        // does, it does to the GPU's memory, to which there are no references.
        let status = unsafe {
            (self.cublas.library.opened.lt.matmul)(
                self.cublas.handles.lt,
                self.what.handle,
                self.call.scale.one.as_ptr().cast(),
                a,
                la,
                b,
                lb,
                ZERO.as_ptr().cast(),
                c,
                lc,
                c,
                lc,
                &self.algo,
                pointer(self.cublas.workspace.address()),
                WORKSPACE,
                gpu.stream.as_inner().cast(),
            )
        };
        self.cublas.library.check(status, "cuBLAS refuses the product")
    }
}
