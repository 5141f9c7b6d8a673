//! Fuzz target for the parser: every byte string is parsed to a module, or refused with errors at
//! places inside the text.
#![no_main]

use carbyne_ir::kit::oracles::parse_never_panics;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = parse_never_panics(bytes) {
        panic!("{wrong}");
    }
});
