//! What repeated launches took.

/// Times of launches, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Ascending.
    sorted: Vec<f64>,
}

impl Timing {
    /// Of these launches.
    #[must_use]
    pub fn new(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Timing { sorted: seconds }
    }

    /// How many there were.
    #[must_use]
    pub fn n_launches(&self) -> usize {
        self.sorted.len()
    }

    /// The middle one; of an even number, the mean of the two in the middle. 0 where there were none.
    #[must_use]
    pub fn median(&self) -> f64 {
        let n = self.sorted.len();
        match n {
            0 => 0.0,
            n if n % 2 == 1 => self.sorted[n / 2],
            n => (self.sorted[n / 2 - 1] + self.sorted[n / 2]) / 2.0,
        }
    }

    /// The shortest; 0 where there were none.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(Timing::default().median(), 0.0);
        let timing = Timing::new(vec![3.0, 1.0, 2.0]);
        assert_eq!((timing.median(), timing.min(), timing.n_launches()), (2.0, 1.0, 3));
        assert_eq!(Timing::new(vec![4.0, 1.0, 2.0, 3.0]).median(), 2.5);
    }
}
