//! Checks every atom of every architecture for consistency (a "sweep"), which finds typing errors
//! in the table.
//!
//! A failure names the cell, that is, the field of an atom: `sm_80/mma.m16n8k16.f32.f16.B: ...`.
//! The second half of this file corrupts one cell at a time and asserts that the sweep names it.

use carbyne_atoms::{
    Arch, Atom, AtomKind, AtomOp, AtomOperand, AtomTable, Elem, Extent, OperandAccess, Part,
    SyncForm, Template,
};
use carbyne_ir::ast::SyncOp;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};

/// The defects of a table.
fn defects(table: &AtomTable) -> Vec<String> {
    let mut found = Vec::new();
    for (i, atom) in table.atoms().iter().enumerate() {
        let mut say = |text: &str| found.push(format!("{}/{}: {text}", table.arch, atom.name));
        atom_defects(table, atom, &mut say);
        for other in &table.atoms()[..i] {
            if other.name == atom.name {
                say("the name is taken");
            }
            let same = other.op == atom.op && other.operands == atom.operands;
            let same = same && other.extent == atom.extent && other.cache == atom.cache;
            let same = same && other.rounding == atom.rounding;
            if same && other.numbers == atom.numbers && other.cost == atom.cost && !in_order(atom) {
                say(&format!("nothing tells it from `{}`", other.name));
            }
        }
        for operand in &atom.operands {
            let cell = format!("{}/{}.{}", table.arch, atom.name, operand.name);
            let mut say = |text: &str| found.push(format!("{cell}: {text}"));
            operand_defects(atom, operand, &mut say);
            op_defects(atom, operand, &mut say);
        }
    }
    found
}

/// Whether the table uses the first of several equal atoms, so that they need not differ.
fn in_order(atom: &Atom) -> bool {
    atom.op.spec_kind().is_none()
}

fn atom_defects(table: &AtomTable, atom: &Atom, say: &mut dyn FnMut(&str)) {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if !atom.name.chars().all(word) || atom.name.starts_with(|c: char| c.is_ascii_digit()) {
        say("the name is no word of the text format");
    }
    if !atom.req.supports(table.arch) {
        say("the architecture does not have it");
    }
    if ![1, 8, 32, 128].contains(&atom.group) {
        say("the group is of no size that hardware has");
    }
    let threads: Vec<i64> =
        (0..atom.thread_layout.size()).map(|i| atom.thread_layout.at(i)).collect();
    if atom.thread_layout.size() != atom.group || distinct(&threads) != threads.len() {
        say("the thread layout does not name the group's threads");
    }
    if atom.cite.is_empty() || atom.cost.source.is_empty() {
        say("no citation");
    }
    if let AtomKind::Sequence { formula, error } = atom.kind
        && (formula.is_empty() || error.is_empty())
    {
        say("a sequence without formula or error");
    }
    let (issue, completion) = (atom.cost.issue_cycles, atom.cost.completion_cycles);
    if !(issue > 0.0 && completion >= issue && completion < 10_000.0) {
        say("the cost is not sane");
    }
    if !(atom.cost.per_sm_per_cycle.value() > 0.0 && issue.is_finite()) {
        say("the rate is not sane");
    }
    if let Some(bound) = atom.error_bound() {
        let parts = [bound.relative, bound.slope, bound.absolute, bound.per_product];
        if parts.iter().any(|p| !(*p >= 0.0 && *p < 1.0)) || parts.iter().all(|p| *p == 0.0) {
            say("the error bound is not sane");
        }
    }
    let waited = atom.visibility.holds_registers();
    if waited != atom.sets || (atom.sets && !matches!(atom.op, AtomOp::MatMul { .. })) {
        say("what it does to D and when D is there disagree");
    }
    if atom.handover.is_some() && atom.op.spec_kind().is_some() {
        say("an atom that computes hands registers over");
    }
    if atom.op.spec_kind().is_some() && atom.writes().count() == 0 {
        say("nothing is written");
    }
    for n in &atom.numbers {
        let in_text = atom.template.placeholders().contains(&n.name);
        if n.least > n.most || n.multiple < 1 || (!in_text && n.least < n.most) {
            say(&format!("number `{}` is not sane", n.name));
        }
    }
    template_defects(atom, say);
}

fn template_defects(atom: &Atom, say: &mut dyn FnMut(&str)) {
    let text = atom.template.text();
    if !text.ends_with([';', '}']) || text.matches('{').count() != text.matches('}').count() {
        say("the template is malformed");
    }
    for name in atom.template.placeholders() {
        let lane = matches!(atom.op, AtomOp::Shfl(_)) && name == "lane";
        let bar = atom.visibility.names_barrier() && name == "bar";
        let map = atom.op == AtomOp::Sync(SyncOp::Prefetch) && name == "map";
        let known = map || atom.operand(name).is_some() || atom.number(name).is_some();
        if !known && !lane && !bar {
            say(&format!("`{{{name}}}` in the template is no operand"));
        }
    }
    for operand in &atom.operands {
        if !atom.template.placeholders().contains(&operand.name) {
            say(&format!("operand `{}` is not in the template", operand.name));
        }
        let reciprocal = Part::Reciprocal(operand.name);
        if operand.divisor.is_some() != atom.template.parts().contains(&reciprocal) {
            say(&format!(
                "operand `{}`: which literals it takes and the template disagree",
                operand.name
            ));
        }
        if operand.cxx.is_some() == atom.template.is_ptx() {
            say(&format!("operand `{}`: C++ type and template disagree", operand.name));
        }
    }
    if let Template::PtxScalar(_) = atom.template
        && atom.operands.iter().any(|o| o.n_asm_registers() != 1)
    {
        say("an instruction on scalars has an operand of several registers");
    }
    if !atom.template.is_ptx() {
        return;
    }
    let parts = atom.template.parts();
    let count = |wanted: Part<'_>| parts.iter().filter(|p| **p == wanted).count();
    if count(Part::Accumulate) != usize::from(atom.sets) {
        say("the template does not say whether it adds to D just once");
    }
    for operand in &atom.operands {
        let several = operand.matrix_rule().is_some_and(|rule| rule.majors.len() > 1);
        if count(Part::Major(operand.name)) != usize::from(several) {
            say(&format!("the template does not say the major of `{}` just once", operand.name));
        }
    }
    for (i, part) in parts.iter().enumerate() {
        if let Part::Register(name, i) = part {
            let registers = atom.operand(name).map_or(0, AtomOperand::n_asm_registers);
            if *i as i64 >= registers {
                say(&format!("operand `{name}` has no register {i}"));
            }
        }
        let Part::Operand(name) = part else {
            if let Part::Text(text) = part
                && text.len() > 1
                && text.contains(['{', '}'])
            {
                say("a brace in the template has no partner");
            }
            continue;
        };
        // The coordinates follow the address of a tensor map inside of the brackets.
        let operand = atom.operand(name);
        let map = matches!(atom.extent, Extent::Box(_))
            && operand.is_some_and(|o| o.memory == [Memory::Gl]);
        // The address in another block, or one that depends on a register, is computed first.
        let form = SyncForm::of(atom);
        if operand.is_none() || map || form.remote || form.after {
            continue;
        }
        let opens = i > 0 && matches!(parts[i - 1], Part::Text(t) if t.ends_with('['));
        let closes = matches!(parts.get(i + 1), Some(Part::Text(t)) if t.starts_with(']'));
        let in_memory =
            atom.operand(name).is_some_and(|o| !o.allows(Memory::Rf) && o.matrix_rule().is_none());
        if opens != in_memory || closes != in_memory {
            say(&format!("`{{{name}}}` must be in brackets just when it is in memory"));
        }
    }
}

fn operand_defects(atom: &Atom, operand: &AtomOperand, say: &mut dyn FnMut(&str)) {
    if operand.memory.is_empty() {
        say("no memory");
    }
    if operand.tv.rank() != 2 || operand.n_threads() != atom.group {
        say("the thread mode is not the group");
        return;
    }
    if let Some(rule) = operand.matrix_rule() {
        return described_defects(operand, rule.k_mode, say);
    }
    let values: Vec<i64> = (0..operand.tv.size()).map(|i| operand.tv.at(i)).collect();
    if values.iter().any(|v| *v < 0 || *v >= operand.tile_size()) {
        say("the layout leaves the tile");
    } else if distinct(&values) as i64 != operand.tile_size() {
        say("the layout is not onto the tile");
    }
    if unrepeated(&operand.tv) != distinct(&values) as i64 {
        say("an element is repeated by a stride other than 0");
    }
    // Several threads may hold copies of an element: in registers all of them, in memory only the
    // first one writes.
    let threads = operand.tv.mode(0).map_or(0, |t| t.size()) as usize;
    let one_thread: Vec<i64> = values.iter().copied().step_by(threads.max(1)).collect();
    let replicated = atom.op != AtomOp::Move || !operand.allows(Memory::Rf);
    if operand.access != OperandAccess::Read
        && (distinct(&one_thread) != one_thread.len()
            || (!replicated && distinct(&values) != values.len()))
    {
        say("written, and not injective");
    }
    let in_memory = operand.memory.iter().any(|m| *m != Memory::Rf);
    let anywhere = operand.around > 0;
    if anywhere && (operand.around != operand.bytes_per_thread() || operand.align != 1) {
        say("begins anywhere, and is aligned or not one of the vectors that are read around it");
    }
    let align = if in_memory && !anywhere { operand.bytes_per_thread() } else { 1 };
    let least = atom.extent != Extent::Tile && operand.align >= align;
    if !(operand.align == align || least) || operand.align.count_ones() != 1 {
        say("the alignment is not what a thread accesses");
    }
    if let Some(cxx) = operand.cxx
        && cxx_bits(cxx) != Some(operand.bits_per_thread())
    {
        say("the C++ type does not cover a thread's values");
    }
    if operand.bits_per_thread() % operand.register_bits != 0
        && operand.register_bits % operand.bits_per_thread() != 0
    {
        say("its values do not fill registers");
    }
    if operand.allows(Memory::Rf)
        && operand.n_asm_registers() * operand.asm_class().bits() < operand.bits_per_thread()
    {
        say("the registers do not hold a thread's values");
    }
}

/// Defects of an operand with a descriptor: it must be one tile in shared memory, in its own order
/// for every thread.
fn described_defects(operand: &AtomOperand, k_mode: usize, say: &mut dyn FnMut(&str)) {
    let (t, v) = (operand.tv.mode(0).expect("two modes"), operand.tv.mode(1).expect("two modes"));
    let same = (0..t.size()).all(|i| t.at(i) == 0) && (0..v.size()).all(|i| v.at(i) == i);
    let whole = v.size() == operand.tile_size();
    if !same || !whole || operand.memory != [Memory::Sh] || operand.access != OperandAccess::Read {
        say("a descriptor does not name it");
    }
    if operand.align != 16 {
        say("the alignment is not that of a start address");
    }
    let (k, bits) = (operand.tile.get(k_mode).copied().unwrap_or(0), operand.elem.bits());
    if operand.tile.len() != 2 || k * bits != 256 {
        say("its k is not 32 bytes deep");
    }
}

/// Defects of operands that do not fit the operation of the atom.
fn op_defects(atom: &Atom, operand: &AtomOperand, say: &mut dyn FnMut(&str)) {
    match atom.op {
        AtomOp::MatMul { l, m, n, k } => {
            let modes = match operand.name {
                "A" => [l, m, k],
                "B" => [l, k, n],
                "D" => [l, m, n],
                _ => return say("no operand of a MatMul"),
            };
            if operand.tile != if l > 1 { &modes[..] } else { &modes[1..] } {
                say("the tile is not that of the MatMul");
            }
            if operand.matrix_rule().is_some_and(|rule| operand.tile.get(rule.k_mode) != Some(&k)) {
                say("its descriptor takes another mode for k");
            }
            let access =
                if operand.name == "D" { OperandAccess::ReadWrite } else { OperandAccess::Read };
            if operand.access != access {
                say("the access is not that of a MatMul");
            }
        }
        AtomOp::Move
        | AtomOp::Accumulate(_)
        | AtomOp::Unary(_)
        | AtomOp::Binary(_)
        | AtomOp::Select => {
            if atom.operands.iter().any(|o| o.tile != operand.tile) {
                say("the tiles of the operands differ");
            }
        }
        AtomOp::Reduction(_) => {
            if operand.access != OperandAccess::Read && operand.tile_size() != 1 {
                say("the result of a reduction is more than one element");
            }
        }
        AtomOp::Shfl(_) => {
            if operand.tile.first() != Some(&atom.group)
                || (0..operand.tv.size()).any(|i| operand.tv.at(i) != i)
            {
                say("the tile of a shuffle is not [lane, value]");
            }
        }
        AtomOp::Init | AtomOp::Elect => {}
        AtomOp::Sync(_) | AtomOp::Barrier(_) => {
            let is_register = operand.name == "X" && SyncForm::of(atom).after;
            let is_mbarrier = operand.name == "B" && operand.elem == Elem::Scalar(Scalar::Mbarrier);
            if !is_mbarrier && !is_register {
                say("the operand of a synchronization is no mbarrier");
            }
        }
    }
    let accumulates = matches!(atom.op, AtomOp::Accumulate(_));
    if accumulates && (operand.name == "D") != (operand.access == OperandAccess::ReadWrite) {
        say("what is put to D is not what the atom says");
    }
    if accumulates && matches!(operand.elem, Elem::Bits(_)) {
        say("no arithmetic is known of units of bits");
    }
    if (atom.op == AtomOp::Move || accumulates)
        && atom.operands.iter().any(|o| o.elem != operand.elem)
    {
        say("source and destination count different units");
    }
}

fn distinct(values: &[i64]) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len()
}

/// The number of coordinates without modes of stride 0.
fn unrepeated(layout: &Layout) -> i64 {
    layout.leaves().iter().filter(|(_, stride)| *stride != 0).map(|(extent, _)| extent).product()
}

fn cxx_bits(cxx: &str) -> Option<i64> {
    Some(match cxx {
        "unsigned char" | "signed char" | "bool" | "__nv_fp8_e4m3" | "__nv_fp8_e5m2" => 8,
        "unsigned short" | "short" | "char2" | "uchar2" | "__half" | "__nv_bfloat16" => 16,
        "unsigned" | "int" | "float" | "__half2" | "__nv_bfloat162" => 32,
        "uint2" | "int2" | "float2" | "double" | "long long" | "unsigned long long" => 64,
        "uint4" => 128,
        _ => return None,
    })
}

#[test]
fn every_atom_of_every_architecture_is_sound() {
    for &arch in Arch::ALL {
        let found = defects(&AtomTable::new(arch));
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn an_atom_is_the_same_on_every_architecture_but_for_its_cost_and_calls() {
    for &arch in Arch::ALL {
        for atom in AtomTable::new(arch).atoms() {
            for &other in Arch::ALL {
                let table = AtomTable::new(other);
                assert_eq!(
                    table.get(atom.name).is_some(),
                    atom.req.supports(other),
                    "{}",
                    atom.name
                );
                if let Some(found) = table.get(atom.name) {
                    // ptxas emulates some instructions by a call.
                    let found = Atom { cost: atom.cost, calls: atom.calls, ..found.clone() };
                    assert_eq!(&found, atom, "{arch} {other}");
                }
            }
        }
    }
}

/// The defects of the table of sm_80 after `change` to one atom.
fn corrupted(atom: &str, change: impl FnOnce(&mut Atom)) -> Vec<String> {
    corrupted_on(Arch::Sm80, atom, change)
}

fn corrupted_on(arch: Arch, atom: &str, change: impl FnOnce(&mut Atom)) -> Vec<String> {
    let table = AtomTable::new(arch);
    let mut atom = table.get(atom).expect("the atom exists").clone();
    change(&mut atom);
    defects(&table.with(atom))
}

#[track_caller]
fn names_cell(found: &[String], cell: &str, text: &str) {
    assert!(
        found.iter().any(|f| f.starts_with(cell) && f.contains(text)),
        "expected `{cell}..{text}..`, found: {found:#?}"
    );
}

#[test]
fn a_wrong_layout_names_its_cell() {
    let tv = |atom, operand: usize, text: &str| {
        corrupted(atom, |r| r.operands[operand].tv = text.parse().expect("a layout"))
    };
    let b = "sm_80/mma.m16n8k16.f32.f16.B: ";
    names_cell(&tv("mma.m16n8k16.f32.f16", 1, "((4,8),(2,2)):((2,16),(1,4))"), b, "not onto");
    names_cell(&tv("mma.m16n8k16.f32.f16", 1, "((4,8),(2,2)):((2,16),(1,9))"), b, "leaves");
    names_cell(&tv("mma.m16n8k16.f32.f16", 1, "((4,4),(2,2)):((2,16),(1,8))"), b, "the group");
    let s = "sm_80/ldmatrix.x1.b16.S: ";
    names_cell(&tv("ldmatrix.x1.b16", 0, "(32,8):(8,1)"), s, "leaves");
    names_cell(&tv("ldmatrix.x1.b16", 0, "((8,2,2),8):((8,0,1),1)"), s, "repeated by a stride");
    let d = "sm_80/ldmatrix.x1.b16.D: ";
    names_cell(&tv("ldmatrix.x1.b16", 1, "((8,4),8):((8,0),1)"), d, "not injective");
}

#[test]
fn other_wrong_cells_are_named() {
    let x4 = "ldmatrix.x4.b16";
    let found = corrupted(x4, |r| r.operands[0].align = 8);
    names_cell(&found, "sm_80/ldmatrix.x4.b16.S: ", "alignment");
    let found = corrupted(x4, |r| r.operands[0].memory = &[]);
    names_cell(&found, "sm_80/ldmatrix.x4.b16.S: ", "no memory");
    let found = corrupted(x4, |r| r.operands[0].memory = &[Memory::Rf]);
    names_cell(&found, "sm_80/ldmatrix.x4.b16: ", "in brackets");
    let found = corrupted(x4, |r| r.operands[1].name = "E");
    names_cell(&found, "sm_80/ldmatrix.x4.b16: ", "`{D}` in the template is no operand");
    names_cell(&found, "sm_80/ldmatrix.x4.b16: ", "operand `E` is not in the template");
    let found = corrupted(x4, |r| r.cite = "");
    names_cell(&found, "sm_80/ldmatrix.x4.b16: ", "no citation");
    let found = corrupted(x4, |r| r.cost.completion_cycles = 0.0);
    names_cell(&found, "sm_80/ldmatrix.x4.b16: ", "the cost is not sane");
    let found = corrupted("fma.f16", |r| r.operands[2].access = OperandAccess::Write);
    names_cell(&found, "sm_80/fma.f16.D: ", "access");
    let found = corrupted("fma.f16x2", |r| r.operands[0].cxx = Some("__half"));
    names_cell(&found, "sm_80/fma.f16x2.A: ", "C++ type");
    let found = corrupted("mma.m16n8k16.f32.f16", |r| r.operands[0].tile = vec![8, 32]);
    names_cell(&found, "sm_80/mma.m16n8k16.f32.f16.A: ", "tile");
    let found = corrupted("init.f16", |r| {
        for operand in &mut r.operands {
            operand.elem = Elem::Scalar(Scalar::Bf16);
            operand.cxx = Some("__nv_bfloat16");
        }
    });
    assert!(found.iter().any(|f| f.contains("nothing tells it from `init.")), "{found:#?}");
}

#[test]
fn wrong_descriptors_are_named() {
    let ss = "wgmma.m64n128k16.f32.f16.ss";
    let b = format!("sm_90a/{ss}.B: ");
    let found = corrupted_on(Arch::Sm90a, ss, |r| r.operands[1].align = 128);
    names_cell(&found, &b, "alignment");
    let tv = "(128,(128,16)):(0,(16,1))".parse().expect("a layout");
    let found = corrupted_on(Arch::Sm90a, ss, |r| r.operands[1].tv = tv);
    names_cell(&found, &b, "a descriptor does not name it");
    let k_mode_of_a = AtomTable::new(Arch::Sm90a).get(ss).expect("exists").operands[0].addressing;
    let found = corrupted_on(Arch::Sm90a, ss, |r| r.operands[1].addressing = k_mode_of_a);
    names_cell(&found, &b, "another mode for k");
    let text = "wgmma.mma_async {D}, {A}, {B}, 1, 1, 1, {A.major};";
    let found = corrupted_on(Arch::Sm90a, ss, |r| r.template = Template::Ptx(text));
    names_cell(&found, &format!("sm_90a/{ss}: "), "adds to D just once");
    names_cell(&found, &format!("sm_90a/{ss}: "), "the major of `B`");
}
