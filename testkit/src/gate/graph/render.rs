//! Writes a [`Graph`] as the text of one kernel without a body. Beside the text it returns the
//! architecture and the inputs for which the gate tests the kernel.

use super::means::Means;
use super::writer::{Writer, entry};
use super::{Form, Graph};
use crate::gate::judge::Subject;
use carbyne_atoms::Arch;
use carbyne_simulate::Inputs;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const ARCHS: [Arch; 7] =
    [Arch::Sm80, Arch::Sm75, Arch::Sm70, Arch::Sm90a, Arch::Sm86, Arch::Sm89, Arch::Sm90];

impl Graph {
    /// The program as a subject of the gate, and the features of the program.
    #[must_use]
    pub fn render(&self) -> (Subject, Vec<&'static str>) {
        let mut w = Writer { arch: entry(&ARCHS, self.arch), ..Writer::default() };
        let kernel = match &self.form {
            Form::Chain { rank, axis, steps } => {
                let extents = self.extents(1 + usize::from(*rank % 4));
                let mut m = Means::new(&mut w, self, extents);
                m.axis = usize::from(*axis);
                m.steps(steps);
                m.chain()
            }
            Form::Product { batch, left, right, steps } => {
                Means::product(&mut w, self, *batch, [left, right, steps])
            }
            Form::Single { kind, rank, op, how } => w.single(self, *kind, *rank, *op, *how),
        };
        let mut text = "carbyne 2\n".to_owned();
        w.declared.iter().for_each(|d| {
            let _ = writeln!(text, "{d}");
        });
        text.push_str(&kernel);
        let seed = u64::from(self.seed);
        let numbers = w.rounds || self.numbers == 3;
        let inputs = if numbers { Inputs::Seed(seed) } else { Inputs::Ints(seed) };
        let schedule = (self.schedule > 0).then(|| u64::from(self.schedule));
        let (arch, exact, overflows) = (w.arch, vec![], w.overflows);
        let symbols = BTreeMap::new();
        let subject = Subject { text, arch, inputs, schedule, exact, overflows, symbols };
        (subject, w.features.into_iter().collect())
    }
}
