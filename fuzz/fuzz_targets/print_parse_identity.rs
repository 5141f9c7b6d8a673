//! Fuzz target for the printer: a parsed module is printed to a text that parses to an equal
//! module, and that module is printed to the identical text.
#![no_main]

use carbyne_ir::kit::oracles::print_parse_identity;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = print_parse_identity(bytes) {
        panic!("{wrong}");
    }
});
