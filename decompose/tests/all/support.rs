//! Decomposes and simulates the texts of these tests, and generates texts of MatMuls.

use carbyne_atoms::AtomTable;
use carbyne_decompose::{Decomposed, checked, decompose};
use carbyne_ir::diag::{Diagnostic, Diagnostics};
use carbyne_ir::program::Program;
use carbyne_ir::{testing, text};
use carbyne_simulate::{Inputs, Options, Report, simulate};

/// A kernel-level MatMul; fields are what the text varies in.
#[derive(Clone, Debug)]
pub(crate) struct MatMul {
    pub(crate) size: (i64, i64, i64),
    pub(crate) factors: &'static str,
    pub(crate) out: &'static str,
    pub(crate) acc: &'static str,
    /// Whether A, B, C are stored column-major.
    pub(crate) transposed: [bool; 3],
    pub(crate) pins: String,
    pub(crate) names: [&'static str; 3],
    pub(crate) set: bool,
}

impl Default for MatMul {
    fn default() -> Self {
        MatMul {
            size: (64, 64, 32),
            factors: "f16",
            out: "f16",
            acc: "f32",
            transposed: [false; 3],
            pins: String::new(),
            names: ["A", "B", "C"],
            set: true,
        }
    }
}

impl MatMul {
    pub(crate) fn text(&self) -> String {
        let (m, n, k) = self.size;
        let ty = |rows: i64, cols: i64, scalar: &str, transposed: bool| {
            if transposed {
                format!("[({rows},{cols}):(1,{rows})].{scalar}.GL")
            } else {
                format!("[{rows},{cols}].{scalar}.GL")
            }
        };
        let [a, b, c] = self.names;
        let [ta, tb, tc] = self.transposed;
        format!(
            "carbyne 2\n%{a}:{}\n%{b}:{}\n%{c}:{}\n{} @g (%{a}, %{b}) -> (%{c}) acc={} {}\n",
            ty(m, k, self.factors, ta),
            ty(k, n, self.factors, tb),
            ty(m, n, self.out, tc),
            if self.set { "MatMul.set" } else { "MatMul" },
            self.acc,
            self.pins,
        )
    }
}

pub(crate) fn sm_80() -> AtomTable {
    AtomTable::new("sm_80".parse().expect("an architecture"))
}

pub(crate) fn decomposed(src: &str, table: &AtomTable) -> Result<Decomposed, Diagnostics> {
    let module = text::parse(src)?;
    let found = decompose(&module, src, table)?;
    in_order(&found.program, table);
    Ok(found)
}

/// The checker of the order of accesses refuses nothing.
fn in_order(p: &Program, table: &AtomTable) {
    for kernel in p.kernels.iter().filter(|k| carbyne_sync::is_atomic(p, **k)) {
        let report = carbyne_sync::check(p, *kernel, table, &carbyne_sync::Limits::default());
        let said = carbyne_remedy::diagnostics(&report, p, *kernel);
        let errors: Vec<_> =
            said.iter().filter(|d| d.severity == carbyne_ir::diag::Severity::Error).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

pub(crate) fn resolved(src: &str) -> Program {
    let module = text::parse(src).expect("parses");
    checked(&module, src).expect("well formed")
}

/// All blocks on small integers: every comparison is exact.
pub(crate) fn run(program: &Program, table: &AtomTable) -> Result<Report, Box<Diagnostic>> {
    simulate(program, table, &Options { inputs: Inputs::Ints(3), ..Options::default() })
}

/// All blocks on small integers or on random numbers, as drawn for this text; on both where
/// everything is run.
pub(crate) fn run_drawn(
    program: &Program,
    table: &AtomTable,
    text: &str,
) -> Result<(), Box<Diagnostic>> {
    testing::one_of(text, &[Inputs::Ints(3), Inputs::Seed(5)]).iter().try_for_each(|inputs| {
        let options = Options { inputs: *inputs, ..Options::default() };
        simulate(program, table, &options).map(drop)
    })
}

/// As [`run`], with sizes of the caller.
pub(crate) fn run_with(
    program: &Program,
    table: &AtomTable,
    sizes: &[(&str, i64)],
) -> Result<Report, Box<Diagnostic>> {
    let symbols = sizes.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    simulate(program, table, &Options { inputs: Inputs::Ints(3), symbols, ..Options::default() })
}

/// All blocks on random numbers.
pub(crate) fn run_random(program: &Program, table: &AtomTable) -> Result<Report, Box<Diagnostic>> {
    simulate(program, table, &Options { inputs: Inputs::Seed(5), ..Options::default() })
}
