//! Fuzz target for `decompose`: every text is decomposed or refused, without panics and without
//! internal errors.
#![no_main]

use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Code;
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static TABLE: LazyLock<AtomTable> =
    LazyLock::new(|| AtomTable::new("sm_80".parse().expect("an architecture")));

fuzz_target!(|bytes: &[u8]| {
    let Ok(src) = std::str::from_utf8(bytes) else { return };
    let Ok(module) = carbyne_ir::text::parse(src) else { return };
    if let Err(errors) = carbyne_decompose::decompose(&module, src, &TABLE) {
        assert!(errors.iter().all(|e| e.code != Code::Internal), "{errors:?}");
    }
});
