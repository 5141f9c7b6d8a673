//! Warns about a kernel of several blocks that each have fewer threads than a warp, because the
//! other lanes idle.

use crate::access::ops::{WARP, block_threads, whole};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};

/// Warns about a kernel of several such blocks.
pub(super) fn warning(p: &Program, kernel: SpecId) -> Option<Diagnostic> {
    let spec = &p.specs[kernel];
    let threads = block_threads(p, kernel);
    let blocks = p.threads[spec.exec?.blocks].concat().to_fixed().map(|l| l.size());
    if !(1..WARP).contains(&threads) || blocks == Some(1) {
        return None;
    }
    let name = spec.name.as_deref().map_or(String::new(), |name| format!(" of `@{name}`"));
    let message = format!("each block{name} has {threads} of the {WARP} threads of a warp");
    // A strategy gives a block as many threads as the reduced mode has work for.
    let reduced = p.walk_body(kernel).specs().find_map(|id| {
        let (spec, from) = (&p.specs[id], p.specs[id].input_tensors().next()?);
        let from = whole(p, from)?;
        let axes = matches!(spec.kind, SpecKind::Reduction(_)).then(|| spec.axes()).flatten()?;
        axes.iter().map(|axis| Some(from.mode(*axis).ok()?.size())).product::<Option<i64>>()
    });
    let idle = format!("{} of {WARP} lanes do nothing", WARP - threads);
    let (why, help) = match reduced {
        Some(n) => (
            format!(": a block reduces {n} elements"),
            format!("pad the reduced mode, of {n} elements, to a multiple of {WARP}, or "),
        ),
        None => (String::new(), String::new()),
    };
    let help = format!("{help}write a body whose blocks have whole warps");
    Some(Diagnostic::warning(Code::Idle, spec.span, message).label(idle + &why).help(help))
}
