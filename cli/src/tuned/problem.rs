//! Prints a kernel-level spec without names, as the key of a database entry: its computation, the
//! types, strides and memories of its tensors, and the bounds of its symbols. Programs that differ
//! only in names have equal texts, so that they share an entry.

use carbyne_ir::ast::{Attr, CacheHint, Key};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{
    BufferId, Means, MeansInput, MeansOp, Operand, Program, SpecId, TensorId, show_levels,
};
use std::fmt::Write;

/// The text of a spec in one line: the computation with the types, strides and memories of its
/// tensors, and its intermediate values. Tensors are numbered in the order of operands, symbols in
/// the order of the program.
pub(crate) fn problem(p: &Program, id: SpecId) -> String {
    let spec = &p.specs[id];
    let mut writer = Writer { p, buffers: vec![], out: String::new() };
    let _ = write!(writer.out, "{} (", spec.kind);
    for (i, input) in spec.inputs.iter().enumerate() {
        writer.separate(i);
        match input {
            Operand::Tensor(t) => writer.tensor(*t),
            Operand::Number(v) => drop(write!(writer.out, "{v:?}")),
        }
    }
    writer.out.push_str(") -> (");
    for (i, output) in spec.outputs.iter().enumerate() {
        writer.separate(i);
        writer.tensor(*output);
    }
    writer.out.push(')');
    if let Some(acc) = spec.acc {
        let _ = write!(writer.out, " acc={acc}");
    }
    if let Some(axes) = spec.ints(Key::Axis) {
        let _ = write!(writer.out, " axis={axes:?}");
    }
    if spec.cache != CacheHint::Normal {
        let _ = write!(writer.out, " cache={}", spec.cache);
    }
    if let Some(valid) = spec.valid {
        let _ = write!(writer.out, " valid={}", p.arena.display(valid));
    }
    if let Some(word) = spec.attr(Key::Math).and_then(Attr::as_word) {
        let _ = write!(writer.out, " math={word}");
    }
    if let Some(exec) = spec.exec {
        for threads in [exec.blocks, exec.threads] {
            let levels = show_levels(&p.arena, &p.threads[threads].levels);
            let _ = write!(writer.out, " by {levels}");
        }
    }
    if let Some(means) = &spec.means {
        writer.means(means);
    }
    without_symbols(p, &writer.out)
}

struct Writer<'a> {
    p: &'a Program,
    /// The buffers in the order of their numbers.
    buffers: Vec<BufferId>,
    out: String,
}

impl Writer<'_> {
    fn separate(&mut self, i: usize) {
        if i > 0 {
            self.out.push_str(", ");
        }
    }

    /// Writes the number and the type of a tensor.
    fn tensor(&mut self, id: TensorId) {
        let (tensor, buffer) = (&self.p.tensors[id], self.p.buffer_of(id));
        let at = self.buffers.iter().position(|b| *b == tensor.buffer).unwrap_or_else(|| {
            self.buffers.push(tensor.buffer);
            self.buffers.len() - 1
        });
        let levels = show_levels(&self.p.arena, &tensor.levels);
        let _ = write!(self.out, "%{at}:{levels}.{}", buffer.scalar);
        if let Some(memory) = buffer.memory.filter(|m| !m.is_global()) {
            let _ = write!(self.out, ".{memory}");
        }
        if tensor.offset.as_const() != Some(0) {
            let _ = write!(self.out, "+{}", self.p.arena.display(tensor.offset));
        }
        // The elements are gathered through another tensor.
        if let Some(gather) = buffer.gather {
            let _ = write!(self.out, " gathered by {}", gather.stride);
        }
    }

    fn means(&mut self, means: &Means) {
        self.out.push_str(" means {");
        for (i, value) in means.values.iter().enumerate() {
            // The operand with this value.
            if let Some(operand) = value.operand {
                let _ = write!(self.out, " %v{i} is ");
                self.tensor(operand);
                self.out.push(';');
            }
        }
        for step in &means.steps {
            let _ = write!(self.out, " %v{} = ", step.output);
            match &step.op {
                MeansOp::Spec { kind, axes, scalar } => {
                    let _ = write!(self.out, "{kind}");
                    if !axes.is_empty() {
                        let _ = write!(self.out, " axis={axes:?}");
                    }
                    if let Some(scalar) = scalar {
                        let _ = write!(self.out, " {scalar}");
                    }
                }
                MeansOp::Gather { axis } => drop(write!(self.out, "gather axis={axis}")),
                MeansOp::Pad { before, value, .. } => {
                    let list = |dims: &[Dim]| {
                        let shown = dims.iter().map(|n| self.p.arena.display(*n).to_string());
                        shown.collect::<Vec<_>>().join(",")
                    };
                    let (before, extents) =
                        (list(before), list(&means.values[step.output].extents));
                    let _ = write!(self.out, "pad [{before}] of [{extents}] {value:?}");
                }
                MeansOp::View { layout, offset, .. } => {
                    let levels = [Layout::clone(layout)];
                    let levels = show_levels(&self.p.arena, &levels);
                    let offset = self.p.arena.display(*offset);
                    let _ = write!(self.out, "view {levels}+{offset}");
                }
            }
            for input in &step.inputs {
                let _ = match input {
                    MeansInput::Value(v) => write!(self.out, " %v{v}"),
                    MeansInput::Number(v) => write!(self.out, " {v:?}"),
                    MeansInput::Size(d) => write!(self.out, " {}", self.p.arena.display(*d)),
                };
            }
            self.out.push(';');
        }
        let outputs: Vec<String> = means.outputs.iter().map(|o| format!("%v{o}")).collect();
        let _ = write!(self.out, " -> {} }}", outputs.join(", "));
    }
}

/// Replaces the names of symbols by numbers, and appends the known bounds of the symbols.
fn without_symbols(p: &Program, text: &str) -> String {
    if p.symbols.is_empty() {
        return text.to_owned();
    }
    let infos: Vec<_> = p.symbols.iter().map(|v| p.arena.var_info(*v)).collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut out, mut used) = (String::new(), vec![]);
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (word, more) = rest.split_at(end.max(rest.chars().next().map_or(0, char::len_utf8)));
        match infos.iter().position(|info| info.name == word) {
            Some(symbol) => {
                let at = used.iter().position(|u| *u == symbol).unwrap_or_else(|| {
                    used.push(symbol);
                    used.len() - 1
                });
                let _ = write!(out, "${at}");
            }
            None => out.push_str(word),
        }
        rest = more;
    }
    for (i, symbol) in used.into_iter().enumerate() {
        let info = &infos[symbol];
        let hi = info.hi.map_or("..".to_owned(), |hi| format!("..{hi}"));
        let _ = write!(out, " ${i}:{}{hi}/{}", info.lo, info.div);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let module = carbyne_ir::text::parse(text).unwrap();
        let p = carbyne_decompose::checked(&module, text).unwrap_or_else(|e| panic!("{e:?}"));
        p.kernels.iter().map(|k| problem(&p, *k)).collect()
    }

    #[test]
    fn names_do_not_matter_and_everything_else_does() {
        let gemm = "carbyne 2\n%A:[64,32].f16.GL\n%B:[(32,64):(1,32)].f16.GL\n%C:[64,64].f16.GL\n\
            MatMul.set @gemm (%A, %B) -> (%C) acc=f32\n";
        let [only] = &of(gemm)[..] else { panic!() };
        assert_eq!(
            only,
            "MatMul.set (%0:[(64,32):(32,1)].f16, %1:[(32,64):(1,32)].f16) -> \
             (%2:[(64,64):(64,1)].f16) acc=f32"
        );
        let renamed = "carbyne 2\nlet K = 16 * 2\n%unused:[8].f32.GL\n%y:[64,64].f16.GL\n\
                       %x:[64,K].f16.GL\n%w:[(K,64):(1,K)].f16.GL\n\
            MatMul.set @k (%x, %w) -> (%y) acc=f32 loc=\"a:1\"\n";
        assert_eq!(of(renamed), of(gemm));
        for (from, to) in [
            ("acc=f32", "acc=f16"),
            ("[(32,64):(1,32)]", "[32,64]"),
            ("%C:[64,64].f16", "%C:[64,64].f32"),
            ("MatMul.set", "MatMul"),
            ("64,32", "128,32"),
        ] {
            let other = gemm
                .replace(from, to)
                .replace("%C:[64,64]", if from == "64,32" { "%C:[128,64]" } else { "%C:[64,64]" });
            assert_ne!(of(&other), of(gemm), "{from}");
        }
    }

    #[test]
    fn meanings_and_symbols_are_part_of_it() {
        let text = "carbyne 2\nsym S{min=64, max=4096, div=64}\n%X:[S,128].f16.GL\n\
                    %b:[1,128].f32.GL\n%Y:[S,128].f16.GL\n\
            Spec @k (%X, %b) -> (%Y) means {\n  %t = relu(cast(%X, f32) + %b)\n  %Y = cast(%t, \
            f16)\n}\n";
        let [only] = &of(text)[..] else { panic!() };
        assert!(only.contains("$0:64..4096/64") && only.contains("UnaryPointwise.relu"), "{only}");
        assert!(!only.contains('S') || only.starts_with("Spec"), "{only}");
        let renamed = text.replace("%t", "%other").replace('S', "T").replace("Tpec", "Spec");
        assert_eq!(of(&renamed), of(text));
        assert_ne!(of(&text.replace("relu", "exp")), of(text));
        assert_ne!(of(&text.replace("max=4096", "max=8192")), of(text));
        // One tensor twice differs from two tensors.
        let add = |b: &str| {
            of(&format!(
                "carbyne 2\n%A:[64].f32.GL\n%B:[64].f32.GL\n%C:[64].f32.GL\nBinaryPointwise.add \
                 @k (%A, %{b}) -> (%C)\n"
            ))
        };
        assert_ne!(add("A"), add("B"));
    }
}
