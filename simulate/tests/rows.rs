//! Every row of every architecture computes what its spec means, on random data; and no operand's layout
//! can be exchanged for another without that being noticed.
//!
//! A row is put into a kernel that brings its operands where the row wants them, by meaning alone, runs it
//! as the body of the spec that it implements, and lets the simulator compare the two.

mod common;

use carbyne_atoms::{
    Access, Arch, Atom, AtomOp, AtomOperand, AtomTable, Elem, Extent, Visibility, docs,
};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::Code;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_simulate::{Inputs, Options, simulate};
use std::fmt::Write;

/// The scalar types that stand for units of so many bits.
fn scalars(elem: Elem) -> Vec<Scalar> {
    match elem {
        Elem::Scalar(s) => vec![s],
        Elem::Bits(8) => vec![Scalar::U8, Scalar::I4],
        Elem::Bits(16) => vec![Scalar::F16, Scalar::U8],
        Elem::Bits(_) => vec![Scalar::F32, Scalar::F16, Scalar::I8],
    }
}

/// `shape` as a column-major level: `[(8,16):(1,8)]`.
fn dims(shape: &[i64]) -> String {
    let layout = Layout::col_major(shape.to_vec()).unwrap();
    match shape {
        [n] => format!("[{n}:1]"),
        _ => format!("[{layout}]"),
    }
}

/// A tile that a descriptor names, in rows along k of 32 bytes: the level, and the swizzle for it.
fn described(o: &AtomOperand, k_mode: usize) -> (String, String) {
    let k = o.tile[k_mode];
    let strides = if k_mode == 0 { [1, k] } else { [k, 1] };
    let level = format!("[({},{}):({},{})]", o.tile[0], o.tile[1], strides[0], strides[1]);
    (level, "{swizzle=(1,4,3)}".to_owned())
}

/// The row's layout counted in scalars, `per` of them a unit.
fn in_scalars(tv: &Layout, per: i64) -> Layout {
    let scaled = |mode: Layout| {
        let strides = mode.stride().map(&mut |s| s * per);
        Layout::new(mode.shape().clone(), strides).unwrap()
    };
    let (t, v) = (scaled(tv.mode(0).unwrap()), scaled(tv.mode(1).unwrap()));
    let values = Layout::concat(&[Layout::new(per, 1).unwrap(), v]).unwrap();
    Layout::concat(&[t, if per == 1 { values.mode(1).unwrap() } else { values }]).unwrap()
}

/// Threads of the fewest whole warps that groups of the row fill; those of one group, where they are
/// neighbors.
fn n_threads(row: &Atom) -> i64 {
    let reach = row.thread_layout.cosize();
    if reach == row.group { reach } else { (reach + 31) / 32 * 32 }
}

/// The layout of one group as that of so many, each with a batch of the spec, the first mode.
fn batched(row: &Atom, n: i64, tv: &Layout) -> Layout {
    if n == 1 {
        return tv.clone();
    }
    let scaled = |mode: Layout| {
        Layout::new(mode.shape().clone(), mode.stride().map(&mut |s| s * n)).unwrap()
    };
    let (t, v) = (scaled(tv.mode(0).unwrap()), scaled(tv.mode(1).unwrap()));
    // From a thread to its place in its group and its group, and from there to the element.
    let groups = row.thread_layout.complement(n_threads(row)).unwrap();
    let places = Layout::concat(&[row.thread_layout.clone(), groups]).unwrap().right_inverse();
    let elements = Layout::concat(&[t, Layout::new(n, 1).unwrap()]).unwrap();
    Layout::concat(&[elements.compose(&places).unwrap(), v]).unwrap()
}

/// A kernel that runs the row on its own layouts. `pick` chooses among memories and scalar types, and `set`
/// has the row set its accumulator.
fn kernel(row: &Atom, pick: usize, set: bool) -> Option<String> {
    // Bulk copies have no tiles of their own.
    if row.extent != Extent::Tile {
        return None;
    }
    let kind = if set { SpecKind::MatMulSet } else { row.op.spec_kind()? };
    let mut text = String::from("carbyne 1\n#grid:[1].block\n");
    let n_groups = n_threads(row) / row.group;
    let _ = writeln!(text, "#cta:[{}].thread", n_threads(row));
    let (mut body, mut inputs, mut outputs) = (String::new(), vec![], vec![]);
    let (mut whole, mut parts) = ((vec![], vec![]), (vec![], vec![]));
    for (i, o) in row.operands.iter().enumerate() {
        if o.name == "value" {
            whole.0.push("3".to_owned());
            parts.0.push("3".to_owned());
            continue;
        }
        let memory = o.memory[pick.min(o.memory.len() - 1)];
        let options = scalars(o.elem);
        let scalar = options[pick.min(options.len() - 1)];
        let per = o.elem.bits() / scalar.bits();
        let mut shape = o.tile.clone();
        shape[0] *= per;
        let mut tv = in_scalars(&o.tv, per);
        if n_groups > 1 {
            shape.insert(0, n_groups);
            tv = batched(row, n_groups, &tv);
        }
        let level = dims(&shape);
        let _ = writeln!(text, "%g{i}:{level}.{scalar}.GL");
        let reads = o.access != Access::Write && !(set && o.access == Access::ReadWrite);
        let (name, part) = match (o.matrix_rule(), memory) {
            (Some(rule), _) => {
                let (level, swizzle) = described(o, rule.k_mode);
                let _ = writeln!(body, "  Allocate %s{i}:{level}.{scalar}.SH{swizzle}");
                (format!("%s{i}"), format!("%s{i}"))
            }
            (None, Memory::Gl) => (format!("%g{i}"), format!("%g{i}.tv({tv} over #cta)")),
            (None, Memory::Sh) => {
                let _ = writeln!(body, "  Allocate %s{i}:{level}.{scalar}.SH{{align=128}}");
                (format!("%s{i}"), format!("%s{i}.tv({tv} over #cta)"))
            }
            (None, Memory::Rf) => {
                let plain = format!("{shape:?}").replace(' ', "");
                let _ = writeln!(body, "  Allocate %r{i}:{plain}.{scalar}.RF{{tv={tv} over #cta}}");
                (format!("%r{i}"), format!("%r{i}.mine"))
            }
        };
        if reads && memory != Memory::Gl {
            let _ = writeln!(body, "  Move <<<#grid, #cta>>> (%g{i}) -> ({name})");
        }
        if reads {
            inputs.push(format!("%g{i}"));
        }
        if o.access == Access::Read {
            whole.0.push(name);
            parts.0.push(part);
        } else {
            if memory == Memory::Gl {
                outputs.push(format!("%g{i}"));
            }
            whole.1.push(name);
            parts.1.push(part);
        }
    }
    if outputs.is_empty() {
        text.push_str("%unused:[1].f32.GL\n");
        outputs.push("%unused".to_owned());
    }
    if let AtomOp::Shfl(_) = row.op {
        return Some(exchange(row, kind, &text, &body, &whole.0[0], &whole.1[0]));
    }
    let list = |names: &[String]| names.join(", ");
    let acc = match (row.op, row.writes().next()) {
        (AtomOp::Reduction(_), _) => " axis=0".to_owned(),
        (AtomOp::MatMul { .. }, Some(AtomOperand { elem: Elem::Scalar(s), .. })) => {
            format!(" acc={s}")
        }
        _ => String::new(),
    };
    let group = match n_groups {
        1 => String::new(),
        _ => format!(".tile([{}])", row.thread_layout),
    };
    // A grid of one block reads what it writes only through this list.
    let accumulates = inputs.iter().any(|i| outputs.contains(i));
    inputs.retain(|i| !outputs.contains(i) || accumulates);
    let _ = writeln!(
        text,
        "Spec @row <<<#grid, #cta>>> ({}) -> ({}) {{",
        list(&inputs),
        list(&outputs)
    );
    text.push_str(&body);
    let (written, before, after) = protocol(row.visibility);
    let _ = writeln!(
        text,
        "{written}  barrier\n  {kind} <<<#grid, #cta>>> ({}) -> ({}){acc} {{\n{before}    {kind} <<<#grid, #cta{group}>>> ({}) -> ({}) atom={}\n{after}  }}\n}}",
        list(&whole.0),
        list(&whole.1),
        list(&parts.0),
        list(&parts.1),
        row.name
    );
    Some(text)
}

/// What the threads do once they have written the operands, before the row and after it.
fn protocol(visibility: Visibility) -> (&'static str, &'static str, &'static str) {
    match visibility {
        // A bulk copy is a program of its own: simulate/tests/bulk.rs.
        Visibility::Mbarrier | Visibility::BulkGroup => Default::default(),
        // A copy that is compared as if it had arrived needs no wait.
        Visibility::Immediate | Visibility::AsyncGroup => ("", "", ""),
        Visibility::WgmmaGroup => {
            ("  fence.async\n", "    wgmma.fence\n", "    wgmma.commit\n    wgmma.wait(0)\n")
        }
    }
}

/// A shuffle means no more than itself: the row, in place, is compared with the leaf without a row.
fn exchange(row: &Atom, kind: SpecKind, text: &str, body: &str, from: &str, to: &str) -> String {
    let other = body.lines().find(|l| l.contains(to)).unwrap().replace(to, "%other");
    format!(
        "{text}Spec @row <<<#grid, #cta>>> (%g0) -> (%unused) {{\n{body}{other}\n  \
         Move <<<#grid, #cta>>> (%g0) -> ({to})\n  barrier\n  \
         {kind} <<<#grid, #cta>>> ({from}.mine) -> (%other.mine) lane=3\n  \
         Move <<<#grid, #cta>>> (%other) -> ({to}) {{\n    \
         {kind} <<<#grid, #cta>>> ({to}.mine) -> ({to}.mine) lane=3 atom={}\n  }}\n}}",
        row.name
    )
}

/// The different kernels that run a row.
fn kernels(row: &Atom) -> Vec<String> {
    let sets: &[bool] = if row.sets { &[false, true] } else { &[false] };
    let picks = sets.iter().flat_map(|set| (0..3).map(move |pick| (pick, *set)));
    let mut texts: Vec<String> = picks.filter_map(|(pick, set)| kernel(row, pick, set)).collect();
    texts.dedup();
    texts
}

#[test]
fn every_row_computes_what_its_spec_means() {
    let mut n = 0;
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        for row in table.rows() {
            for text in kernels(row) {
                let program = common::program(&text);
                for inputs in [Inputs::Seed(5), Inputs::Ints(5)] {
                    let options = Options { inputs, ..Options::default() };
                    let report = simulate(&program, &table, &options).unwrap_or_else(|e| {
                        panic!("{arch} {}: {e}: {}\n{text}", row.name, e.label)
                    });
                    let k = &report.kernels[0];
                    assert_eq!((k.specs, k.unchecked.len()), (1, 1), "{arch} {}\n{text}", row.name);
                    if inputs == Inputs::Ints(5) {
                        assert_eq!(k.max_error, 0.0, "{arch} {}", row.name);
                    }
                    n += 1;
                }
            }
        }
    }
    assert!(n > 1000, "{n} runs");
}

/// A kernel that copies a tensor by the row and back by plain moves, or the reverse: the tensor is 2^n
/// boxes, or two runs.
fn bulk(row: &Atom, scalar: Scalar) -> String {
    let n = if let Extent::Box(n) = row.extent { n } else { 1 };
    let width = 256 / scalar.bits();
    let list = |outer: i64, last: i64| {
        let mut all = vec![outer.to_string(); n - 1];
        all.push(last.to_string());
        all.join(",")
    };
    let (boxed, swizzle) = match row.extent {
        Extent::Box(_) => (".tensormap", "swizzle=(1,4,3)"),
        _ => (".tile", "align=16"),
    };
    let load = row.visibility == Visibility::Mbarrier;
    let whole = format!("%{}", if load { "in" } else { "out" });
    let define = match row.extent {
        Extent::Box(_) => format!("{boxed}([{}], {swizzle})", list(2, width)),
        _ => format!("{boxed}([{width}])"),
    };
    let indices: Vec<String> = (0..n).map(|i| format!("(i / {}) % 2", 1 << i)).collect();
    let index = indices.join(", ");
    let mut attributes = format!("cache={}", row.cache);
    attributes += if load { " bar=%full" } else { "" };
    attributes += if row.number("mask").is_some() { " multicast=1" } else { "" };
    let plain =
        format!("{}.tile([{}])[{index}]", if load { "%out" } else { "%in" }, list(2, width));
    let body = if load {
        format!(
            "    Spec <<<#grid, #one>>> (%in, %full) -> (%s) {{
      mbarrier.expect(%full, {})
      Move <<<#grid, #one>>> (%m[{index}]) -> (%s) {attributes} atom={}
    }}
    mbarrier.wait(%full, i % 2)
    Move <<<#grid, #cta>>> (%s) -> ({plain})
",
            (2i64 << (n - 1)) / 2 * 32,
            row.name
        )
    } else {
        format!(
            "    Move <<<#grid, #cta>>> ({plain}) -> (%s)
    barrier
    Spec <<<#grid, #one>>> (%s) -> (%out) {{
      fence.async
      Move <<<#grid, #one>>> (%s) -> (%m[{index}]) {attributes} atom={}
      bulk.commit
      bulk.wait(0)
    }}
",
            row.name
        )
    };
    format!(
        "carbyne 1
%in:[{0}].{scalar}.GL
%out:[{0}].{scalar}.GL
#grid:[1].block
#cta:[32].thread
Move @row <<<#grid, #cta>>> (%in) -> (%out) {{
  #one:[].thread = #cta[0]
  %m = {whole}{define}
  Allocate %s:[{1}].{scalar}.SH{{align=256, {swizzle}}}
  Allocate %full:[1].mbarrier.SH
  Spec <<<#grid, #one>>> () -> (%full) {{
    mbarrier.init(%full, 1)
    fence.async
  }}
  barrier
  for (i = 0; i < {2}; i += 1) {{
{body}    barrier
  }}
}}
",
        list(4, 2 * width),
        list(2, width),
        1 << n,
    )
    .replace("align=256, align=16", "align=256")
}

#[test]
fn every_bulk_row_copies() {
    let mut n = 0;
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        for row in table.rows().iter().filter(|r| r.extent != Extent::Tile) {
            for scalar in [Scalar::F16, Scalar::F32, Scalar::U8] {
                let text = bulk(row, scalar);
                let report = simulate(&common::program(&text), &table, &Options::default())
                    .unwrap_or_else(|e| panic!("{arch} {}: {e}: {}\n{text}", row.name, e.label));
                let k = &report.kernels[0];
                assert!(k.checked && k.complete && k.max_error == 0.0, "{}\n{text}", row.name);
                n += 1;
            }
        }
    }
    assert!(n > 300, "{n} runs");
}

/// The layout with two strides exchanged, for every pair that makes it another function.
fn exchanged(tv: &Layout) -> Vec<Layout> {
    let strides = tv.stride().flatten();
    let mut out = vec![];
    for i in 0..strides.len() {
        for j in 0..i {
            let mut new = strides.clone();
            new.swap(i, j);
            let mut next = new.into_iter();
            let stride = tv.stride().map(&mut |_| next.next().unwrap());
            let layout = Layout::new(tv.shape().clone(), stride).unwrap();
            if (0..tv.size()).any(|e| layout.at(e) != tv.at(e)) {
                out.push(layout);
            }
        }
    }
    out
}

#[test]
fn every_wrong_layout_is_noticed() {
    let (mut n, mut by_value) = (0, 0);
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        // Of rows that differ in the number of columns alone two are enough.
        let tables = [table.clone()];
        for row in docs::series(&tables).iter().flat_map(|s| s.rows.iter().take(2)) {
            let row: &Atom = row;
            let Some(text) = kernel(row, 0, false) else { continue };
            let program = common::program(&text);
            for i in 0..row.operands.len() {
                for tv in exchanged(&row.operands[i].tv) {
                    let mut wrong = row.clone();
                    wrong.operands[i].tv = tv.clone();
                    let table = table.clone().with(wrong);
                    let name = format!("{arch}/{}.{} as {tv}", row.name, row.operands[i].name);
                    let Err(e) = simulate(&program, &table, &Options::default()) else {
                        panic!("{name} is not noticed\n{text}")
                    };
                    assert!(
                        matches!(e.code, Code::WrongElement | Code::AtomMismatch),
                        "{name}: {e}"
                    );
                    by_value += usize::from(e.code == Code::WrongElement);
                    n += 1;
                }
            }
        }
    }
    assert!(n > 100 && by_value > 100, "{n} layouts, {by_value} noticed by a value");
}
