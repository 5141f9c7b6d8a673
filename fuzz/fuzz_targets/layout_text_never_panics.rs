//! Fuzz target for the text of layouts: every text is refused, or is parsed to a layout. Printing
//! and parsing again gives an equal layout, and no operation on it panics.
#![no_main]

use carbyne_ir::kit::oracles::layout_text_never_panics;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = layout_text_never_panics(bytes) {
        panic!("{wrong}");
    }
});
