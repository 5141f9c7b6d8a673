//! Oracle: what is read prints to a text that reads as the same module and prints as itself.
#![no_main]

use carbyne_ir::kit::oracles::print_parse_identity;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = print_parse_identity(bytes) {
        panic!("{wrong}");
    }
});
