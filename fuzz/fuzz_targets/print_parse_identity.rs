//! Oracle: a parsed module is printed to a text that parses to an equal module and prints to the
//! same text.
#![no_main]

use carbyne_ir::kit::oracles::print_parse_identity;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = print_parse_identity(bytes) {
        panic!("{wrong}");
    }
});
