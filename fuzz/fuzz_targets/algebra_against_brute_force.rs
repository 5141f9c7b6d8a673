//! Fuzz target for layout algebra: results agree with an enumeration of all coordinates, and every
//! operation whose conditions hold has a result.
#![no_main]

use carbyne_ir::kit::oracles::algebra_against_brute_force;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(wrong) = algebra_against_brute_force(bytes) {
        panic!("{wrong}");
    }
});
