//! Fuzz target for the simulator: every text whose names can be resolved is simulated without a
//! panic, even if it is not verified. It runs on a small budget, in text order and under a random
//! schedule of threads. Errors have a place inside the text.
#![no_main]

use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Code;
use carbyne_simulate::{Inputs, Options, simulate};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static TABLE: LazyLock<AtomTable> =
    LazyLock::new(|| AtomTable::new("sm_90a".parse().expect("an architecture")));

fuzz_target!(|bytes: &[u8]| {
    let Ok(src) = std::str::from_utf8(bytes) else { return };
    let Ok(module) = carbyne_ir::text::parse(src) else { return };
    let Ok(program) = carbyne_ir::resolve::resolve(&module, src) else { return };
    for schedule in [None, Some(1)] {
        let inputs = Inputs::Ints(1);
        let options =
            Options { budget: 100_000, blocks: Some(2), inputs, schedule, ..Options::default() };
        if let Err(error) = simulate(&program, &TABLE, &options) {
            assert!(error.code != Code::Internal, "{error:?}");
            let end = error.span.line_col(src).0;
            assert!(end <= src.lines().count() + 1, "{error:?}");
        }
    }
});
