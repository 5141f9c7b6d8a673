//! Lists words that must not be printed as names of a program's tensors, variables or kernels
//! ([`is_reserved`]): words of C++ and CUDA, and names that this crate prints itself. Kernels must
//! also differ from functions of the C library that host code declares ([`LIBC`]).
//!
//! Sources, read 2025-11: C++ keywords and alternative tokens from cppreference.com (C++ keywords,
//! up to C++23); CUDA's built-in variables, types and functions from the CUDA C++ Programming Guide
//! 12.9, appendix C++ Language Extensions; the C library and math functions that NVRTC declares
//! from the CUDA Math API 12.9 and the guide's section on the C standard library. A kernel has C
//! linkage, so it clashes with a function of the same name whatever its parameters are.
//!
//! Invariant: every list is sorted, because [`is_reserved`] makes binary searches.

/// C++ keywords, alternative tokens, and predefined macros of GNU mode.
#[rustfmt::skip] // As many on a line as fit.
const CXX: &[&str] = &[
    "alignas", "alignof", "and", "and_eq", "asm", "atomic_cancel", "atomic_commit",
    "atomic_noexcept", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
    "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl",
    "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype",
    "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export",
    "extern", "false", "final", "float", "for", "friend", "goto", "i386", "if", "import", "inline",
    "int", "linux", "long", "module", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "override", "private", "protected", "public", "reflexpr",
    "register", "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof",
    "static", "static_assert", "static_cast", "struct", "switch", "synchronized", "template",
    "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof",
    "union", "unix", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor",
    "xor_eq",
];

/// CUDA's variables and types, and functions of the C library and the math library.
#[rustfmt::skip] // As many on a line as fit.
const CUDA: &[&str] = &[
    "NULL", "abort", "abs", "acos", "acosf", "acosh", "acoshf", "asin", "asinf", "asinh", "asinhf",
    "assert", "atan", "atan2", "atan2f", "atanf", "atanh", "atanhf", "blockDim", "blockIdx", "cbrt",
    "cbrtf", "ceil", "ceilf", "char1", "char2", "char3", "char4", "clock", "clock64", "clock_t",
    "copysign", "copysignf", "cos", "cosf", "cosh", "coshf", "cospi", "cospif", "cyl_bessel_i0",
    "cyl_bessel_i0f", "cyl_bessel_i1", "cyl_bessel_i1f", "dim3", "double1", "double2", "double3",
    "double4", "erf", "erfc", "erfcf", "erfcinv", "erfcinvf", "erfcx", "erfcxf", "erff", "erfinv",
    "erfinvf", "exp", "exp10", "exp10f", "exp2", "exp2f", "expf", "expm1", "expm1f", "fabs",
    "fabsf", "fdim", "fdimf", "fdivide", "fdividef", "float1", "float2", "float3", "float4",
    "floor", "floorf", "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf", "fmod", "fmodf", "fprintf",
    "free", "frexp", "frexpf", "gridDim", "half", "half2", "hypot", "hypotf", "ilogb", "ilogbf",
    "int1", "int2", "int3", "int4", "isfinite", "isinf", "isnan", "j0", "j0f", "j1", "j1f", "jn",
    "jnf", "labs", "ldexp", "ldexpf", "lgamma", "lgammaf", "llabs", "llmax", "llmin", "llrint",
    "llrintf", "llround", "llroundf", "log", "log10", "log10f", "log1p", "log1pf", "log2", "log2f",
    "logb", "logbf", "logf", "long1", "long2", "long3", "long4", "longlong1", "longlong2",
    "longlong3", "longlong4", "lrint", "lrintf", "lround", "lroundf", "main", "malloc", "max",
    "memcpy", "memset", "min", "modf", "modff", "nan", "nanf", "nearbyint", "nearbyintf",
    "nextafter", "nextafterf", "norm", "norm3d", "norm3df", "norm4d", "norm4df", "normcdf",
    "normcdff", "normcdfinv", "normcdfinvf", "normf", "nv_bfloat16", "nv_bfloat162",
    "operator_delete", "operator_new", "pow", "powf", "printf", "ptrdiff_t", "rcbrt", "rcbrtf",
    "remainder", "remainderf", "remquo", "remquof", "rhypot", "rhypotf", "rint", "rintf", "rnorm",
    "rnorm3d", "rnorm3df", "rnorm4d", "rnorm4df", "rnormf", "round", "roundf", "rsqrt", "rsqrtf",
    "scalbln", "scalblnf", "scalbn", "scalbnf", "short1", "short2", "short3", "short4", "signbit",
    "sin", "sincos", "sincosf", "sincospi", "sincospif", "sinf", "sinh", "sinhf", "sinpi", "sinpif",
    "size_t", "sqrt", "sqrtf", "std", "tan", "tanf", "tanh", "tanhf", "tex1D", "tex2D", "tex3D",
    "tgamma", "tgammaf", "threadIdx", "trunc", "truncf", "uchar1", "uchar2", "uchar3", "uchar4",
    "uint1", "uint2", "uint3", "uint4", "ullmax", "ullmin", "ulong1", "ulong2", "ulong3", "ulong4",
    "ulonglong1", "ulonglong2", "ulonglong3", "ulonglong4", "umax", "umin", "ushort1", "ushort2",
    "ushort3", "ushort4", "vprintf", "warpSize", "y0", "y0f", "y1", "y1f", "yn", "ynf",
];

/// Functions of the C library that `cuda_runtime.h` declares and that a kernel could be named
/// after: both have C linkage. Names inside of functions may hide them. From glibc 2.36, read
/// 2026-11.
#[rustfmt::skip] // As many on a line as fit.
pub(crate) const LIBC: &[&str] = &[
    "atexit", "calloc", "canonicalize", "ctime", "difftime", "div", "exit", "fadd",
    "fdiv", "ffma", "ffs", "finite", "fmaximum", "fminimum", "fmul", "fsqrt", "fsub", "gamma",
    "ldiv", "lldiv", "memchr", "memcmp", "memmove", "popen", "qsort", "rand", "random", "realloc",
    "remove", "rename", "rewind", "roundeven", "scalb", "scanf", "select", "setbuf", "significand",
    "srand",
    "system", "time", "totalorder",
];

/// Names that this crate prints itself.
const OURS: &[&str] = &[
    "bad_sizes",
    "choose",
    "encode_tensor_map",
    "floor_div",
    "floor_mod",
    "host_floor_div",
    "host_floor_mod",
    "launch_kernel",
    "load_unaligned",
    "shared_address",
    "smem",
    "swizzle",
];

/// Whether `word` must not be printed as a name.
pub(crate) fn is_reserved(word: &str) -> bool {
    // `__x` and `_X` are reserved for the implementation; a leading `_` is reserved at file scope.
    word.starts_with('_')
        || word.contains("__")
        || [CXX, CUDA, OURS].iter().any(|list| list.binary_search(&word).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for list in [CXX, CUDA, LIBC, OURS] {
            for pair in list.windows(2) {
                assert!(pair[0] < pair[1], "{} before {}", pair[0], pair[1]);
            }
        }
    }
}
