//! Tests `#line` directives in CUDA C++, by which profilers and debuggers show lines of the
//! program.

use crate::support::{carbyne, root, scratch};
use carbyne_codegen::testing::require_nvrtc;

#[test]
fn directives_name_the_line_of_the_next_statement() {
    let folder = scratch("lines");
    let example = root().join("examples/gemm.cby").display().to_string();
    let text = carbyne(&["decompose", &example, "--arch", "sm_80"], "").ok();
    let path = folder.join("kernel \"1\".cby");
    std::fs::write(&path, text.text()).unwrap();
    let file = path.display().to_string();
    let emit = |more: &[&str]| {
        let mut args = vec!["compile", file.as_str(), "--arch", "sm_80"];
        args.extend(more);
        carbyne(&args, "").ok()
    };
    let printed = emit(&["--lines", &file]);
    let literal = file.replace('"', "_");
    let lines: Vec<&str> = printed.text().lines().map(str::trim).collect();
    let mut directives = 0;
    for pair in lines.windows(2).filter(|pair| pair[0].starts_with("#line ")) {
        directives += 1;
        let rest = pair[0].strip_prefix("#line ").unwrap();
        let (line, name) = rest.split_once(' ').unwrap();
        assert_eq!(name, format!("\"{literal}\""));
        let said = format!("// line {line}");
        let after = lines.iter().skip_while(|l| !std::ptr::eq(**l, pair[0])).skip(1);
        let mut next = after.take_while(|l| !l.starts_with("#line "));
        assert!(next.any(|l| l.contains(&said)), "{pair:?}");
    }
    assert!(directives > 50, "{directives}");
    // All else is the file without directives.
    let without: Vec<_> = lines.iter().filter(|l| !l.starts_with("#line ")).collect();
    assert_eq!(
        without,
        emit(&[]).text().lines().map(str::trim).collect::<Vec<_>>().iter().collect::<Vec<_>>()
    );
    if require_nvrtc().is_some() {
        let code = folder.join("kernel.cubin");
        let cubin = code.display().to_string();
        emit(&["--lines", &file, "--emit", "cubin", "-o", &cubin]);
        let holds = |name: &str| {
            let bytes = std::fs::read(&code).unwrap();
            bytes.windows(name.len()).any(|w| w == name.as_bytes())
        };
        assert!(holds("kernel _1_.cby"), "the line table does not name the program");
        emit(&["--emit", "cubin", "-o", &cubin]);
        assert!(!holds("kernel _1_.cby"));
    }
}
