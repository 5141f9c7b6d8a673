//! Describes the wrong elements of a tensor for the error about a wrong result: their number, a
//! common property, and a picture in text. `64 of 4096 elements are wrong: all of [0 to 7, 0 to 7]`
//! points to a tile, every n-th column to a wrong stage or mask.

use crate::plan::coordinates;

/// Threads of a warp.
const WARP: u16 = 32;
/// The largest number of rows and columns of a picture.
const MOST: (i64, i64) = (16, 48);
/// The largest number of inspected elements.
const MOST_ELEMENTS: usize = 1 << 16;

/// The compared elements of a tensor.
pub(crate) struct Elements<'a> {
    /// The extents of the tensor.
    modes: &'a [i64],
    /// For each element: coordinates, whether it is wrong, and the thread that wrote it last.
    all: Vec<(Vec<i64>, bool, Option<u16>)>,
}

impl<'a> Elements<'a> {
    /// An empty list for a tensor with these extents.
    pub(crate) fn of(modes: &'a [i64]) -> Self {
        Elements { modes, all: vec![] }
    }

    /// Adds an element by its column-major number. Returns whether the list has room for more.
    pub(crate) fn add(&mut self, e: i64, wrong: bool, writer: Option<u16>) -> bool {
        self.all.push((coordinates(self.modes, e), wrong, writer));
        self.all.len() < MOST_ELEMENTS
    }

    /// The text `64 of 4096 elements are wrong: all of [0 to 7, 0 to 7]`, with a picture unless all
    /// are wrong.
    pub(crate) fn note(&self) -> String {
        let wrong = self.all.iter().filter(|(_, wrong, _)| *wrong).count();
        let all = self.all.len();
        if wrong == all {
            return match all {
                1 => "it is the only element that was compared".to_owned(),
                _ => format!("all {all} elements that were compared are wrong"),
            };
        }
        let verb = if wrong == 1 { "is" } else { "are" };
        let mut note = format!("{wrong} of {all} elements {verb} wrong");
        if let Some(common) = self.common().filter(|_| wrong > 1) {
            note += &format!(": {common}");
        }
        if let Some(picture) = self.picture() {
            note += &format!("\n{picture}");
        }
        note
    }

    /// The range of the elements along each mode.
    fn ranges(&self, only_wrong: bool) -> Vec<(i64, i64)> {
        let mut ranges = vec![(i64::MAX, 0); self.modes.len()];
        for (at, ..) in self.all.iter().filter(|(_, wrong, _)| *wrong || !only_wrong) {
            for (range, c) in ranges.iter_mut().zip(at) {
                *range = (range.0.min(*c), range.1.max(c + 1));
            }
        }
        ranges
    }

    /// A property of exactly the wrong elements.
    fn common(&self) -> Option<String> {
        self.boxed().or_else(|| self.by_writer()).or_else(|| self.periodic())
    }

    /// Whether a property holds for exactly the wrong elements.
    fn exactly(&self, holds: impl Fn(&[i64], Option<u16>) -> bool) -> bool {
        self.all.iter().all(|(at, wrong, writer)| holds(at, *writer) == *wrong)
    }

    /// The wrong elements are one tile.
    fn boxed(&self) -> Option<String> {
        let ranges = self.ranges(true);
        let inside = |at: &[i64], _| at.iter().zip(&ranges).all(|(c, r)| r.0 <= *c && *c < r.1);
        let text = ranges.iter().map(|(from, to)| match to - from {
            1 => from.to_string(),
            _ => format!("{from} to {}", to - 1),
        });
        let text: Vec<String> = text.collect();
        self.exactly(inside).then(|| format!("all of [{}]", text.join(", ")))
    }

    /// The wrong elements are all elements that one warp or one thread wrote.
    fn by_writer(&self) -> Option<String> {
        let thread = self.all.iter().find(|(_, wrong, _)| *wrong)?.2?;
        if self.exactly(|_, writer| writer == Some(thread)) {
            return Some(format!("all that thread {thread} wrote"));
        }
        let warp = |t: u16| t / WARP;
        self.exactly(|_, writer| writer.map(warp) == Some(warp(thread)))
            .then(|| format!("all that warp {} wrote", warp(thread)))
    }

    /// The wrong elements are at every n-th coordinate along a mode, as after a wrong stage or
    /// mask.
    fn periodic(&self) -> Option<String> {
        let first = &self.all.iter().find(|(_, wrong, _)| *wrong)?.0;
        for (m, (from, to)) in self.ranges(false).into_iter().enumerate() {
            for period in [2, 4, 8, 16, 32, 64].into_iter().filter(|n| *n < to - from) {
                let class = first[m] % period;
                if self.exactly(|at, _| at[m] % period == class) {
                    return Some(format!("all whose coordinate {m} is {class} modulo {period}"));
                }
            }
        }
        None
    }

    /// A picture of the rows and columns of the compared elements; a character stands for several
    /// elements of a large tensor. Modes after the first are columns.
    fn picture(&self) -> Option<String> {
        let ranges = self.ranges(false);
        let extent = |(from, to): &(i64, i64)| to - from;
        let (rows, columns) = match &ranges[..] {
            [] => return None,
            [one] => (1, extent(one)),
            [first, rest @ ..] => {
                let rest = rest.iter().map(extent).try_fold(1i64, i64::checked_mul)?;
                (extent(first), rest)
            }
        };
        let sign = ((rows + MOST.0 - 1) / MOST.0, (columns - 1) / MOST.1 + 1);
        let (height, width) = ((rows - 1) / sign.0 + 1, (columns - 1) / sign.1 + 1);
        // The numbers of correct and wrong elements of each character.
        let mut signs = vec![(0, 0); usize::try_from(height.checked_mul(width)?).ok()?];
        for (at, wrong, _) in &self.all {
            let mut own = at.iter().zip(&ranges).map(|(c, range)| (c - range.0, extent(range)));
            let row = if ranges.len() == 1 { 0 } else { own.next()?.0 };
            let (column, _) = own.fold((0, 1), |(sum, step), (c, n)| (sum + c * step, step * n));
            let sign = &mut signs[(row / sign.0 * width + column / sign.1) as usize];
            *(if *wrong { &mut sign.1 } else { &mut sign.0 }) += 1;
        }
        let shown = signs.iter().map(|sign| match sign {
            (0, 0) => ' ',
            (_, 0) => '.',
            (0, _) => '#',
            _ => '+',
        });
        let shown: Vec<char> = shown.collect();
        let lines = shown.chunks(width as usize).map(|line| line.iter().collect::<String>());
        let what = match sign {
            (1, 1) => "a character is an element: `#` is wrong, `.` is correct".to_owned(),
            (m, n) => format!(
                "a character is {m}x{n} elements: `#` all wrong, `+` some wrong, `.` correct"
            ),
        };
        let corner = ranges.iter().map(|(from, _)| from.to_string()).collect::<Vec<_>>().join(",");
        let lines = lines.collect::<Vec<_>>().join("\n");
        Some(format!("picture from [{corner}] on; {what}\n{lines}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(modes: &[i64], wrong: impl Fn(i64) -> bool, writer: impl Fn(i64) -> u16) -> String {
        let mut all = Elements::of(modes);
        let mut list = 0..modes.iter().product();
        assert!(list.all(|e| all.add(e, wrong(e), Some(writer(e)))) || all.all.len() == 65536);
        all.note()
    }

    #[test]
    fn wrong_elements_are_described() {
        let one = |e: i64| (e % 128) as u16;
        assert_eq!(note(&[4, 4], |_| true, one), "all 16 elements that were compared are wrong");
        let tile = note(&[4, 4], |e| e % 4 < 2 && e / 4 >= 2, one);
        assert!(
            tile.starts_with(
                "4 of 16 elements are wrong: all of [0 to 1, 2 to 3]\npicture from [0,0] on; a \
                 character is an element: `#` is wrong, `.` is correct\n..##\n..##\n....\n...."
            ),
            "{tile}"
        );
        let warp = note(&[8, 64], |e| e * 7 % 128 / 32 == 1, |e| (e * 7 % 128) as u16);
        assert!(warp.contains("all that warp 1 wrote"), "{warp}");
        let mask = note(&[8, 8], |e| e / 8 % 4 == 1, |e| (e % 8) as u16);
        assert!(mask.contains("all whose coordinate 1 is 1 modulo 4"), "{mask}");
        let large = note(&[256, 256], |e| e == 0, one);
        assert!(large.starts_with("1 of 65536 elements is wrong\npicture from [0,0]"), "{large}");
        assert!(large.contains("`.` correct\n+"), "{large}");
        assert!(large.lines().all(|l| l.len() <= 100), "{large}");
    }
}
