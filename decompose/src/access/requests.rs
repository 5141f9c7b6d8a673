//! Reads the numbers that the attributes of a kernel ask for: consumers and blocks of a cluster.

use carbyne_ir::ast::Key;
use carbyne_ir::program::{Program, Spec, SpecId};

/// How many groups of threads a kernel asks to consume what a producer copies; 0 where it does not.
pub(crate) fn consumers(kernel: &Spec) -> i64 {
    kernel.ints(Key::Consumers).and_then(|n| n.first().copied()).unwrap_or(0)
}

/// How many blocks of a kernel form a cluster, as its blocks or its attribute say.
pub(crate) fn cluster(p: &Program, kernel: SpecId) -> i64 {
    let asked = p.specs[kernel].ints(Key::Cluster).and_then(|n| n.first().copied());
    asked.or_else(|| p.cluster_size(kernel)).unwrap_or(1).max(1)
}
