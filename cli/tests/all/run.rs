//! Tests `carbyne run` in builds without the feature `gpu`, which cannot run kernels, and with
//! invalid options. `cli/tests/gpu` contains the tests with a driver.

use crate::support::{carbyne, root};

fn run(more: &[&str]) -> crate::support::Ran {
    let path = root().join("examples/vector_copy.cby").display().to_string();
    let mut args = vec!["run", &path, "--arch", "sm_80", "--message-format", "json"];
    args.extend(more);
    carbyne(&args, "")
}

#[cfg(not(feature = "gpu"))]
#[test]
fn without_the_feature_it_says_how_to_get_it() {
    let ran = run(&[]);
    let errors = ran.errors();
    assert_eq!((ran.code, &errors[0]["code"]), (2, &"R0708".into()), "{}", ran.stderr);
    assert!(errors[0]["help"].as_str().is_some_and(|h| h.contains("--features gpu")));
}

#[test]
fn bad_command_lines_are_refused() {
    for more in [
        &["--repeat", "x"][..],
        &["--compare", "0"],
        &["--timeout", "0"],
        &["--cubin", "a", "--prebuilt", "b"],
        &["--seed", "1", "--ints"],
    ] {
        assert_eq!(run(more).code, 2, "{more:?}");
    }
    assert_eq!(carbyne(&["run", "x.cby"], "").code, 2);
}
