//! Every row of every architecture prints as a leaf and compiles there.

mod common;

use carbyne_atoms::{
    Access, Arch, Atom, AtomOp, AtomOperand, AtomTable, BarrierScope, Elem, Extent, Major,
    Visibility,
};
use carbyne_codegen::nvrtc::{Emit, Options};
use carbyne_codegen::testing::require_nvrtc;
use carbyne_codegen::{CudaKernel, print_kernel};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::BTreeSet;

/// A kernel of that name whose one statement is the row, which sets its accumulator where `set` says so;
/// `barrier` of some threads for those of barriers.
fn text_of(row: &Atom, name: &str, set: bool) -> String {
    let kind = match row.op {
        AtomOp::Sync(op) => return statement(name, &with_numbers(row, op.usage())),
        AtomOp::Barrier(scope) => return statement(name, barrier(scope)),
        AtomOp::Elect => {
            return statement(name, "fence.async")
                .replace("<<<#grid, #cta>>> (%b)", "<<<#grid, #cta.tile([32])[1].elect()>>> (%b)");
        }
        _ if set => SpecKind::MatMulSet,
        _ if row.extent != Extent::Tile => return bulk(row, name),
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
        let declared = match o.matrix_rule() {
            Some(rule) => format!("%{name}:{}", described(o, rule.k_mode)),
            None => format!("%{name}:[{n}].{scalar}.{memory}"),
        };
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
    let (before, after) = match row.visibility {
        Visibility::WgmmaGroup => ("  wgmma.fence\n", "  wgmma.commit\n  wgmma.wait(0)\n"),
        _ => ("", ""),
    };
    format!(
        "carbyne 1\n%X:[1].f32.GL\n%Y:[1].f32.GL\n{params}#grid:[1].block\n#cta:[128].thread\n\
         Spec @{name} <<<#grid, #cta>>> (%X{}) -> (%Y) {{\n{body}{before}  {kind} <<<#grid, {who}>>> ({}) -> ({}){attributes} atom={}\n{after}}}\n",
        params.lines().map(|l| format!(", {}", l.split(':').next().unwrap())).collect::<String>(),
        ins.join(", "),
        outs.join(", "),
        row.name,
    )
}

/// The type of a tile that a descriptor names: rows along k of 32 bytes; where rows along mn are allowed,
/// those, as wide as a swizzle takes them.
fn described(o: &AtomOperand, k_mode: usize) -> String {
    let Elem::Scalar(scalar) = o.elem else { panic!("{} is no scalar", o.name) };
    let (k, mn) = (o.tile[k_mode], o.tile[1 - k_mode]);
    let along_mn = o.matrix_rule().is_some_and(|rule| rule.majors.contains(&Major::Mn));
    let ((mn_shape, mn_stride), k_stride, swizzle) = match mn * scalar.bits() / 8 {
        bytes if !along_mn || bytes % 32 != 0 => ((mn.to_string(), k.to_string()), 1, 1),
        bytes => {
            let bits: i64 = if bytes % 128 == 0 { 3 } else { i64::from(bytes % 64 == 0) + 1 };
            let row = (16 << bits) * 8 / scalar.bits();
            ((format!("({row},{})", mn / row), format!("(1,{})", row * k)), row, bits)
        }
    };
    let modes = match k_mode {
        0 => format!("({k},{mn_shape}):({k_stride},{mn_stride})"),
        _ => format!("({mn_shape},{k}):({mn_stride},{k_stride})"),
    };
    format!("[{modes}].{scalar}.SH{{swizzle=({swizzle},4,3)}}")
}

/// Prints the kernel of a row. One of a leaf writes what it does not name, which no verifier has to accept.
fn print(row: &Atom, text: &str, table: &AtomTable) -> CudaKernel {
    let module = carbyne_ir::text::parse(text).unwrap_or_else(|e| panic!("{e:#?}\n{text}"));
    let program =
        carbyne_ir::resolve::resolve(&module, text).unwrap_or_else(|e| panic!("{e:#?}\n{text}"));
    let errors = carbyne_ir::verify::verify(&program);
    assert!(row.op.spec_kind().is_some() || errors.is_empty(), "{errors:#?}\n{text}");
    print_kernel(&program, program.kernels[0], table)
        .unwrap_or_else(|e| panic!("{}: {e:#?}\n{text}", table.arch))
}

/// Many kernels as one file: a namespace each, below what all of them include.
fn one_file(kernels: &[CudaKernel]) -> String {
    let mut includes = BTreeSet::new();
    let mut file = String::new();
    for (i, kernel) in kernels.iter().enumerate() {
        file += &format!("namespace n{i} {{\n");
        for line in kernel.source.lines() {
            if line.starts_with("#include") {
                includes.insert(line.to_owned());
            } else {
                file += line;
                file.push('\n');
            }
        }
        file += "}\n";
    }
    includes.into_iter().map(|l| l + "\n").collect::<String>() + &file
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
fn bulk(row: &Atom, name: &str) -> String {
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
         Spec @{name} <<<#grid, #cta>>> (%X) -> (%X) {{\n{define}  Allocate %b:[2].mbarrier.SH\n  \
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

/// A kernel of that name and one statement.
fn statement(name: &str, usage: &str) -> String {
    let threads = usage.strip_prefix("barrier(").and_then(|u| u.strip_suffix(')'));
    let threads = threads.unwrap_or("#cta");
    format!(
        "carbyne 1\n%X:[64].f32.GL\n#grid:[1].block\n#cta:[128].thread\n\
         Spec @{name} <<<#grid, #cta>>> (%X) -> () {{\n  Allocate %b:[1].mbarrier.SH\n  \
         %map = %X.tensormap([16])\n  \
         Spec <<<#grid, {threads}>>> (%b) -> () {{\n    {usage}\n  }}\n}}\n"
    )
}

/// Kernels of one file.
const BATCH: usize = 64;

#[test]
#[expect(clippy::print_stderr, reason = "says how much was compiled")]
fn every_row_compiles() {
    let Some(nvrtc) = require_nvrtc() else { return };
    let mut n = 0;
    for &arch in Arch::ALL {
        let table = AtomTable::new(arch);
        // Only ptxas looks at inline PTX.
        for emit in [Emit::Cubin, Emit::Ptx] {
            let rows = table.rows().iter().filter(|r| r.template.is_ptx() == (emit == Emit::Cubin));
            let kernels: Vec<CudaKernel> = rows
                .flat_map(|r| [Some((r, false)), r.sets.then_some((r, true))])
                .flatten()
                .enumerate()
                .map(|(i, (row, set))| {
                    let what = if row.op.spec_kind().is_some() { "leaf" } else { "statement" };
                    print(row, &text_of(row, &format!("{what}{i}"), set), &table)
                })
                .collect();
            for batch in kernels.chunks(BATCH) {
                let file = one_file(batch);
                let name = arch.nvrtc_name();
                match nvrtc.compile(&file, name, emit, &Options::default()) {
                    Ok(compiled) => {
                        assert_eq!(common::injected_waits(&compiled, "leaf"), [""; 0], "{arch}");
                    }
                    Err(d) => {
                        // Which of them it is.
                        for kernel in batch {
                            common::compile_as(kernel, arch, emit);
                        }
                        panic!("{arch}: only together: {d}\n{}", d.notes.join("\n"));
                    }
                }
                n += batch.len();
            }
        }
    }
    eprintln!("{n} kernels compiled");
    assert!(n > 1000);
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
            // Those that read shared memory are on units that nothing stands in for.
            let registers = row.operands.iter().all(|o| o.allows(Memory::Rf));
            if !(matches!(row.op, AtomOp::MatMul { .. }) && row.is_collective() && registers) {
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
