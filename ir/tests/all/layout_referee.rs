//! Compares composition with brute force. For layouts of up to 64 coordinates, an exhaustive search
//! decides whether `A ∘ B` is a layout. Composition must find it if it exists, and must refuse
//! otherwise.
//!
//! `CARBYNE_PAIRS=200000` sets the number of pairs. The log reports how many were refused, and how
//! many CuTe's rule of divisibility alone would refuse or get wrong.

#![expect(clippy::print_stderr, reason = "the log has the refusal rate")]

use carbyne_ir::layout::Layout;
use carbyne_ir::testing;

/// A random sequence of numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % n as u64) as usize
    }

    /// A flat layout of up to 64 coordinates.
    fn layout(&mut self) -> Vec<(i64, i64)> {
        let mut leaves = vec![];
        let mut size = 1;
        for _ in 0..=self.below(4) {
            let extent = 1 + self.below(8) as i64;
            if size * extent > 64 {
                break;
            }
            // Half of the strides continue the preceding modes, so that compositions exist often
            // enough.
            let near = [size, size * 2, size / 2, 1][self.below(4)];
            let stride = if self.below(2) == 0 { near } else { self.below(17) as i64 };
            leaves.push((extent, stride));
            size *= extent;
        }
        leaves
    }
}

/// The index of coordinate `i`; the last leaf has no end.
fn at(leaves: &[(i64, i64)], mut i: i64) -> i64 {
    let mut index = 0;
    for (k, (extent, stride)) in leaves.iter().enumerate() {
        let last = k + 1 == leaves.len();
        index += if last { i } else { i % extent } * stride;
        i /= extent;
    }
    index
}

/// Whether the values are those of a layout, tried with all factorizations of the length.
fn is_layout(values: &[i64]) -> bool {
    let n = values.len();
    if n == 1 {
        return values[0] == 0;
    }
    (2..=n).filter(|extent| n.is_multiple_of(*extent)).any(|extent| {
        let stride = values[1];
        let digits =
            (0..n).all(|i| values[i] == values[i / extent * extent] + (i % extent) as i64 * stride);
        let rest: Vec<i64> = values.iter().step_by(extent).copied().collect();
        digits && is_layout(&rest)
    })
}

/// Whether a layout with a profile that refines that of `b` is `a ∘ b`.
fn exists(a: &[(i64, i64)], b: &[(i64, i64)]) -> bool {
    let alone = |&(extent, stride): &(i64, i64)| -> Vec<i64> {
        (0..extent).map(|i| at(a, i * stride)).collect()
    };
    let parts: Vec<Vec<i64>> = b.iter().map(alone).collect();
    let size: i64 = b.iter().map(|l| l.0).product();
    let sums = (0..size).all(|i| {
        let mut rest = i as usize;
        let mut sum = 0;
        for part in &parts {
            sum += part[rest % part.len()];
            rest /= part.len();
        }
        sum == at(a, at(b, i))
    });
    sums && parts.iter().all(|part| is_layout(part))
}

/// The result of CuTe's rule for one leaf; `None` if its assertions fail.
fn by_rule(a: &[(i64, i64)], (extent, stride): (i64, i64)) -> Option<Vec<(i64, i64)>> {
    let (last, digits) = a.split_last()?;
    let (mut rest, mut rate, mut out) = (extent, stride, vec![]);
    if stride == 0 {
        return Some(vec![(extent, 0)]);
    }
    for (s, d) in digits {
        if rate % s != 0 && rate >= *s {
            return None;
        }
        let (next, rest_rate) = ((s + rate - 1) / rate, (rate + s - 1) / s);
        if next != 1 && rest != 1 {
            let new = next.min(rest);
            if rest % new != 0 {
                return None;
            }
            out.push((new, rate * d));
            rest /= new;
        }
        rate = rest_rate;
    }
    if out.is_empty() || rest != 1 {
        out.push((rest, rate * last.1));
    }
    Some(out)
}

#[test]
fn composition_refuses_only_what_is_no_layout() {
    let n = std::env::var("CARBYNE_PAIRS").ok().and_then(|n| n.parse().ok());
    let n = n.unwrap_or(testing::count(20_000, 200_000));
    let mut random = Random(1);
    let (mut n_exist, mut refused, mut rule_refuses, mut rule_wrong) = (0, 0, 0, 0);
    for _ in 0..n {
        let (a, b) = (random.layout(), random.layout());
        if a.is_empty() || b.is_empty() {
            continue;
        }
        let layout = |leaves: &[(i64, i64)]| -> Layout {
            let (shape, stride): (Vec<i64>, Vec<i64>) = leaves.iter().copied().unzip();
            Layout::new(shape, stride).unwrap()
        };
        let (la, lb) = (layout(&a), layout(&b));
        // The modes of `a` that have an effect, and the last one.
        let outer = la.coalesce().leaves().to_vec();
        let result = la.compose(&lb);
        if let Ok(r) = &result {
            assert!(lb.shape().compatible(&r.shape()), "{la} o {lb} = {r}");
            assert!((0..lb.size()).all(|i| r.at(i) == at(&a, at(&b, i))), "{la} o {lb} = {r}");
        }
        let exists = exists(&a, &b);
        assert!(exists || result.is_err(), "{la} o {lb}");
        let rule: Option<Vec<_>> = b.iter().map(|leaf| by_rule(&outer, *leaf)).collect();
        let right = |modes: &Vec<Vec<(i64, i64)>>| {
            let leaves: Vec<(i64, i64)> = modes.concat();
            let size: i64 = b.iter().map(|l| l.0).product();
            (0..size).all(|i| at(&leaves, i) == at(&a, at(&b, i)))
        };
        rule_wrong += usize::from(rule.as_ref().is_some_and(|rule| !right(rule)));
        if exists {
            n_exist += 1;
            refused += usize::from(result.is_err());
            rule_refuses += usize::from(rule.is_none());
        }
    }
    let percent = |k: usize| 100.0 * k as f64 / f64::from(n_exist.max(1));
    eprintln!(
        "{n} pairs, {n_exist} of them with an exact layout: refused {refused} ({:.2} %); the rule \
         of \
         divisibility alone refuses {rule_refuses} ({:.2} %), and is wrong for {rule_wrong} pairs",
        percent(refused),
        percent(rule_refuses),
    );
    assert_eq!(refused, 0);
    assert!(n_exist > n / 10, "only {n_exist} compositions exist");
}
