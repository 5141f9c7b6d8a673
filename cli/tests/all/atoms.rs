//! Tests `carbyne atoms`: lists of atoms, the description of an atom, its probe (a program that
//! executes it), and files of costs.

use crate::support::carbyne;
use std::path::Path;

#[test]
fn atoms_are_listed_by_spec() {
    let all = carbyne(&["atoms", "--arch", "sm_80"], "").ok();
    let some = carbyne(&["atoms", "--arch", "sm_80", "--spec", "UnaryPointwise"], "").ok();
    let one = carbyne(&["atoms", "--arch", "sm_80", "--spec", "UnaryPointwise.exp2"], "").ok();
    let n = |text: &str| text.lines().count();
    assert!(n(all.text()) > n(some.text()) && n(some.text()) > n(one.text()) && n(one.text()) > 0);
    assert!(one.text().lines().all(|l| l.contains("UnaryPointwise.exp2")), "{}", one.text());
    let none = carbyne(&["atoms", "--spec", "Mul"], "");
    assert!(none.code == 2 && none.stderr.contains("MatMul"), "{}", none.stderr);
}

#[test]
fn one_atom_is_shown_whole_and_drawn() {
    let shown = carbyne(&["atoms", "--arch", "sm_80", "mma.m16n8k8.f32.f16"], "").ok();
    for part in ["## `mma.m16n8k8.f32.f16`", "| sm_80 |", "D: 16×8 f32 in RF", "T31V3"] {
        assert!(shown.text().contains(part), "{part}: {}", shown.text());
    }
    assert!(!shown.text().contains("sm_75 to"), "{}", shown.text());
}

#[test]
fn an_atoms_probe_is_a_program() {
    let probe = carbyne(&["atoms", "--arch", "sm_80", "ldmatrix.x2.trans.b16", "--probe"], "").ok();
    let ran = carbyne(&["simulate", "-"], probe.text()).ok();
    assert!(ran.stderr.contains("no difference"), "{}", ran.stderr);
    assert_eq!(carbyne(&["fmt", "--check", "-"], probe.text()).code, 0);
}

#[test]
fn costs_are_taken_from_a_file() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let good = write(
        "costs.json",
        r#"{"format": 1, "architectures": ["sm_80"],
            "rows": {"add.f32": {"issue_cycles": 7.25, "completion_cycles": 9.5}}}"#,
    );
    let shown = carbyne(&["atoms", "--arch", "sm_80", "--costs", &good, "add.f32"], "").ok();
    assert!(shown.text().contains("| sm_80 | 7.25 | 9.5 |"), "{}", shown.text());
    let bad = write("no_costs.json", "{}");
    for (arch, costs, part) in
        [("sm_70", &good, "no costs for sm_70"), ("sm_80", &bad, "`format` is not 1")]
    {
        let refused = carbyne(&["atoms", "--arch", arch, "--costs", costs, "add.f32"], "");
        assert!(refused.code == 2 && refused.stderr.contains(part), "{}", refused.stderr);
    }
}
