//! Blocks that have fewer threads than a warp, of which the other lanes idle.

use crate::access::ops::{WARP, block_threads};
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
    let message = format!("each block has {threads} of the {WARP} threads of a warp");
    let idle = format!("{} of {WARP} lanes do nothing", WARP - threads);
    let help = "write a body whose blocks have whole warps, or pad a size to a multiple of 32";
    Some(Diagnostic::warning(Code::Idle, spec.span, message).label(idle).help(help))
}
