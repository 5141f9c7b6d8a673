//! Imitates cuBLAS for tests on machines without a GPU. It computes the requested matrix products
//! in the memory of the fake driver. `FAKE_CUBLAS` selects an error. `bench.rs` compiles this file
//! to both libraries of cuBLAS.
#![allow(non_snake_case, clippy::missing_safety_doc, reason = "the library's own interface")]

#[path = "fake_numbers.rs"]
mod fake_numbers;

use fake_numbers::Type;
use std::ffi::{c_char, c_int, c_void};

type P = *mut c_void;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> P;
    fn dlsym(library: P, name: *const c_char) -> P;
}

fn goes_wrong(how: &str) -> bool {
    std::env::var("FAKE_CUBLAS").is_ok_and(|v| v == how)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetProperty(which: c_int, value: *mut c_int) -> c_int {
    unsafe { *value = [13, 1, 2][which as usize] };
    if goes_wrong("unversioned") { 1 } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGetStatusName(status: c_int) -> *const c_char {
    match status {
        15 => c"CUBLAS_STATUS_NOT_SUPPORTED".as_ptr(),
        _ => c"CUBLAS_STATUS_NOT_INITIALIZED".as_ptr(),
    }
}

/// A handle of either library: whether the stream was set before the workspace.
#[derive(Default)]
struct Handle {
    stream: bool,
    workspace: bool,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasCreate_v2(to: *mut P) -> c_int {
    unsafe { *to = Box::into_raw(Box::<Handle>::default()).cast() };
    if goes_wrong("start") { 1 } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasDestroy_v2(handle: P) -> c_int {
    drop(unsafe { Box::from_raw(handle.cast::<Handle>()) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSetStream_v2(handle: P, stream: P) -> c_int {
    // As in the real library, setting a stream resets the workspace.
    unsafe { *handle.cast::<Handle>() = Handle { stream: !stream.is_null(), workspace: false } };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasSetWorkspace_v2(handle: P, at: P, bytes: usize) -> c_int {
    unsafe { (*handle.cast::<Handle>()).workspace = !at.is_null() && bytes == 32 << 20 };
    0
}

/// A column-major matrix, or a row-major one if an operation transposes it.
#[derive(Copy, Clone)]
struct Matrix {
    at: u64,
    ty: Type,
    leading: usize,
    transposed: bool,
}

impl Matrix {
    fn place(&self, row: usize, column: usize) -> usize {
        let (r, c) = if self.transposed { (column, row) } else { (row, column) };
        r + c * self.leading
    }
}

/// Computes the product. With a bias, adds a number per row and takes the maximum with 0.
unsafe fn product([m, n, k]: [usize; 3], a: Matrix, b: Matrix, c: Matrix, bias: Option<u64>) {
    for row in 0..m {
        for column in 0..n {
            let term = |i| unsafe {
                a.ty.read(a.at, a.place(row, i)) * b.ty.read(b.at, b.place(i, column))
            };
            let mut sum = (0..k).map(term).sum::<f64>();
            if let Some(bias) = bias {
                sum = (sum + unsafe { c.ty.read(bias, row) }).max(0.0);
            }
            unsafe { c.ty.write(c.at, c.place(row, column), sum) };
        }
    }
    // The product takes 450 us.
    unsafe {
        let driver = dlopen(c"libcuda.so.1".as_ptr(), 2);
        let advance = dlsym(driver, c"fake_advance".as_ptr());
        if !advance.is_null() {
            let advance: extern "C" fn(u64) = std::mem::transmute(advance);
            advance(450_000);
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasGemmEx(
    handle: P,
    transa: c_int,
    transb: c_int,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const c_void,
    a: P,
    a_type: c_int,
    lda: c_int,
    b: P,
    b_type: c_int,
    ldb: c_int,
    beta: *const c_void,
    c: P,
    c_type: c_int,
    ldc: c_int,
    compute: c_int,
    algorithm: c_int,
) -> c_int {
    let handle = unsafe { &*handle.cast::<Handle>() };
    let one = match compute {
        64 => unsafe { *alpha.cast::<u16>() == 0x3c00 && *beta.cast::<u16>() == 0 },
        72 => unsafe { *alpha.cast::<i32>() == 1 && *beta.cast::<i32>() == 0 },
        68 | 77 => unsafe { *alpha.cast::<f32>() == 1.0 && *beta.cast::<f32>() == 0.0 },
        _ => false,
    };
    if goes_wrong("refuses") || !handle.stream || !handle.workspace || algorithm != -1 || !one {
        return 15;
    }
    let matrix = |at: P, ty, leading: c_int, op| Matrix {
        at: at.expose_provenance() as u64,
        ty: Type::of_cuda(ty),
        leading: leading as usize,
        transposed: op == 1,
    };
    let (a, b) = (matrix(a, a_type, lda, transa), matrix(b, b_type, ldb, transb));
    let sizes = [m, n, k].map(|n| n as usize);
    unsafe { product(sizes, a, b, matrix(c, c_type, ldc, 0), None) };
    0
}

/// The attributes of a description, by number.
#[derive(Default)]
struct Description {
    compute: c_int,
    attributes: std::collections::BTreeMap<u32, u64>,
}

struct Layout {
    ty: c_int,
    rows: u64,
    columns: u64,
    leading: i64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtCreate(to: *mut P) -> c_int {
    unsafe { cublasCreate_v2(to) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtDestroy(handle: P) -> c_int {
    unsafe { cublasDestroy_v2(handle) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescCreate(to: *mut P, compute: c_int, _: c_int) -> c_int {
    let made = Box::new(Description { compute, ..Description::default() });
    unsafe { *to = Box::into_raw(made).cast() };
    0
}

unsafe fn set(to: P, which: u32, from: *const c_void, n: usize) -> c_int {
    let mut bytes = [0; 8];
    unsafe { from.cast::<u8>().copy_to(bytes.as_mut_ptr(), n) };
    let to = unsafe { &mut *to.cast::<Description>() };
    to.attributes.insert(which, u64::from_ne_bytes(bytes));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescSetAttribute(
    to: P,
    which: u32,
    from: *const c_void,
    n: usize,
) -> c_int {
    unsafe { set(to, which, from, n) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulDescDestroy(description: P) -> c_int {
    drop(unsafe { Box::from_raw(description.cast::<Description>()) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutCreate(
    to: *mut P,
    ty: c_int,
    rows: u64,
    columns: u64,
    leading: i64,
) -> c_int {
    unsafe { *to = Box::into_raw(Box::new(Layout { ty, rows, columns, leading })).cast() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatrixLayoutDestroy(layout: P) -> c_int {
    drop(unsafe { Box::from_raw(layout.cast::<Layout>()) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceCreate(to: *mut P) -> c_int {
    unsafe { cublasLtMatmulDescCreate(to, 0, 0) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceSetAttribute(
    to: P,
    which: u32,
    from: *const c_void,
    n: usize,
) -> c_int {
    unsafe { set(to, which, from, n) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulPreferenceDestroy(preference: P) -> c_int {
    unsafe { cublasLtMatmulDescDestroy(preference) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    _: P,
    description: P,
    a: P,
    b: P,
    c: P,
    d: P,
    preference: P,
    most: c_int,
    to: *mut [u64; 12],
    n: *mut c_int,
) -> c_int {
    let preference = unsafe { &*preference.cast::<Description>() };
    if preference.attributes.get(&1) != Some(&(32 << 20)) || most != 1 || c != d {
        return 7;
    }
    let of = |layout: P| unsafe { &*layout.cast::<Layout>() };
    let op = |which| unsafe { &*description.cast::<Description>() }.attributes.get(&which).copied();
    // For 8-bit floats, the K elements of both factors must be consecutive.
    let eight = of(a).ty >= 28 || of(b).ty >= 28;
    let there = !eight || (op(3), op(4), op(25)) == (Some(1), Some(0), Some(1));
    unsafe {
        *to = [7; 12];
        // Bytes of the workspace; the status and a number of waves.
        ((*to)[8], (*to)[9]) = (1 << 20, 0);
        *n = c_int::from(there && !goes_wrong("algorithm"));
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cublasLtMatmul(
    _: P,
    description: P,
    alpha: *const c_void,
    a: P,
    a_layout: P,
    b: P,
    b_layout: P,
    beta: *const c_void,
    c: P,
    c_layout: P,
    d: P,
    d_layout: P,
    algorithm: *const [u64; 8],
    workspace: P,
    bytes: usize,
    stream: P,
) -> c_int {
    let what = unsafe { &*description.cast::<Description>() };
    let right = unsafe {
        *algorithm == [7; 8]
            && *alpha.cast::<f32>() == 1.0
            && *beta.cast::<f32>() == 0.0
            && (what.compute == 68 || what.compute == 77)
    };
    if !right || workspace.is_null() || bytes != 32 << 20 || stream.is_null() || c != d {
        return 7;
    }
    let of = |layout: P| unsafe { &*layout.cast::<Layout>() };
    let op = |which| what.attributes.get(&which).copied() == Some(1);
    let matrix = |at: P, layout: P, transposed| Matrix {
        at: at.expose_provenance() as u64,
        ty: Type::of_cuda(of(layout).ty),
        leading: of(layout).leading as usize,
        transposed,
    };
    let (m, n) = (of(d_layout).rows, of(c_layout).columns);
    let (la, lb) = (of(a_layout), of(b_layout));
    let [(am, k), (bk, bn)] = [(la, op(3)), (lb, op(4))]
        .map(|(l, t)| if t { (l.columns, l.rows) } else { (l.rows, l.columns) });
    if (am, bn, k) != (m, n, bk) {
        return 7;
    }
    let bias = (what.attributes.get(&7) == Some(&6)).then(|| what.attributes.get(&8).copied());
    let sizes = [m, n, k].map(|n| n as usize);
    let (a, b) = (matrix(a, a_layout, op(3)), matrix(b, b_layout, op(4)));
    unsafe { product(sizes, a, b, matrix(d, d_layout, false), bias.flatten()) };
    0
}
