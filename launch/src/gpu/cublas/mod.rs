//! Executes matrix products by NVIDIA's library cuBLAS, to compare the time and the results of
//! kernels with it.
//!
//! cuBLAS is not linked. [`CublasLibrary::find`] opens it at run time. If it is missing, the error
//! is R0710; if cuBLAS does not support a product or fails, it is R0711. Products of 8-bit floats,
//! and those with an epilogue, use `cublasLtMatmul` with the first algorithm of its heuristic. All
//! others use `cublasGemmEx`, which chooses the algorithm itself.
//!
//! Matrices are row-major in [`Product`] and column-major in cuBLAS. Therefore cuBLAS computes C^T
//! = B^T A^T.
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

/// Maximum size of the workspace, in bytes.
const WORKSPACE: usize = 32 << 20;

/// An opened cuBLAS.
pub struct CublasLibrary {
    opened: find::Opened,
}

impl CublasLibrary {
    /// The cuBLAS of this machine, which is opened once.
    ///
    /// # Errors
    /// [`Code::NoCublas`], with all places that were tried.
    pub fn find() -> Fallible<&'static CublasLibrary> {
        static FOUND: OnceLock<Fallible<CublasLibrary>> = OnceLock::new();
        let open = || find::open().map(|opened| CublasLibrary { opened });
        FOUND.get_or_init(open).as_ref().map_err(Clone::clone)
    }

    /// The file of the library.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.opened.file
    }

    /// The version: major, minor and patch.
    #[must_use]
    pub fn version(&self) -> (i32, i32, i32) {
        self.opened.version
    }

    fn check(&self, status: Status, what: &str) -> Fallible<()> {
        if status == 0 {
            return Ok(());
        }
        let name = self.opened.functions.status_name.map(|name| {
            // SAFETY: the function returns a static string for every status, known or not.
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
    let help = "use types, majors and sizes that cuBLAS's documentation lists";
    refused(Code::CublasFailed, message, help)
}

/// The order of a matrix in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Transposed {
    /// Rows are contiguous.
    No,
    /// Columns are contiguous.
    Yes,
}

/// The operation on a product before it is stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Epilogue {
    /// No operation.
    None,
    /// max(0, product + bias), with one bias per column of the type of C. The number is the address
    /// of the biases.
    BiasRelu(u64),
}

/// A product C = A B of matrices of M x K, K x N and M x N elements.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// M, N and K.
    pub sizes: [u32; 3],
    /// The order of A and B in memory. Rows of C are contiguous.
    pub transposed: [Transposed; 2],
    /// The types of A, B and C.
    pub types: [Scalar; 3],
    /// The accumulator type.
    pub sums: Scalar,
    /// The addresses of A, B and C.
    pub addresses: [u64; 3],
    /// The epilogue.
    pub epilogue: Epilogue,
}

/// cuBLAS on a GPU, with its own workspace.
pub struct Cublas<'g> {
    library: &'static CublasLibrary,
    gpu: &'g Gpu,
    // Dropped in this order.
    handles: Kept<Handles>,
    workspace: Buffer,
}

/// The handles of both libraries.
struct Handles {
    library: &'static CublasLibrary,
    main: P,
    lt: P,
}

impl Drop for Handles {
    fn drop(&mut self) {
        let opened = &self.library.opened;
        // SAFETY: handles that were created are alive until here; the others are null.
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
    /// Starts cuBLAS on a GPU, in the GPU's stream.
    ///
    /// # Errors
    /// [`Code::CublasFailed`], [`Code::GpuMemory`].
    pub fn start(library: &'static CublasLibrary, gpu: &'g Gpu) -> Fallible<Cublas<'g>> {
        let workspace = gpu.allocate(WORKSPACE)?;
        let mut handles = Handles { library, main: ptr::null_mut(), lt: ptr::null_mut() };
        let Functions { create, set_stream, set_workspace, .. } = &library.opened.functions;
        let what = "cuBLAS cannot be started";
        // SAFETY: the pointers are to live handles; the GPU's context is current.
        library.check(unsafe { create(&mut handles.main) }, what)?;
        // SAFETY: as above.
        library.check(unsafe { (library.opened.lt.create)(&mut handles.lt) }, what)?;
        let stream = gpu.stream.as_inner().cast();
        // SAFETY: the handle is alive, and the stream outlives `Cublas`, which borrows the GPU.
        library.check(unsafe { set_stream(handles.main, stream) }, what)?;
        // After the stream, because setting a stream resets the workspace. SAFETY: the memory has
        // this size and outlives the handle, which is dropped before it.
        let status =
            unsafe { set_workspace(handles.main, pointer(workspace.address()), WORKSPACE) };
        library.check(status, what)?;
        Ok(Cublas { library, gpu, handles: Kept::new(handles), workspace })
    }

    /// A product that can be timed.
    ///
    /// # Errors
    /// [`Code::CublasFailed`] for a product that cuBLAS does not support.
    pub fn product<'c>(&'c self, product: &Product) -> Fallible<Box<dyn Work + 'c>> {
        let call = Call::for_product(product)?;
        let by_lt = product.epilogue != Epilogue::None
            || product.types[0].bits() == 8 && product.types[0].is_float();
        Ok(match by_lt {
            true => Box::new(LtProduct::new(self, call, product)?),
            false => Box::new(ExProduct { cublas: self, call }),
        })
    }
}

/// A pointer to memory of the GPU, for C.
fn pointer(address: u64) -> P {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// A product in cuBLAS's terms: its A is B of the [`Product`], and its B is A.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Call {
    /// Rows of C in cuBLAS, which are columns of the [`Product`]; columns; the depth.
    m: c_int,
    n: c_int,
    k: c_int,
    /// Operations on A and B of cuBLAS: 0 for none, 1 for a transposition.
    ops: [c_int; 2],
    /// Leading dimensions of A, B and C of cuBLAS.
    leading: [c_int; 3],
    /// `cudaDataType` of A, B and C of cuBLAS.
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
    fn for_product(p: &Product) -> Fallible<Call> {
        let [m, n, k] = p.sizes.map(c_int::try_from);
        let (Ok(m), Ok(n), Ok(k)) = (m, n, k) else {
            return Err(failed("cuBLAS supports sizes below 2^31 only".to_owned()));
        };
        let [a, b, c] = p.types.map(data_type);
        let (Some(a), Some(b), Some(c)) = (a, b, c) else { return Err(unknown(p)) };
        let (compute, scale) = compute(p).ok_or_else(|| unknown(p))?;
        // Rows of the [`Product`] are columns of cuBLAS. A matrix that is not transposed in one is
        // not transposed in the other.
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
    let what =
        format!("cuBLAS has no product of {a} and {b} to {c} with accumulators of {}", p.sums);
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

/// `cublasComputeType_t`, and the values of alpha and beta.
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

/// The name of a product in messages.
const NAME: &str = "cuBLAS's product";

/// A product by `cublasGemmEx`.
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
        // SAFETY: the handle is alive; alpha and beta have the type that `compute` requires, and
        // are read before the call returns. The call accesses only memory of the GPU, to which
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
        self.cublas.library.check(status, "cuBLAS rejects the product")
    }
}

impl Cublas<'_> {
    /// Checks that work is enqueued in the stream in which cuBLAS was started.
    fn is_of(&self, gpu: &Gpu) -> Fallible<()> {
        match ptr::eq(self.gpu, gpu) {
            true => Ok(()),
            false => Err(failed("cuBLAS was started on another GPU".to_owned())),
        }
    }
}

/// A product by `cublasLtMatmul`.
struct LtProduct<'c> {
    cublas: &'c Cublas<'c>,
    call: Call,
    what: Made<'c>,
    /// The layouts of A, B and C of cuBLAS.
    layouts: [Made<'c>; 3],
    algo: Algo,
}

/// An object of cuBLAS that is destroyed when dropped.
struct Made<'c> {
    handle: P,
    destroy: &'c unsafe extern "C" fn(P) -> Status,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        // SAFETY: the matching function created it, and it is not used afterwards. The call does
        // not wait.
        unsafe { (self.destroy)(self.handle) };
    }
}

impl<'c> LtProduct<'c> {
    fn new(cublas: &'c Cublas<'c>, call: Call, p: &Product) -> Fallible<LtProduct<'c>> {
        let (library, lt) = (cublas.library, &cublas.library.opened.lt);
        let refuses = "cuBLAS rejects the product";
        let mut handle: P = ptr::null_mut();
        // SAFETY: the pointer is to a live handle.
        let status = unsafe { (lt.desc_create)(&mut handle, call.compute, call.scale.ty) };
        library.check(status, refuses)?;
        let what = Made { handle, destroy: &lt.desc_destroy };
        let set = |attribute: u32, value: &[u8]| {
            let (at, n) = (value.as_ptr().cast::<c_void>(), value.len());
            // SAFETY: the descriptor is alive, and `n` bytes are copied.
            library.check(unsafe { (lt.desc_set)(what.handle, attribute, at, n) }, refuses)
        };
        set(ffi::desc::TRANSA, &call.ops[0].to_ne_bytes())?;
        set(ffi::desc::TRANSB, &call.ops[1].to_ne_bytes())?;
        if p.types[0].bits() == 8 {
            // Sums stay in the accumulators of the instructions, as in printed kernels.
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
        // A layout describes a matrix as it lies in memory.
        let lies = |op, rows, columns| if op == 0 { (rows, columns) } else { (columns, rows) };
        let ((am, ak), (bk, bn)) = (lies(ops[0], m, k), lies(ops[1], k, n));
        let layouts = [layout(0, am, ak)?, layout(1, bk, bn)?, layout(2, m, n)?];
        let mut handle: P = ptr::null_mut();
        // SAFETY: the pointer is to a live handle.
        library.check(unsafe { (lt.preference_create)(&mut handle) }, refuses)?;
        let preference = Made { handle, destroy: &lt.preference_destroy };
        let most = (WORKSPACE as u64).to_ne_bytes();
        // SAFETY: the preference is alive, and `most.len()` bytes are copied.
        let status = unsafe {
            let (which, at) = (ffi::PREF_MAX_WORKSPACE_BYTES, most.as_ptr().cast());
            (lt.preference_set)(preference.handle, which, at, most.len())
        };
        library.check(status, refuses)?;
        let (mut found, mut count) = (Heuristic::default(), 0);
        let [a, b, c] = [0, 1, 2].map(|i: usize| layouts[i].handle);
        // SAFETY: all handles are alive; there is space for the one result that is requested.
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
        // SAFETY: all handles are alive; alpha and beta have the type of the description, and are
        // read before the call returns; the workspace has this size. The call accesses only memory
        // of the GPU, to which there are no references.
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
        self.cublas.library.check(status, "cuBLAS rejects the product")
    }
}
