//! Every row of every architecture prints as a leaf and compiles there.

mod common;

use carbyne_atoms::{Access, Arch, Atom, AtomOp, AtomTable, Elem};
use carbyne_codegen::nvrtc::Emit;
use carbyne_codegen::print_kernel;
use carbyne_ir::scalar::{Memory, Scalar};

/// A kernel whose one leaf is the row.
fn text_of(row: &Atom) -> String {
    let (mut params, mut body) = (String::new(), String::new());
    let (mut ins, mut outs) = (vec![], vec![]);
    for o in &row.operands {
        if row.op == AtomOp::Init && o.access == Access::Read {
            ins.push("1.0".to_owned());
            continue;
        }
        let scalar = match o.elem {
            Elem::Scalar(s) => s,
            Elem::Bits(8) => Scalar::U8,
            Elem::Bits(_) => Scalar::F16,
        };
        let n = o.n_values() * o.elem.scalars_per_unit(scalar).unwrap();
        let memory = if o.allows(Memory::Rf) { Memory::Rf } else { o.memory[0] };
        let name = o.name;
        let declared = format!("%{name}:[{n}].{scalar}.{memory}");
        match memory {
            Memory::Gl => params += &format!("{declared}\n"),
            // All lanes give one address, which compiles as well.
            Memory::Sh | Memory::Rf => body += &format!("  Allocate {declared}\n"),
        }
        let list = if o.access == Access::Read { &mut ins } else { &mut outs };
        list.push(format!("%{name}"));
    }
    let who = if row.group > 1 { "#cta" } else { "#cta.scalar()" };
    let attributes = if let AtomOp::Shfl(_) = row.op { " lane=1" } else { "" };
    format!(
        "carbyne 1\n%X:[1].f32.GL\n%Y:[1].f32.GL\n{params}#grid:[1].block\n#cta:[128].thread\n\
         Spec @row <<<#grid, #cta>>> (%X{}) -> (%Y) {{\n{body}  {} <<<#grid, {who}>>> ({}) -> ({}){attributes} atom={}\n}}\n",
        params.lines().map(|l| format!(", {}", l.split(':').next().unwrap())).collect::<String>(),
        row.op.spec_kind(),
        ins.join(", "),
        outs.join(", "),
        row.name,
    )
}

#[test]
fn every_row_compiles() {
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        for row in table.rows() {
            let text = text_of(row);
            let module =
                carbyne_ir::text::parse(&text).unwrap_or_else(|e| panic!("{e:#?}\n{text}"));
            let program = carbyne_ir::resolve::resolve(&module, &text)
                .unwrap_or_else(|e| panic!("{}: {e:#?}\n{text}", row.name));
            let kernel = print_kernel(&program, program.kernels[0], &table)
                .unwrap_or_else(|e| panic!("{arch} {}: {e:#?}\n{text}", row.name));
            // Only ptxas looks at inline PTX.
            let emit = if row.template.is_ptx() { Emit::Cubin } else { Emit::Ptx };
            common::compile_as(&kernel, arch, emit);
        }
    }
}
