//! Tests that damaged programs are refused or simulated, without panics and without internal
//! errors. Also tests searches that end at their budget, sizes beyond the hardware, and built trees
//! that no text can express.
//!
//! Each case replaces a few tokens of an example and passes the text through as many stages as
//! accept it: parse, resolve, verify, decompose, print, simulate on a small budget.
//! `CARBYNE_DAMAGED=n` tries n texts for each example.

use crate::support::sm_80;
use carbyne_atoms::AtomTable;
use carbyne_decompose::decompose;
use carbyne_ir::ast::{BinOp, Block, Expr, Module, Name, Operand, Stmt, StmtKind, Unroll, View};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::text;
use carbyne_simulate::{Inputs, Options, simulate};
use std::panic::{AssertUnwindSafe, catch_unwind};

const EXAMPLES: [&str; 5] = [
    include_str!("../../../examples/gemm.cby"),
    include_str!("../../../examples/graphene_fig1_ldmatrix.cby"),
    include_str!("../../../examples/graphene_fig8_gemm.cby"),
    include_str!("../../../examples/vector_copy.cby"),
    include_str!("../../../examples/ampere_gemm_by_hand.cby"),
];

/// Words that stand in for others.
const WORDS: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "16",
    "4096",
    "9223372036854775807",
    "_",
    "f16",
    "f32",
    "e4m3",
    "SH",
    "RF",
    "GL",
    "thread",
    "block",
    "(",
    ")",
    "[",
    ".mine",
    ".scalar()",
    "{?}",
    "k",
];

/// A small generator of its own, so that a seed names a text for good.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// The text with one to three tokens changed.
fn damaged(src: &str, dice: &mut Dice) -> String {
    let mut tokens: Vec<String> = vec![];
    let mut word = String::new();
    for c in src.chars() {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            tokens.push(std::mem::take(&mut word));
        }
        tokens.push(c.to_string());
    }
    tokens.push(word);
    // The first lines are comments and the version.
    let start = tokens.iter().position(|t| t == "carbyne").unwrap_or(0) + 3;
    for _ in 0..=dice.below(3) {
        let at = start + dice.below(tokens.len() - start);
        let number = tokens[at].parse::<i64>().ok();
        match (dice.below(6), number) {
            (0, _) => drop(tokens.remove(at)),
            (1, _) => tokens.insert(at, WORDS[dice.below(WORDS.len())].to_owned()),
            (2, _) => {
                let other = tokens[start + dice.below(tokens.len() - start)].clone();
                tokens[at] = other;
            }
            (_, Some(n)) => {
                tokens[at] = (n.saturating_mul(2 + dice.below(2) as i64) / 2).to_string()
            }
            _ => tokens[at] = WORDS[dice.below(WORDS.len())].to_owned(),
        }
    }
    tokens.concat()
}

fn ours(errors: impl IntoIterator<Item = Diagnostic>) -> Option<Box<Diagnostic>> {
    errors.into_iter().find(|d| d.code == Code::Internal).map(Box::new)
}

/// How far a text came, or what it showed to be our defect.
fn follow(src: &str, table: &AtomTable) -> Result<usize, Box<Diagnostic>> {
    let module = match text::parse(src) {
        Ok(m) => m,
        Err(e) => return ours(e.into_vec()).map_or(Ok(0), Err),
    };
    let d = match decompose(&module, src, table) {
        Ok(d) => d,
        Err(e) => return ours(e.into_vec()).map_or(Ok(1), Err),
    };
    for &kernel in &d.program.kernels {
        if let Err(e) = carbyne_codegen::print_kernel(&d.program, kernel, table, None) {
            ours(e.into_vec()).map_or(Ok(()), Err)?;
        }
    }
    let options =
        Options { inputs: Inputs::Ints(1), blocks: Some(1), budget: 1 << 18, ..Options::default() };
    match simulate(&d.program, table, &options) {
        Ok(_) => Ok(3),
        Err(e) => ours([*e]).map_or(Ok(2), Err),
    }
}

#[test]
fn damaged_examples_are_answered() {
    let n = std::env::var("CARBYNE_DAMAGED").ok().and_then(|n| n.parse().ok());
    let n = n.unwrap_or(carbyne_ir::testing::count(60, 1500));
    let table = sm_80();
    let mut reached = [0; 4];
    for (i, src) in EXAMPLES.iter().enumerate() {
        for seed in 0..n {
            let broken = damaged(src, &mut Dice(seed * 31 + i as u64));
            let outcome = catch_unwind(AssertUnwindSafe(|| follow(&broken, &table)));
            match outcome {
                Ok(Ok(stage)) => reached[stage] += 1,
                Ok(Err(d)) => panic!("example {i} seed {seed}: {d:?}\n{broken}"),
                Err(_) => panic!("example {i} seed {seed} panics\n{broken}"),
            }
        }
    }
    // A generator that makes only rubbish, or nothing but valid texts, tests little.
    assert!(reached.iter().all(|r| *r > 0), "refused by parse, decompose, run; run: {reached:?}");
}

#[test]
fn searches_without_end_end_at_the_budget() {
    use carbyne_decompose::Search;
    use carbyne_decompose::decompose_with;
    use std::fmt::Write as _;
    // Twelve products, each with six ways to spread the threads or more: 6¹² leaves.
    let mut src =
        "carbyne 2\n%A:[64,64].f16.GL\n%C:[64,64].f16.GL\n#grid:[1].block\n#cta:[128].thread\n\
                   Spec @many <<<#grid, #cta>>> (%A) -> (%C) {\n"
            .to_owned();
    for i in 0..12 {
        let _ = write!(
            src,
            "  Allocate %a{i}:[64,64].f16.RF{{?}}\n  Allocate %b{i}:[64,64].f16.RF{{?}}\n  \
             Allocate %c{i}:[64,64].f16.RF{{?}}\n  Move <<<#grid, #cta>>> (%A) -> (%a{i})\n  \
             Move <<<#grid, #cta>>> (%A) -> (%b{i})\n  \
             MatMul.set <<<#grid, #cta>>> (%a{i}, %b{i}) -> (%c{i}) acc=f16\n  \
             Move <<<#grid, #cta>>> (%c{i}) -> (%C)\n"
        );
    }
    src.push_str("}\n");
    let module = carbyne_ir::text::parse(&src).expect("parses");
    let table = crate::support::sm_80();
    let with =
        |budget| decompose_with(&module, &src, &table, Search { budget, ..Search::default() });
    // The best so far is an answer.
    let d = with(500).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(d.searched.leaves <= 500);
    let errors = with(3).expect_err("nothing is found so soon").into_vec();
    assert_eq!(errors[0].code, carbyne_ir::diag::Code::Budget, "{errors:?}");
    assert!(errors[0].help.as_ref().is_some_and(|h| h.contains("--budget")), "{errors:?}");
}

#[test]
fn blocks_and_tensors_beyond_the_hardware_are_refused_first() {
    let block = "carbyne 2\n%A:[64,64].f16.GL\n%B:[64,64].f16.GL\n\
                 #g:[1].block\n#t:[1048576].thread\n\
                 Move @m <<<#g, #t>>> (%A) -> (%B) {\n  Move <<<#g, #t>>> (%A) -> (%B)\n}\n";
    let tensor = "carbyne 2\n%A:[65536,65536].f16.GL\n%B:[65536,65536].f16.GL\n\
                  #g:[1].block\n#t:[128].thread\n\
                  Move @m <<<#g, #t>>> (%A) -> (%B) {\n  Allocate %r:[65536,65536].f16.RF{?}\n  \
                  Move <<<#g, #t>>> (%A) -> (%r)\n  Move <<<#g, #t>>> (%r) -> (%B)\n}\n";
    for src in [block, tensor] {
        let errors = crate::support::decomposed(src, &crate::support::sm_80());
        let errors = errors.expect_err("must be refused").into_vec();
        assert!(errors[0].code.as_str().starts_with('X'), "{errors:?}");
    }
}

/// Trees built in memory that no text says are refused before anything is made of them.
#[test]
fn built_trees_that_no_text_says_are_refused() {
    let parsed = text::parse(EXAMPLES[0]).expect("an example parses");
    let refused = |module: &Module| {
        let errors = decompose(module, "", &sm_80()).expect_err("no text says it").into_vec();
        errors[0].code
    };
    for name in ["", "a b", "%A", "@A", "A.b", "A-b"] {
        let mut module = parsed.clone();
        for stmt in &mut module.items {
            match &mut stmt.kind {
                StmtKind::DataDecl { name: of, .. } if of.text == "A" => of.text = name.to_owned(),
                StmtKind::Spec(spec) => spec.inputs[0] = Operand::View(View::of(name)),
                _ => {}
            }
        }
        assert_eq!(refused(&module), Code::Syntax, "`{name}`");
    }
    let mut module = parsed.clone();
    let deep = (0..20_000).fold(Expr::int(1), |e, _| Expr::bin(BinOp::Add, e, Expr::int(1)));
    module.items.insert(0, Stmt::new(StmtKind::Let(vec![(Name::new("n"), deep)])));
    assert_eq!(refused(&module), Code::ExprTooLong);
    let mut module = parsed;
    let inner = module.items.pop().expect("a kernel");
    let deep = (0..20_000).fold(inner, |inner, _| {
        let body = Block { stmts: vec![inner], footer: vec![] };
        let [start, end, step] = [0, 1, 1].map(Expr::int);
        let (var, unroll) = (Name::new("k"), Unroll::Default);
        Stmt::new(StmtKind::For { var, start, end, also: vec![], step, unroll, stages: None, body })
    });
    module.items.push(deep);
    assert_eq!(refused(&module), Code::TooDeep);
}
