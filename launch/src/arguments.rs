//! Makes the arguments of a kernel launch, as the bytes and pointers that the driver takes, from
//! the addresses of tensors, the bytes of numbers and the values of symbols. For a tensor map, this
//! file evaluates the arguments of the driver's encoder.
//!
//! The driver receives one pointer per argument, and copies as many bytes as the parameter has.
//! Every argument begins at a multiple of 8 bytes and has the machine's byte order.

use crate::Fallible;

use carbyne_codegen::{CudaKernel, MapDescription, Param};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::{Dim, ExprArena, VarId};
use carbyne_ir::program::BufferId;
use std::ffi::c_void;

/// The arguments of one kernel, in the order of its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    words: Vec<u64>,
    starts: Vec<usize>,
}

impl Arguments {
    /// The arguments of a printed kernel, from the addresses of its tensors on the GPU, the bytes
    /// of its numbers, the values of its symbols, and an encoder of tensor maps. `arena` is that of
    /// the kernel's program.
    ///
    /// # Errors
    /// [`Code::Symbolic`] for a symbol without a value, or with one that is too large for its
    /// parameter. [`Code::SymbolValue`] for sizes beyond the coordinates of boxes.
    /// [`Code::BadInput`] for a tensor without an address, a number without a value or with another
    /// size, or a tensor map that does not fit. The errors of `encode`.
    pub fn for_kernel(
        kernel: &CudaKernel,
        arena: &ExprArena,
        address: impl Fn(BufferId) -> Option<u64>,
        number: impl Fn(BufferId) -> Option<Vec<u8>>,
        symbol: impl Fn(VarId) -> Option<i64>,
        encode: impl Fn(&MapValues) -> Fallible<[u64; 16]>,
    ) -> Fallible<Arguments> {
        let mut arguments = Arguments::default();
        for param in &kernel.params {
            match param {
                Param::Pointer { name, buffer, .. } => match address(*buffer) {
                    Some(at) => arguments.pointer(at),
                    None => return Err(missing(Code::BadInput, name, "has no memory on the GPU")),
                },
                Param::Scalar { name, buffer, scalar } => {
                    let bytes = usize::try_from(scalar.bits() / 8).unwrap_or(0);
                    match number(*buffer).filter(|b| b.len() == bytes && bytes <= 8) {
                        Some(value) => arguments.bytes(&value),
                        None => return Err(missing(Code::BadInput, name, "has no value")),
                    }
                }
                Param::TensorMap { name, buffer, map } => {
                    let Some(at) = address(*buffer) else {
                        return Err(missing(Code::BadInput, name, "has no memory on the GPU"));
                    };
                    let values = MapValues::evaluate(map, at, |d| arena.eval(d, &symbol).ok());
                    match values {
                        Some(values) => {
                            values.has_coordinates(name)?;
                            arguments.words(&encode(&values)?);
                        }
                        None => {
                            let what = "has a size without a value, or one that is out of range";
                            return Err(missing(Code::Symbolic, name, what));
                        }
                    }
                }
                Param::Symbol { name, var, wide } => {
                    arguments.words(&[Arguments::symbol(name, *wide, symbol(*var))?]);
                }
            }
        }
        Ok(arguments)
    }

    /// The argument of a size that is passed with 64 or 32 bits.
    pub(crate) fn symbol(name: &str, wide: bool, value: Option<i64>) -> Fallible<u64> {
        let value = value.ok_or_else(|| missing(Code::Symbolic, name, "has no value"))?;
        match i32::try_from(value) {
            _ if wide => Ok(value.cast_unsigned()),
            Ok(value) => Ok(low(value.to_ne_bytes())),
            Err(_) => Err(missing(Code::Symbolic, name, "does not fit 32 bits")),
        }
    }

    /// Adds an address on the GPU.
    pub fn pointer(&mut self, address: u64) {
        self.words(&[address]);
    }

    /// Adds a 64-bit integer.
    pub fn wide(&mut self, value: i64) {
        self.words(&[value.cast_unsigned()]);
    }

    /// Adds a 32-bit integer.
    pub fn narrow(&mut self, value: i32) {
        self.words(&[low(value.to_ne_bytes())]);
    }

    /// Adds up to eight bytes in the machine's byte order.
    fn bytes(&mut self, value: &[u8]) {
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(value) {
            *to = *from;
        }
        self.words(&[u64::from_ne_bytes(bytes)]);
    }

    /// Adds a value of several words that is passed as a whole, such as a tensor map.
    pub fn words(&mut self, words: &[u64]) {
        self.starts.push(self.words.len());
        self.words.extend(words);
    }

    /// The number of arguments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether it has no arguments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The arguments in the form that `cuLaunchKernel` takes.
    #[must_use]
    pub fn laid_out(&self) -> LaidOut {
        let mut words = self.words.clone();
        words.resize(words.len() + MAX_PARAMETER_BYTES / 8, 0);
        let at = |start: &usize| words[*start..].as_ptr().cast_mut().cast();
        let mut pointers: Vec<*mut c_void> = self.starts.iter().map(at).collect();
        pointers.resize(MAX_PARAMETER_BYTES.max(pointers.len()), at(&self.words.len()));
        LaidOut { words, pointers }
    }
}

/// The arguments of the encoder of tensor maps, all of them evaluated. Modes are listed the fastest
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapValues {
    /// Address of the tensor's first element.
    pub address: u64,
    /// `CU_TENSOR_MAP_DATA_TYPE_*`
    pub data_type: u32,
    /// Extents of the tensor.
    pub extents: Vec<u64>,
    /// Strides in bytes of every mode except the first.
    pub strides: Vec<u64>,
    /// Extents of a box.
    pub sizes: Vec<u32>,
    /// `CU_TENSOR_MAP_SWIZZLE_*`
    pub swizzle: u32,
    /// `CU_TENSOR_MAP_L2_PROMOTION_*`
    pub promotion: u32,
}

impl MapValues {
    /// The arguments for a tensor map of a tensor at an address. A tensor without elements is
    /// replaced by one with a single element. `None` if a number has no value or is out of range.
    pub(crate) fn evaluate(
        map: &MapDescription,
        address: u64,
        value: impl Fn(Dim) -> Option<i64>,
    ) -> Option<MapValues> {
        /// A stride that the encoder accepts, in bytes.
        const STRIDE: u64 = 16;
        let number = |d: &Dim| value(*d).and_then(|v| u64::try_from(v).ok());
        let mut extents: Vec<u64> = map.extents.iter().map(number).collect::<Option<_>>()?;
        let mut strides: Vec<u64> = map.strides.iter().map(number).collect::<Option<_>>()?;
        // Nothing is copied from a tensor without elements, but the encoder accepts no extent of
        // zero.
        if extents.contains(&0) {
            extents.fill(1);
            strides.fill(STRIDE);
        }
        Some(MapValues {
            address: address.checked_add(number(&map.offset)?)?,
            data_type: map.data_type,
            extents,
            strides,
            sizes: map.sizes.iter().map(|n| u32::try_from(*n).ok()).collect::<Option<_>>()?,
            swizzle: map.swizzle,
            promotion: map.promotion,
        })
    }

    /// Checks that coordinates of boxes, which have 32 bits, reach every element.
    pub(crate) fn has_coordinates(&self, name: &str) -> Fallible<()> {
        let Some(large) = self.extents.iter().find(|n| i32::try_from(**n).is_err()) else {
            return Ok(());
        };
        let text = format!(
            "the tensor map `{name}` has an extent of {large}, but coordinates of its boxes have \
             32 bits"
        );
        let d = Diagnostic::new(Code::SymbolValue, Default::default(), text);
        Err(Box::new(d.help("launch the kernel with sizes below 2^31")))
    }
}

/// Maximum size of a kernel's parameters in bytes, in all versions of CUDA.
const MAX_PARAMETER_BYTES: usize = 1 << 15;

/// Arguments with one pointer each.
///
/// The driver reads as many pointers as the loaded kernel has parameters, and at each pointer as
/// many bytes as the parameter has. If the loaded kernel is not the printed one, the driver may
/// read more than these arguments. It then reads zeros.
pub struct LaidOut {
    words: Vec<u64>,
    pointers: Vec<*mut c_void>,
}

impl LaidOut {
    /// One pointer per parameter, and more than any kernel has.
    #[must_use]
    pub fn pointers(&self) -> &[*mut c_void] {
        debug_assert!(!self.words.is_empty(), "they point into the words");
        &self.pointers
    }
}

/// A word that begins with these bytes.
fn low(bytes: [u8; 4]) -> u64 {
    let [a, b, c, d] = bytes;
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}

fn missing(code: Code, name: &str, what: &str) -> Box<Diagnostic> {
    let text = format!("the parameter `{name}` {what}");
    Box::new(Diagnostic::new(code, Default::default(), text).help(match code {
        Code::Symbolic => "give every symbol a value: `--sym NAME=VALUE`",
        _ => "give every tensor memory on the GPU, and every number a value",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::expr::VarInfo;
    use carbyne_ir::scalar::Scalar;

    #[test]
    fn pointers_point_to_their_arguments() {
        let mut arguments = Arguments::default();
        arguments.pointer(0x7f00_1234_5678_9abc);
        arguments.narrow(-2);
        arguments.wide(-3);
        arguments.words(&[7; 16]);
        arguments.narrow(5);
        assert_eq!((arguments.len(), arguments.is_empty()), (5, false));
        let laid = arguments.laid_out();
        let first = laid.words.as_ptr().addr();
        let at: Vec<usize> = laid.pointers().iter().map(|p| (p.addr() - first) / 8).collect();
        assert_eq!(at[..6], [0, 1, 2, 3, 19, 20]);
        // The driver reads only memory of the arguments, whatever the kernel takes.
        assert_eq!(at.len(), MAX_PARAMETER_BYTES);
        assert!(at.iter().all(|at| (laid.words.len() - at) * 8 >= MAX_PARAMETER_BYTES));
        assert_eq!(arguments.words[0], 0x7f00_1234_5678_9abc);
        assert_eq!(arguments.words[1].to_ne_bytes()[..4], (-2i32).to_ne_bytes());
        assert_eq!(arguments.words[2].cast_signed(), -3);
    }

    #[test]
    fn tensor_maps_are_encoded_from_values_at_launch() {
        let arena = ExprArena::default();
        let info = VarInfo { name: "M".to_owned(), lo: 1, hi: None, div: 8 };
        let m = arena.var(info).unwrap();
        let map = MapDescription {
            data_type: 6,
            offset: Dim::Const(32),
            extents: vec![Dim::Const(64), m],
            strides: vec![arena.mul(m, Dim::Const(2)).unwrap()],
            sizes: vec![64, 128],
            swizzle: 3,
            promotion: 3,
        };
        let buffer = BufferId(0);
        let kernel = CudaKernel {
            name: "k".to_owned(),
            spec: None,
            source: String::new(),
            smem_bytes: 0,
            grid: Dim::from(1),
            block: 32,
            cluster: 1,
            params: vec![Param::TensorMap { name: "mA".to_owned(), buffer, map }],
        };
        let seen = std::cell::RefCell::new(None);
        let encode = |values: &MapValues| {
            *seen.borrow_mut() = Some(values.clone());
            Ok([9; 16])
        };
        let made =
            Arguments::for_kernel(&kernel, &arena, |_| Some(4096), |_| None, |_| Some(40), encode)
                .unwrap();
        assert_eq!(made.words, [9; 16]);
        let want = MapValues {
            address: 4128,
            data_type: 6,
            extents: vec![64, 40],
            strides: vec![80],
            sizes: vec![64, 128],
            swizzle: 3,
            promotion: 3,
        };
        assert_eq!(seen.borrow().as_ref(), Some(&want));
        // Without elements the extents become 1, which the encoder accepts.
        let empty = |_| Some(0);
        Arguments::for_kernel(&kernel, &arena, |_| Some(4096), |_| None, empty, encode).unwrap();
        let empty = MapValues { extents: vec![1, 1], strides: vec![16], ..want };
        assert_eq!(seen.borrow().as_ref(), Some(&empty));
        let at = |_| Some(4096);
        let of = |m: i64| Arguments::for_kernel(&kernel, &arena, at, |_| None, |_| Some(m), encode);
        assert!(of(i64::from(i32::MAX) / 8 * 8).is_ok());
        assert_eq!(of(1 << 31).unwrap_err().code, Code::SymbolValue);
        let none =
            Arguments::for_kernel(&kernel, &arena, at, |_| None, |_| None, encode).unwrap_err();
        assert_eq!(none.code, Code::Symbolic);
    }

    #[test]
    fn numbers_are_passed_by_value() {
        let arena = ExprArena::default();
        let number = |name: &str, i: u32, scalar| Param::Scalar {
            name: name.to_owned(),
            buffer: BufferId(i),
            scalar,
        };
        let kernel = CudaKernel {
            name: "k".to_owned(),
            spec: None,
            source: String::new(),
            smem_bytes: 0,
            grid: Dim::from(1),
            block: 32,
            cluster: 1,
            params: vec![
                number("alpha", 0, Scalar::F32),
                number("n", 1, Scalar::I64),
                number("half", 2, Scalar::F16),
            ],
        };
        let given = |short: bool| {
            move |b: BufferId| match b.0 {
                0 => Some(2.5f32.to_ne_bytes().to_vec()),
                1 => Some((-3i64).to_ne_bytes().to_vec()),
                _ if short => Some(vec![0]),
                _ => Some(0x3c00u16.to_ne_bytes().to_vec()),
            }
        };
        let no_map = |_: &MapValues| unreachable!("the kernel has no tensor map");
        let made = |short: bool| {
            Arguments::for_kernel(&kernel, &arena, |_| None, given(short), |_| None, no_map)
        };
        let all = made(false).unwrap();
        assert_eq!(all.words[0].to_ne_bytes()[..4], 2.5f32.to_ne_bytes());
        assert_eq!(all.words[1].cast_signed(), -3);
        assert_eq!(all.words[2].to_ne_bytes()[..2], 0x3c00u16.to_ne_bytes());
        let wrong = made(true).unwrap_err();
        assert_eq!(wrong.code, Code::BadInput);
        assert!(wrong.message.contains("`half` has no value"), "{wrong}");
    }

    #[test]
    fn missing_values_are_named() {
        let arena = ExprArena::default();
        let info = VarInfo { name: "M".to_owned(), lo: 0, hi: None, div: 1 };
        let var = arena.var(info).ok().and_then(|d| arena.var_id(d)).unwrap();
        let kernel = |params| CudaKernel {
            name: "k".to_owned(),
            spec: None,
            source: String::new(),
            smem_bytes: 0,
            grid: Dim::from(1),
            block: 32,
            cluster: 1,
            params,
        };
        let no_map = |_: &MapValues| unreachable!("the kernel has no tensor map");
        let of = |kernel: &CudaKernel, value| {
            Arguments::for_kernel(kernel, &arena, |_| None, |_| None, |_| value, no_map)
        };
        let narrow = kernel(vec![Param::Symbol { name: "M".to_owned(), var, wide: false }]);
        let none = of(&narrow, None).unwrap_err();
        assert_eq!(none.code, Code::Symbolic);
        let large = of(&narrow, Some(1 << 40)).unwrap_err();
        assert!(large.message.contains("`M` does not fit 32 bits"), "{large}");
        let wide = kernel(vec![Param::Symbol { name: "M".to_owned(), var, wide: true }]);
        assert_eq!(of(&wide, Some(1 << 40)).unwrap().words, [1 << 40]);
    }
}
