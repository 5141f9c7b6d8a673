//! Tests that edits by hand of the sm_80 GEMM are checked and not trusted. If any stride of a
//! register fragment, or of a view of A, B or C, is changed, the program is refused or computes a
//! wrong element.

use crate::support::{decomposed, run, sm_80};

const TEXT: &str = include_str!("../../../examples/ampere_gemm_by_hand.cby");

/// Places of the numbers that are strides in `tv=`, `.tv(` and `.reshape(`: after the `:` between
/// two bracketed lists.
fn strides() -> Vec<(usize, usize)> {
    let mut out = vec![];
    for (at, _) in TEXT.match_indices("):(").chain(TEXT.match_indices("]:[")) {
        let line_start = TEXT[..at].rfind('\n').map_or(0, |i| i + 1);
        let line = &TEXT[line_start..at + TEXT[at..].find('\n').unwrap_or(0)];
        let fragment =
            line.contains("tv=") || line.contains(".tv(") || line.contains(".mine.reshape(");
        if line.trim_start().starts_with("//") || !fragment {
            continue;
        }
        // Numbers up to the bracket that closes the list.
        let mut depth = 0;
        let bytes = TEXT.as_bytes();
        let mut i = at + 2;
        loop {
            match bytes[i] {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth -= 1,
                b'0'..=b'9' if !bytes[i - 1].is_ascii_digit() => {
                    let end = i + TEXT[i..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
                    out.push((i, end));
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            i += 1;
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

#[test]
fn the_file_itself_is_right() {
    let table = sm_80();
    let d = decomposed(TEXT, &table).expect("decomposes");
    run(&d.program, &table).expect("runs");
    assert!(TEXT.lines().count() < 150);
}

#[test]
fn no_changed_stride_is_accepted() {
    let table = sm_80();
    let places = strides();
    assert!(places.len() > 30, "{}", places.len());
    for (start, end) in places {
        let old: i64 = TEXT[start..end].parse().expect("a number");
        let new = if old == 0 { 2048 } else { old * 2 };
        let edited = format!("{}{new}{}", &TEXT[..start], &TEXT[end..]);
        let line = TEXT[..start].lines().count();
        let Ok(d) = decomposed(&edited, &table) else { continue };
        assert!(run(&d.program, &table).is_err(), "line {line}: {old} became {new}");
    }
}
