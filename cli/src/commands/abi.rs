//! `compile --emit abi`: what a launcher must know of a kernel, as JSON.
//!
//! Sizes that are known at launch only are texts, expressions of the program's symbols.

use carbyne_atoms::AtomTable;
use carbyne_codegen::{CudaKernel, MapDescription, Param};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{BufferId, Program};
use serde_json::{Value, json};

/// Bytes of a tensor map, at a multiple of 64.
const MAP_BYTES: usize = 128;

pub(super) fn json(kernel: &CudaKernel, program: &Program, table: &AtomTable) -> String {
    let number = |d: &Dim| match d {
        Dim::Const(v) => json!(v),
        Dim::Expr(_) => json!(program.arena.display(*d).to_string()),
    };
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
    let object = json!({
        "kernel": kernel.name,
        "arch": table.arch.as_str(),
        "grid": number(&kernel.grid),
        "block": kernel.block,
        "dynamic_shared_bytes": kernel.smem_bytes,
        "parameters": kernel.params.iter().map(parameter).collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}
