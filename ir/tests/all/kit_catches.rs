//! Tests that the kit finds the two bugs of `examples/broken_layout.rs`, and reports them with
//! small layouts.

#[expect(dead_code, unreachable_pub, reason = "the example is a program of its own")]
#[path = "../../examples/broken_layout.rs"]
mod broken_layout;

use carbyne_ir::layout::Layout;

#[test]
fn bugs_are_found_and_shown_small() {
    let broken = broken_layout::broken(1000);
    let mut laws: Vec<_> = broken.iter().map(|report| report.law).collect();
    laws.sort_unstable();
    assert_eq!(
        laws,
        [
            "complement",
            "complement_any",
            "complement_large",
            "composition",
            "composition_any",
            "composition_large",
        ]
    );
    for report in &broken {
        let failure = report.failure.as_ref().expect("a failure");
        let error = failure.error.as_ref().expect("no panic");
        assert!(report.law.starts_with(error.law), "{error}");
        for (name, operand) in &error.inputs {
            let Ok(layout) = operand.parse::<Layout>() else {
                assert_eq!(*name, "cotarget");
                continue;
            };
            let most = if report.law.ends_with("_large") { 192 } else { 24 };
            assert!(layout.leaves().len() <= 2 && layout.size() <= most, "{error}");
        }
    }
}
