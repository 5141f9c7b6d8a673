//! Blocks that have fewer threads than a warp, of which the other lanes idle.

use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{Program, SpecId};

/// Threads of a warp.
const WARP: i64 = 32;

/// Warns about a kernel of several such blocks.
pub(super) fn warning(p: &Program, kernel: SpecId) -> Option<Diagnostic> {
    let spec = &p.specs[kernel];
    let exec = spec.exec?;
    let size = |threads| p.threads[threads].concat().size_in(&p.arena).ok().and_then(Dim::as_const);
    let threads = size(exec.threads).filter(|n| *n < WARP)?;
    if size(exec.blocks) == Some(1) {
        return None;
    }
    let message = format!("each block has {threads} of the {WARP} threads of a warp");
    let idle = format!("{} of {WARP} lanes do nothing", WARP - threads);
    let help = "write a body whose blocks have whole warps, or pad a size to a multiple of 32";
    Some(Diagnostic::warning(Code::Idle, spec.span, message).label(idle).help(help))
}
