//! `carbyne explain`: for an error code, prints its section of `docs/errors.md`. For a program,
//! explains which strategies and instructions were considered, and why each was taken or not
//! (`why`).

use super::why;
use crate::args::Explain;
use crate::failure::{Failure, Outcome};
use crate::{Io, output};
use carbyne_ir::diag::Code;

/// A generated page; a test in `cli/tests/all/docs.rs` checks that it is up to date.
const PAGE: &str = include_str!("../../docs/errors.md");

pub(super) fn run(args: &Explain, io: &mut Io<'_>) -> Outcome {
    if let Some(arch) = &args.arch {
        return why::run(args, arch, io);
    }
    let what = args.what.to_string_lossy();
    let asked = what.to_ascii_uppercase();
    if let Some(code) = carbyne_teir::Code::ALL.iter().find(|code| code.as_str() == asked) {
        let text = format!("### {code}\n\n{}\n", code.summary());
        return output::write(None, text.as_bytes(), io);
    }
    let Some((code, _, summary)) = Code::ALL.iter().find(|(_, text, _)| *text == asked) else {
        let known: Vec<&str> = Code::ALL.iter().map(|(_, text, _)| *text).collect();
        if args.what.is_file() {
            return Err(Failure::usage_help(
                "an explanation of a program needs an architecture".to_owned(),
                "add `--arch`, such as `--arch sm_80`".to_owned(),
            ));
        }
        let shown: String = what.chars().take(32).collect();
        return Err(Failure::usage_help(
            format!("there is no error code `{shown}`"),
            format!("use one of the codes {}", known.join(", ")),
        ));
    };
    let text = match section(*code) {
        Some(text) => format!("{}\n", text.trim_end()),
        None => format!("{code}: {summary}\n"),
    };
    output::write(None, text.as_bytes(), io)
}

/// The section of the page about a code, with its heading.
fn section(code: Code) -> Option<&'static str> {
    let start = PAGE.find(&format!("\n### {code}\n"))? + 1;
    let rest = &PAGE[start..];
    let end = rest[4..].find("\n##").map_or(rest.len(), |i| i + 4);
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_section() {
        for (code, text, summary) in Code::ALL {
            let section =
                section(*code).unwrap_or_else(|| panic!("{text}: run `cargo xtask docs`"));
            assert!(section.contains(summary), "{text}: run `cargo xtask docs`");
            assert_eq!(section.matches("### ").count(), 1, "{text}");
        }
    }
}
