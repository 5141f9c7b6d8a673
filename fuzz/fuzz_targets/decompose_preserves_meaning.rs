//! Fuzz target for `decompose`: a program that the simulator executes without errors is refused
//! with a reason, or its decomposition computes equal results under a random schedule of threads,
//! without races and reads of undefined elements.
#![no_main]

use carbyne_atoms::{Arch, AtomTable};
use carbyne_testkit::gate::{Verdict, case, judge};
use libfuzzer_sys::fuzz_target;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::HashMap;
use std::sync::LazyLock;

static TABLES: LazyLock<HashMap<&str, AtomTable>> =
    LazyLock::new(|| Arch::ALL.iter().map(|a| (a.as_str(), AtomTable::new(*a))).collect());

fuzz_target!(|bytes: &[u8]| {
    let rng = TestRng::from_seed(RngAlgorithm::PassThrough, bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let Ok(tree) = case().new_tree(&mut runner) else { return };
    let (subject, _) = tree.current().render();
    if subject.text.is_empty() {
        return;
    }
    if let Verdict::Failed(failure) = judge(&subject, &TABLES[subject.arch.as_str()]) {
        let title = format!("{}: {}", failure.kind, failure.what);
        panic!("{}{}", subject.write(&title), failure.decomposed.unwrap_or_default());
    }
});
