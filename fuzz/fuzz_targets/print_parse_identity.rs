//! Oracle: what is read prints to a text that reads as the same module and prints as itself.
#![no_main]

use carbyne_ir::text::{parse, parse_bytes, print};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(module) = parse_bytes(bytes) else { return };
    let printed = print(&module);
    if printed.len() > carbyne_ir::limits::MAX_TEXT_BYTES {
        return; // Spaces can push a dense text over the limit.
    }
    let again = parse(&printed).expect("printed text parses");
    assert_eq!(again, module);
    assert_eq!(print(&again), printed);
});
