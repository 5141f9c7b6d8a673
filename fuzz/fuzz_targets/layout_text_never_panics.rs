//! Oracle: every text is refused, or parsed to a layout that survives printing and parsing and on
//! which no operation panics.
#![no_main]

use carbyne_ir::kit::oracles::layout_text_never_panics;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = layout_text_never_panics(bytes) {
        panic!("{wrong}");
    }
});
