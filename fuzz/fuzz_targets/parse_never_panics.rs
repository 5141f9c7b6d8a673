//! Oracle: every byte string is answered, with a module or with errors that lie inside it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(errors) = carbyne_ir::text::parse_bytes(bytes) {
        for e in errors.iter() {
            assert!(e.span.start <= e.span.end && e.span.end as usize <= bytes.len(), "{e:?}");
        }
    }
});
