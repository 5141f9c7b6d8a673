//! Tests that a range such as `%A[1..3]` contains the elements that it names, in their order, or is
//! refused, also in hierarchical modes. Aligned parts of a mode must not be refused.

use carbyne_ir::layout::Layout;
use carbyne_ir::{resolve, text};

/// All offsets of a constant layout, in the order of coordinates.
fn offsets(layout: &Layout<i64>) -> Vec<i64> {
    (0..layout.size()).map(|i| layout.at(i)).collect()
}

/// The offsets of `mode[from..to]`; `None` if it is refused.
fn range_of(mode: &str, from: i64, to: i64) -> Option<Vec<i64>> {
    let src = format!("carbyne 2\n%A:[{mode}].f32.GL\n%B = %A[{from}..{to}]\n");
    let program = resolve::resolve(&text::parse(&src).unwrap(), &src).ok()?;
    let (_, part) = program.tensors.iter().find(|(_, t)| t.name.as_deref() == Some("B"))?;
    let at = part.offset.as_const().unwrap();
    let layout = part.concat().to_fixed().unwrap();
    Some(offsets(&layout).into_iter().map(|o| o + at).collect())
}

#[test]
fn a_range_is_its_elements_or_refused() {
    let modes = [
        ("(6):(5)", vec![6], vec![5]),
        ("((2,2)):((1,3))", vec![2, 2], vec![1, 3]),
        ("((2,2)):((1,2))", vec![2, 2], vec![1, 2]),
        ("((4,2)):((2,1))", vec![4, 2], vec![2, 1]),
        ("((2,4)):((0,1))", vec![2, 4], vec![0, 1]),
        ("((2,3,2)):((3,1,7))", vec![2, 3, 2], vec![3, 1, 7]),
        ("((2,2,4)):((1,2,9))", vec![2, 2, 4], vec![1, 2, 9]),
        ("((4,1,3)):((3,5,16))", vec![4, 1, 3], vec![3, 5, 16]),
    ];
    for (mode, shape, stride) in modes {
        let at = |mut i: i64| {
            let digit = |(n, d): (&i64, &i64)| {
                let digit = i % n;
                i /= n;
                digit * d
            };
            shape.iter().zip(&stride).map(digit).sum::<i64>()
        };
        let size: i64 = shape.iter().product();
        let mut taken = 0;
        for from in 0..size {
            for to in from + 1..=size {
                let Some(found) = range_of(mode, from, to) else { continue };
                taken += 1;
                let wanted: Vec<i64> = (from..to).map(at).collect();
                assert_eq!(found, wanted, "[{mode}][{from}..{to}]");
            }
        }
        // Single elements, and the complete mode.
        assert!(taken > size, "[{mode}]: {taken} ranges");
        // Aligned parts of the mode.
        for from in (0..size).step_by(shape[0] as usize) {
            let to = from + shape[0];
            assert!(range_of(mode, from, to).is_some(), "[{mode}][{from}..{to}]");
        }
    }
    assert!(range_of("((2,2)):((1,3))", 1, 4).is_none());
    assert!(range_of("(6):(5)", 1, 4).is_some());
}
