//! `carbyne simulate --against PARENT`: an edited program must still be the specs of its parent.
//!
//! What a kernel means is its head: the spec, its operands and their types. Where heads agree, comparing a
//! body with its own head is comparing it with the parent's.

use crate::failure::{Failure, Outcome, Source};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Operand, Program, SpecId, TensorId, show_levels};

/// Fails where a kernel of the edited program is not the spec of the parent's of the same name.
pub(super) fn check(edited: (&Source, &Program), parent: (&Source, &Program)) -> Outcome {
    let (source, program) = edited;
    for &id in &parent.1.kernels {
        let was = &parent.1.specs[id];
        let name = was.name.as_deref();
        let same = |k: &&SpecId| program.specs[**k].name.as_deref() == name;
        let called = name.map_or("without a name".to_owned(), |n| format!("`@{n}`"));
        let Some(&here) = program.kernels.iter().find(same) else {
            let text = format!("the kernel {called} of `{}` is missing", parent.0.name);
            let span = program.kernels.first().map(|k| program.specs[*k].span).unwrap_or_default();
            let d = Diagnostic::new(Code::OtherSpec, span, text)
                .help("keep the kernel and its name; edit its body");
            return Err(Failure::one(source, d));
        };
        let (wanted, found) = (head(parent.1, id), head(program, here));
        if wanted != found {
            let text = format!("the kernel {called} is another spec than in `{}`", parent.0.name);
            let d = Diagnostic::new(Code::OtherSpec, program.specs[here].span, text)
                .label(format!("this is {found}"))
                .note(format!("the parent's is {wanted}"))
                .help("keep the head of the kernel and the types of its operands; edit its body");
            return Err(Failure::one(source, d));
        }
    }
    Ok(())
}

/// `MatMul.set (%A:[4096,4096].f16, ..) -> (%C:..) acc=f32`
fn head(p: &Program, id: SpecId) -> String {
    let spec = &p.specs[id];
    let tensor = |t: TensorId| {
        let levels = show_levels(&p.arena, &p.tensors[t].levels);
        format!("{}:{levels}.{}", p.tensor_name(t), p.scalar_of(t))
    };
    let inputs: Vec<String> = spec
        .inputs
        .iter()
        .map(|o| match o {
            Operand::Tensor(t) => tensor(*t),
            Operand::Number(n) => n.to_string(),
        })
        .collect();
    let outputs: Vec<String> = spec.outputs.iter().map(|t| tensor(*t)).collect();
    let mut text = format!("{} ({}) -> ({})", spec.kind, inputs.join(", "), outputs.join(", "));
    if let Some(acc) = spec.acc {
        text.push_str(&format!(" acc={acc}"));
    }
    if let Some(axes) = spec.axes() {
        text.push_str(&format!(" axis={axes:?}"));
    }
    text
}
