//! Every row of every architecture prints as a leaf and compiles there.

mod common;

use carbyne_atoms::{
    Access, Arch, Atom, AtomOp, AtomTable, BarrierScope, Elem, Extent, Visibility,
};
use carbyne_codegen::nvrtc::Emit;
use carbyne_codegen::print_kernel;
use carbyne_ir::scalar::{Memory, Scalar};

/// A kernel whose one statement is the row; `barrier` of some threads for those of barriers.
fn text_of(row: &Atom) -> String {
    let kind = match row.op {
        AtomOp::Sync(op) => return statement(&with_numbers(row, op.usage())),
        AtomOp::Barrier(scope) => return statement(barrier(scope)),
        AtomOp::Elect => {
            return statement("fence.async")
                .replace("<<<#grid, #cta>>> (%b)", "<<<#grid, #cta.tile([32])[1].elect()>>> (%b)");
        }
        _ if row.extent != Extent::Tile => return bulk(row),
        op => op.spec_kind().expect("a spec"),
    };
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
        kind,
        ins.join(", "),
        outs.join(", "),
        row.name,
    )
}

fn barrier(scope: BarrierScope) -> &'static str {
    match scope {
        BarrierScope::Block => "barrier",
        BarrierScope::Warp => "barrier(#cta.tile([32])[0])",
        BarrierScope::Lanes => "barrier(#cta.tile([8])[1])",
        BarrierScope::Warps => "barrier(#cta.tile([64])[1])",
    }
}

/// A kernel of one bulk copy.
fn bulk(row: &Atom) -> String {
    let n = if let Extent::Box(n) = row.extent { n } else { 1 };
    let list = |outer: &str, last: &str| format!("{}{last}", format!("{outer},").repeat(n - 1));
    let (global, define) = match row.extent {
        Extent::Box(_) => (
            format!("%m[{}]", list("1", "2")),
            format!("  %m = %X.tensormap([{}], swizzle=(2,4,3))\n", list("2", "32")),
        ),
        _ => ("%X.tile([32])[1]".to_owned(), String::new()),
    };
    let swizzle = if n > 1 || !define.is_empty() { ", swizzle=(2,4,3)" } else { "" };
    let load = row.visibility == Visibility::Mbarrier;
    let (from, to) = if load { (global.as_str(), "%s") } else { ("%s", global.as_str()) };
    let mut attributes = format!("cache={}", row.cache);
    attributes += if load { " bar=%b[1]" } else { "" };
    attributes += if row.number("mask").is_some() { " multicast=1" } else { "" };
    format!(
        "carbyne 1\n%X:[{}].f16.GL\n#grid:[1].block\n#cta:[128].thread\n\
         Spec @row <<<#grid, #cta>>> (%X) -> (%X) {{\n{define}  Allocate %b:[2].mbarrier.SH\n  \
         Allocate %s:[{}].f16.SH{{align=512{swizzle}}}\n  \
         Move <<<#grid, #cta[0]>>> ({from}) -> ({to}) {attributes} atom={}\n}}\n",
        if define.is_empty() { "128".to_owned() } else { list("7", "104") },
        list("2", "32"),
        row.name
    )
}

/// The statement with the smallest number that the row takes.
fn with_numbers(row: &Atom, mut usage: String) -> String {
    for n in &row.numbers {
        let least = (n.least + n.multiple - 1) / n.multiple * n.multiple;
        usage = usage.replace(&format!("{})", n.name), &format!("{least})"));
    }
    usage
}

/// A kernel of one statement.
fn statement(usage: &str) -> String {
    let threads = usage.strip_prefix("barrier(").and_then(|u| u.strip_suffix(')'));
    let threads = threads.unwrap_or("#cta");
    format!(
        "carbyne 1\n%X:[64].f32.GL\n#grid:[1].block\n#cta:[128].thread\n\
         Spec @row <<<#grid, #cta>>> (%X) -> () {{\n  Allocate %b:[1].mbarrier.SH\n  \
         %map = %X.tensormap([16])\n  \
         Spec <<<#grid, {threads}>>> (%b) -> () {{\n    {usage}\n  }}\n}}\n"
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
            let errors = carbyne_ir::verify::verify(&program);
            let whole = row.op.spec_kind().is_none() || row.extent != Extent::Tile;
            assert!(!whole || errors.is_empty(), "{errors:#?}\n{text}");
            let kernel = print_kernel(&program, program.kernels[0], &table)
                .unwrap_or_else(|e| panic!("{arch} {}: {e:#?}\n{text}", row.name));
            // Only ptxas looks at inline PTX.
            let emit = if row.template.is_ptx() { Emit::Cubin } else { Emit::Ptx };
            common::compile_as(&kernel, arch, emit);
        }
    }
}

/// A kernel that loads the operands of a row of tensor cores, executes it where `with_row` says so, and
/// stores all of them, so that nothing is dropped.
fn live(row: &Atom, with_row: bool) -> String {
    let (mut params, mut ins, mut outs) = (String::new(), vec![], vec![]);
    let (mut before, mut after) = (String::new(), String::new());
    for o in &row.operands {
        let Elem::Scalar(scalar) = o.elem else { panic!("{}.{}", row.name, o.name) };
        let (n, name, word) = (o.n_values(), o.name, 64.min(o.bits_per_thread()));
        let per = word / scalar.bits();
        let step = format!("  for (i = 0; i < {}; i += 1) unroll {{\n", n / per);
        let part = format!("%{name}.tile([{per}])[i]");
        let of = |global: &str| format!("%{global}{name}.tile([{n}])[@t].tile([{per}])[i]");
        let one = "    Move <<<#grid, #one>>>";
        before += &format!("  Allocate %{name}:[{n}].{scalar}.RF\n{step}");
        before += &format!("{one} ({}) -> ({part}) atom=ld.global.b{word}\n  }}\n", of("in"));
        after += &format!("{step}{one} ({part}) -> ({}) atom=st.global.b{word}\n  }}\n", of("out"));
        for (global, list) in [("in", &mut ins), ("out", &mut outs)] {
            params += &format!("%{global}{name}:[{}].{scalar}.GL\n", 128 * n);
            list.push(format!("%{global}{name}"));
        }
    }
    let run = format!("  MatMul <<<#grid, #cta>>> (%A, %B) -> (%D) atom={}\n", row.name);
    format!(
        "carbyne 1\n{params}#grid:[1].block\n#cta:[128].thread\n\
         Spec @row <<<#grid, #cta>>> ({}) -> ({}) {{\n  #one:[].thread = #cta.scalar()\n  \
         @t = #cta.indices()\n{before}{}{after}}}\n",
        ins.join(", "),
        outs.join(", "),
        if with_row { &run } else { "" }
    )
}

/// Instructions of the kernel's machine code, those left out that only fill it up.
fn n_instructions(cubin: &[u8]) -> usize {
    let number = |at: usize, bytes: usize| {
        cubin[at..at + bytes].iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b))
    };
    // ELF, 64 bits: the table of sections, of which those with instructions are counted.
    let (table, n_sections) = (number(0x28, 8), number(0x3c, 2));
    let mut n = 0;
    for section in (0..n_sections).map(|i| table + 64 * i) {
        let (kind, flags) = (number(section + 4, 4), number(section + 8, 8));
        if kind == 1 && flags & 4 != 0 {
            let (from, bytes) = (number(section + 0x18, 8), number(section + 0x20, 8));
            // From Volta on an instruction takes 16 bytes; that which does nothing has this number.
            n +=
                (from..from + bytes).step_by(16).filter(|i| number(*i, 2) & 0xfff != 0x918).count();
        }
    }
    n
}

#[test]
fn rows_are_emulated_where_the_table_says_so() {
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        for row in table.rows() {
            if !(matches!(row.op, AtomOp::MatMul { .. }) && row.is_collective()) {
                continue;
            }
            let instructions = |with_row| {
                let kernel = common::kernel(&live(row, with_row), arch);
                Some(n_instructions(&common::compile_as(&kernel, arch, Emit::Cubin)?.cubin))
            };
            let (Some(with), Some(without)) = (instructions(true), instructions(false)) else {
                return;
            };
            // A unit takes one to four steps for a row.
            let own = with as i64 - without as i64;
            assert!(own > 0, "{arch} {}: nothing is left of it", row.name);
            assert_eq!(row.cost.emulated, own > 6, "{arch} {}: {own} instructions", row.name);
        }
    }
}
