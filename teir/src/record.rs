//! Defines the records of TEIR's specification (operation, schedule, axis, primitives) with the
//! names that they have in JSON, and writes this JSON. `json` reads it. It also turns the vectors
//! of a schedule into axes, and refuses vectors of different lengths.

use crate::violation::{Code, Field, Place, Violation, Violations};
use carbyne_embed::Scalar;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

macro_rules! words {
    ($($(#[$meta:meta])* $Name:ident: $($(#[$doc:meta])* $Word:ident $text:literal),*;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $Name { $($(#[$doc])* #[serde(rename = $text)] $Word),* }

        impl $Name {
            /// All of them, in the order of the specification.
            pub const ALL: &[$Name] = &[$($Name::$Word),*];

            /// Its name in the specification.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $($Name::$Word => $text),* }
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $Name {
            /// A list of all names.
            type Err = String;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($text => Ok($Name::$Word),)*
                    _ => Err(either(&[$($text),*])),
                }
            }
        }
    )*};
}

/// Names as a choice: `A, B or C`.
fn either(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

words! {
    /// The role of an axis.
    Dim:
        /// In both inputs and the output.
        C "C",
        /// In the first input and the output.
        M "M",
        /// In the second input and the output.
        N "N",
        /// In both inputs.
        K "K";
    /// How an axis is executed.
    Exec:
        /// One iteration after the other.
        Seq "seq",
        /// In parallel.
        Shared "shared",
        /// Inside of the primitives.
        Prim "prim";
    /// The type of all elements.
    DataType:
        /// IEEE binary32.
        Fp32 "FP32",
        /// IEEE binary64.
        Fp64 "FP64";
    /// The primitive of an output tile's first access.
    First:
        /// Nothing.
        None "None",
        /// It becomes zero.
        Zero "Zero",
        /// Its negative elements become zero.
        Relu "ReLU";
    /// The primitive of each access.
    Main:
        /// Nothing.
        None "None",
        /// The tile of the first input is copied.
        Copy "Copy",
        /// A product of matrices is added.
        Gemm "GEMM",
        /// A sum of products of matrices is added.
        Brgemm "BRGEMM";
    /// The primitive of an output tile's last access.
    Last:
        /// Nothing.
        None "None",
        /// Its negative elements become zero.
        Relu "ReLU";
}

/// A tensor of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tensor {
    /// The first input.
    In0,
    /// The second input.
    In1,
    /// The output.
    Out,
}

impl Tensor {
    /// All of them, in the order of the specification.
    pub const ALL: [Tensor; 3] = [Tensor::In0, Tensor::In1, Tensor::Out];

    /// The name of the tensor.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Tensor::In0 => "in0",
            Tensor::In1 => "in1",
            Tensor::Out => "out",
        }
    }

    /// The field of its strides.
    #[must_use]
    pub fn strides(self) -> Field {
        match self {
            Tensor::In0 => Field::StridesIn0,
            Tensor::In1 => Field::StridesIn1,
            Tensor::Out => Field::StridesOut,
        }
    }
}

impl DataType {
    /// The type of carbyne.
    pub(crate) fn scalar(self) -> Scalar {
        match self {
            DataType::Fp32 => Scalar::F32,
            DataType::Fp64 => Scalar::F64,
        }
    }
}

impl Main {
    /// Whether it adds a product.
    #[must_use]
    pub fn multiplies(self) -> bool {
        matches!(self, Main::Gemm | Main::Brgemm)
    }
}

impl Dim {
    /// Whether a tensor takes part in axes of this role.
    #[must_use]
    pub fn has(self, tensor: Tensor) -> bool {
        match self {
            Dim::C => true,
            Dim::M => tensor != Tensor::In1,
            Dim::N => tensor != Tensor::In0,
            Dim::K => tensor != Tensor::Out,
        }
    }
}

/// Axes, one entry of each vector an axis; the outermost comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Roles.
    pub dim_types: Vec<Dim>,
    /// How each is executed.
    pub exec_types: Vec<Exec>,
    /// Sizes, at least 1.
    pub dim_sizes: Vec<u64>,
    /// Strides of the first input, in elements.
    pub strides_in0: Vec<u64>,
    /// Strides of the second input.
    pub strides_in1: Vec<u64>,
    /// Strides of the output.
    pub strides_out: Vec<u64>,
}

/// Primitives, which are applied to tiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Primitives {
    /// The type of all elements.
    pub data_type: DataType,
    /// Applied to an output tile at its first access.
    pub prim_first: First,
    /// Applied at each access.
    pub prim_main: Main,
    /// Applied to an output tile at its last access.
    pub prim_last: Last,
}

/// A tensor operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Axes and their order.
    pub schedule: Schedule,
    /// Primitives, which are applied to tiles.
    pub primitives: Primitives,
}

/// One axis of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Its role.
    pub dim: Dim,
    /// How it is executed.
    pub exec: Exec,
    /// Its size.
    pub size: u64,
    /// Strides of `in0`, `in1` and `out`.
    pub strides: [u64; 3],
}

impl Axis {
    /// The stride of a tensor, 0 where it does not take part.
    #[must_use]
    pub fn stride(&self, tensor: Tensor) -> u64 {
        self.strides[tensor as usize]
    }
}

impl Schedule {
    /// The schedule of these axes.
    #[must_use]
    pub fn of_axes(axes: &[Axis]) -> Self {
        let strides = |tensor| axes.iter().map(|a| a.stride(tensor)).collect();
        Schedule {
            dim_types: axes.iter().map(|a| a.dim).collect(),
            exec_types: axes.iter().map(|a| a.exec).collect(),
            dim_sizes: axes.iter().map(|a| a.size).collect(),
            strides_in0: strides(Tensor::In0),
            strides_in1: strides(Tensor::In1),
            strides_out: strides(Tensor::Out),
        }
    }

    /// Its axes.
    ///
    /// # Errors
    /// `TEIR03` for each vector whose length is not that of most vectors.
    pub fn axes(&self) -> Result<Vec<Axis>, Violations> {
        let lengths = [
            (Field::DimTypes, self.dim_types.len()),
            (Field::ExecTypes, self.exec_types.len()),
            (Field::DimSizes, self.dim_sizes.len()),
            (Field::StridesIn0, self.strides_in0.len()),
            (Field::StridesIn1, self.strides_in1.len()),
            (Field::StridesOut, self.strides_out.len()),
        ];
        // The last one of several maxima wins, so that the first vector decides a tie.
        let alike = |(_, n): &&(Field, usize)| lengths.iter().filter(|(_, m)| m == n).count();
        let (model, wanted) = *lengths.iter().rev().max_by_key(alike).unwrap_or(&lengths[0]);
        let wrong = lengths.into_iter().filter(|(_, n)| *n != wanted);
        let wrong: Vec<_> = wrong.map(|(field, n)| unequal(field, n, model, wanted)).collect();
        if !wrong.is_empty() {
            return Err(Violations(wrong));
        }
        let axis = |i: usize| Axis {
            dim: self.dim_types[i],
            exec: self.exec_types[i],
            size: self.dim_sizes[i],
            strides: [self.strides_in0[i], self.strides_in1[i], self.strides_out[i]],
        };
        Ok((0..wanted).map(axis).collect())
    }
}

fn unequal(field: Field, found: usize, model: Field, wanted: usize) -> Violation {
    let entries = |n: usize| if n == 1 { "1 entry".to_owned() } else { format!("{n} entries") };
    let help = match found < wanted {
        true => format!("add {} to {}", entries(wanted - found), field.as_str()),
        false => format!("remove {} from {}", entries(found - wanted), field.as_str()),
    };
    let wanted = format!("{wanted}, as many as {} has", model.as_str());
    Violation::new(Code::Lengths, Place::Field(field), entries(found), wanted, help)
}

impl Operation {
    /// As JSON, indented.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Vectors and words are always JSON.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}
