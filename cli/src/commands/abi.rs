//! `compile --emit abi`: prints the data that a launcher needs as JSON: the parameters of kernels,
//! their grids, blocks and shared memory. The document describes one kernel, or all kernels of a
//! file with the intermediate tensors between them.
//!
//! Sizes that are known only at launch are strings: expressions of the program's symbols.

use crate::json::schema;
use carbyne_atoms::AtomTable;
use carbyne_codegen::{CudaKernel, MapDescription, Param, alignment, handed_on};
use carbyne_ir::expr::{Dim, VarId, VarInfo};
use carbyne_ir::program::{BufferId, Program};
use serde_json::{Value, json};

/// The size of a tensor map in bytes. Its address is a multiple of 64.
const MAP_BYTES: usize = 128;

/// The document for all kernels, in launch order.
pub(crate) fn module(kernels: &[CudaKernel], program: &Program, table: &AtomTable) -> String {
    let between = handed_on(program);
    let used = |b: &BufferId, write: bool| -> Vec<usize> {
        let of = |p: &Param| match p {
            Param::Pointer { buffer, written, .. } => buffer == b && *written == write,
            Param::Scalar { .. } | Param::Symbol { .. } | Param::TensorMap { .. } => false,
        };
        let maps = |p: &Param| matches!(p, Param::TensorMap { buffer, .. } if buffer == b);
        let any = |k: &CudaKernel| k.params.iter().any(|p| of(p) || !write && maps(p));
        (0..kernels.len()).filter(|i| any(&kernels[*i])).collect()
    };
    let tensor = |b: &BufferId| {
        let buffer = &program.buffers[*b];
        let (writers, readers) = (used(b, true), used(b, false));
        let number = |d: Dim| number(program, d);
        let modes: Vec<_> = program.tensors[buffer.tensor]
            .levels
            .iter()
            .flat_map(carbyne_ir::layout::Layout::modes)
            .collect();
        let extents: Vec<Value> =
            modes.iter().map(|m| m.size_in(&program.arena).map_or(Value::Null, number)).collect();
        let strides: Vec<Value> = modes
            .iter()
            .map(|m| match m.leaves() {
                [(_, stride)] => number(*stride),
                // A mode of several leaves: extent and stride of each leaf, the first fastest.
                several => several.iter().map(|(n, s)| json!([number(*n), number(*s)])).collect(),
            })
            .collect();
        json!({
            "name": buffer.name,
            "scalar": buffer.scalar.as_str(),
            "bits": buffer.scalar.bits(),
            "extents": extents,
            "strides": strides,
            // If an extent is 0, the tensor has no elements, and the computed codomain size may be
            // negative.
            "elements": number(
                program.arena.max(buffer.cosize, Dim::Const(0)).unwrap_or(buffer.cosize)
            ),
            "integers": buffer.range.map(|(from, below)| json!({
                "from": number(from),
                "below": number(below),
                "splits": buffer.splits,
                "distinct": buffer.distinct,
            })),
            "alignment": alignment(program, *b),
            "written_by": writers.iter().map(|i| kernels[*i].name.clone()).collect::<Vec<_>>(),
            "read_by": readers.iter().map(|i| kernels[*i].name.clone()).collect::<Vec<_>>(),
            "intermediate": between.contains(b),
        })
    };
    let symbol = |v: &VarId| {
        let VarInfo { name, lo, hi, div } = program.arena.var_info(*v);
        let typical = program.typical.iter().find(|(of, _)| of == v).map(|(_, value)| value);
        json!({ "name": name, "min": lo, "max": hi, "div": div, "typical": typical })
    };
    let (numbers, tensors): (Vec<BufferId>, Vec<BufferId>) =
        program.params.iter().partition(|b| program.buffers[**b].is_number());
    let scalar = |b: &BufferId| {
        let buffer = &program.buffers[*b];
        json!({
            "name": buffer.name,
            "scalar": buffer.scalar.as_str(),
            "bits": buffer.scalar.bits(),
        })
    };
    let object = json!({
        "schema_version": schema::ABI,
        "arch": table.arch.as_str(),
        "scalars": numbers.iter().map(scalar).collect::<Vec<_>>(),
        "symbols": program.symbols.iter().map(symbol).collect::<Vec<_>>(),
        "facts": program.facts.iter().map(|fact| fact.text.as_str()).collect::<Vec<_>>(),
        "tensors": tensors.iter().map(tensor).collect::<Vec<_>>(),
        "kernels": kernels.iter().map(|k| object(k, program, table)).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

fn number(program: &Program, d: Dim) -> Value {
    match d {
        Dim::Const(v) => json!(v),
        Dim::Expr(_) => json!(program.arena.display(d).to_string()),
    }
}

/// The document for one kernel.
pub(super) fn json(kernel: &CudaKernel, program: &Program, table: &AtomTable) -> String {
    let mut object = object(kernel, program, table);
    object["schema_version"] = json!(schema::ABI);
    format!("{object:#}\n")
}

fn object(kernel: &CudaKernel, program: &Program, table: &AtomTable) -> Value {
    let number = |d: &Dim| number(program, *d);
    let numbers = |list: &[Dim]| Value::Array(list.iter().map(number).collect());
    let tensor = |b: &BufferId| program.buffers[*b].name.clone();
    let parameter = |p: &Param| match p {
        Param::Pointer { name, buffer, scalar, written } => json!({
            "kind": "pointer",
            "name": name,
            "tensor": tensor(buffer),
            "scalar": scalar.as_str(),
            "written": written,
        }),
        Param::Scalar { name, buffer, scalar } => json!({
            "kind": "scalar",
            "name": name,
            "number": tensor(buffer),
            "scalar": scalar.as_str(),
            "bits": scalar.bits(),
        }),
        Param::Symbol { name, var, wide } => json!({
            "kind": "symbol",
            "name": name,
            "symbol": program.arena.var_info(*var).name,
            "bits": if *wide { 64 } else { 32 },
        }),
        Param::TensorMap { name, buffer, map } => {
            let MapDescription { data_type, offset, extents, strides, sizes, swizzle, promotion } =
                map;
            json!({
                "kind": "tensor_map",
                "name": name,
                "tensor": tensor(buffer),
                "bytes": MAP_BYTES,
                "data_type": data_type,
                "offset_bytes": number(offset),
                "extents": numbers(extents),
                "stride_bytes": numbers(strides),
                "box": sizes,
                "swizzle": swizzle,
                "l2_promotion": promotion,
            })
        }
    };
    json!({
        "kernel": kernel.name,
        "spec": kernel.spec,
        "arch": table.arch.as_str(),
        "grid": number(&kernel.grid),
        "block": kernel.block,
        "cluster": kernel.cluster,
        "dynamic_shared_bytes": kernel.smem_bytes,
        "parameters": kernel.params.iter().map(parameter).collect::<Vec<_>>(),
    })
}
