//! `carbyne strategies`: lists the strategies that decompose kernels, shows one of them, or tests
//! whether the strategies of a file compute their meaning.

use crate::args::Strategies as Args;
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, access_order, input, output, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_decompose::{
    Decomposed, Options, Sample, Strategies, checked, decompose_by, own_texts,
};
use carbyne_ir::ast::{Choices, Def, Module, SpecKind, StmtKind, TensorExpr};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics, nearest};
use carbyne_ir::text;
use carbyne_simulate::{compare_with_parent, simulate};
use std::fmt::Write;

/// The default architecture of a test.
const USUAL: &str = "sm_80";

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Outcome {
    let table = args.arch.as_deref().map(pipeline::table).transpose()?;
    if let Some(path) = &args.test {
        let table = table.map_or_else(|| pipeline::table(USUAL), Ok)?;
        let source = input::read(path, io)?;
        let all = input::strategies_of(&source)?;
        // A strategy may create kernels that other strategies decompose.
        let with_ours = input::with_ours(&source)?;
        return tested((&all, &with_ours), &source, &table, usize::from(args.samples), io);
    }
    let none = input::empty_source(io);
    let all = input::strategies(&none)?;
    let text = match &args.name {
        Some(name) => one(&all, name.trim_start_matches('@'), table.as_ref())?,
        None => listed(&all, args.spec.as_deref(), table.as_ref())?,
    };
    output::write(None, text.as_bytes(), io)?;
    Ok(())
}

/// One line per strategy: the name and the comment above it. Strategies without an instance on the
/// architecture are listed at the end.
fn listed(
    all: &Strategies,
    spec: Option<&str>,
    table: Option<&AtomTable>,
) -> Result<String, Failure> {
    let mut out = String::new();
    let word = spec.map(str::to_ascii_lowercase).map(|word| match word.as_str() {
        // Specs that compute each element from elements at the same place, including copies.
        "move" | "unarypointwise" | "binarypointwise" | "select" => "pointwise".to_owned(),
        _ => word,
    });
    let is_one = |kind: &String| match &word {
        Some(word) => kind.to_ascii_lowercase().starts_with(word.as_str()),
        None => true,
    };
    let of_kind: Vec<_> = all.iter().filter(|(def, _)| kinds(def).iter().any(is_one)).collect();
    if let (true, Some(spec)) = (of_kind.is_empty(), spec) {
        let mut known: Vec<String> = all.iter().flat_map(|(def, _)| kinds(def)).collect();
        known.sort();
        known.dedup();
        let help = match nearest(spec, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of the specs {}", known.join(", ")),
        };
        return Err(Failure::usage_help(format!("no strategy decomposes `{spec}`"), help));
    }
    let mut without = vec![];
    for (def, comment) in of_kind {
        if table.is_some_and(|table| unfit(all, &def.name.text, table).is_some()) {
            without.push(format!("@{}", def.name.text));
            continue;
        }
        let kinds = kinds(def).join(", ");
        let _ = writeln!(out, "@{}: {kinds}", def.name.text);
        for line in comment {
            let _ = writeln!(out, "    {line}");
        }
    }
    if let (Some(table), false) = (table, without.is_empty()) {
        let _ = writeln!(out, "not for {}: {}", table.arch, without.join(", "));
    }
    Ok(out)
}

/// The reason why no sample of a strategy has an instance on an architecture.
fn unfit(all: &Strategies, name: &str, table: &AtomTable) -> Option<String> {
    /// The number of samples to try; they cover all types.
    const MOST: usize = 8;
    let samples = match all.samples(name, table, MOST) {
        Ok(samples) => samples,
        Err(d) => return Some(format!("{}: {}", d.code, d.message)),
    };
    let mut first = None;
    for sample in &samples {
        match decomposed(all, sample, table) {
            Ok(_) => return None,
            Err(wrong) => first = first.or(Some(wrong.text)),
        }
    }
    first
}

/// The kinds of specs that a strategy decomposes.
fn kinds(def: &Def) -> Vec<String> {
    let mut all: Vec<String> = vec![];
    for stmt in def.means.iter().flat_map(|m| &m.stmts) {
        let kind = match &stmt.kind {
            StmtKind::Spec(spec) => Some(spec.kind.to_string()),
            StmtKind::Assign { value: TensorExpr::Apply(apply), .. } => Some(match apply.kind {
                SpecKind::MatMulSet => "MatMul".to_owned(),
                kind => kind.to_string(),
            }),
            StmtKind::Call(call) => {
                let sized = call
                    .declared
                    .iter()
                    .flatten()
                    .any(|ty| ty.levels.iter().flat_map(|l| &l.modes).any(is_one));
                Some(if sized { "Reduction" } else { "pointwise" }.to_owned())
            }
            _ => None,
        };
        if let Some(kind) = kind.filter(|k| !all.contains(k)) {
            all.push(kind);
        }
    }
    all
}

fn is_one(mode: &carbyne_ir::ast::TupleExpr) -> bool {
    use carbyne_ir::ast::{Expr, ExprKind, TupleExpr};
    matches!(mode, TupleExpr::Leaf(Expr { kind: ExprKind::Int(1), .. }))
}

/// Everything about a strategy: its text, its file if it is built in, and its parameters.
fn one(all: &Strategies, name: &str, table: Option<&AtomTable>) -> Result<String, Failure> {
    let Some((def, comment)) = all.iter().find(|(def, _)| def.name.text == name) else {
        let help = match nearest(name, all.iter().map(|(def, _)| def.name.text.as_str())) {
            Some(near) => format!("did you mean `@{near}`?"),
            None => "run `carbyne strategies` for a list".to_owned(),
        };
        return Err(Failure::usage_help(format!("there is no strategy `@{name}`"), help));
    };
    let mut out = String::new();
    for line in comment {
        let _ = writeln!(out, "// {line}");
    }
    let module = Module {
        header: vec![],
        items: vec![carbyne_ir::ast::Stmt::new(StmtKind::Def(def.clone()))],
        footer: vec![],
    };
    let printed = text::print(&module);
    out.push_str(printed.split_once('\n').map_or("", |(_, rest)| rest).trim_start());
    let chosen = |p: &&carbyne_ir::ast::Param| {
        matches!(p.choices, Some(Choices::Among(_) | Choices::Range { .. }))
    };
    let names: Vec<&str> = def.params.iter().filter(chosen).map(|p| p.name.text.as_str()).collect();
    if !names.is_empty() {
        let values: Vec<String> = names.iter().map(|n| format!("{n}=..")).collect();
        let _ =
            writeln!(out, "\n// pinned by `by=@{name}[{}]`, whole or in part", values.join(", "));
    }
    if let Some((file, _)) =
        own_texts().iter().find(|(_, text)| text.contains(&format!("strategy @{name}[")))
    {
        let _ = writeln!(out, "// from decompose/strategies/{file}");
    }
    if let Some(table) = table {
        let why = unfit(all, name, table);
        let _ = match why {
            Some(why) => writeln!(out, "// not for {}: {why}", table.arch),
            None => writeln!(out, "// {} has the instructions", table.arch),
        };
    }
    Ok(out)
}

/// Decomposes and simulates samples of all strategies of a file, and compares the results with
/// their meaning.
fn tested(
    (all, with_ours): (&Strategies, &Strategies),
    source: &Source,
    table: &AtomTable,
    most: usize,
    io: &mut Io<'_>,
) -> Outcome {
    let mut wrong = 0;
    let names: Vec<String> = all.iter().map(|(def, _)| def.name.text.clone()).collect();
    if names.is_empty() {
        return Err(Failure::usage_help(
            format!("`{}` has no strategy", source.name),
            "add one: `strategy @name[..] <<<..>>> (..) -> (..) means { .. } { .. }`",
        ));
    }
    for name in names {
        let samples = all.samples(&name, table, most).map_err(|d| Failure::one(source, *d))?;
        let found: Vec<_> = samples.iter().map(|s| (s, outcome(with_ours, s, table))).collect();
        let right = found.iter().filter(|(_, o)| o.is_ok()).count();
        let n = samples.len();
        let mut said = format!("@{name}: {right} of {n} samples compute their meaning\n");
        if n == 0 {
            said.push_str("  no sizes up to 4096 and no types satisfy the conditions\n");
        }
        let of = |kind: Kind| {
            let own = found.iter().filter_map(|(s, o)| Some((*s, o.as_ref().err()?)));
            own.filter(move |(_, wrong)| wrong.kind == kind)
        };
        // A missing instruction of the architecture, or a missing operation of a type, is not an
        // error of the strategy.
        for (kind, what) in [(Kind::Architecture, "architecture"), (Kind::Types, "types")] {
            if let Some((sample, why)) = of(kind).next() {
                let n = of(kind).count();
                let this = if kind == Kind::Types { "these" } else { "this" };
                let _ = writeln!(said, "  {n} not for {this} {what}: {}", line(sample, why));
            }
        }
        if let (Some(_), Some(theirs)) = (of(Kind::Failed).next(), all.theirs(&name)) {
            let _ = writeln!(said, "  {} samples of {theirs} are wrong:", of(Kind::Failed).count());
        }
        for (sample, why) in of(Kind::Failed) {
            let _ = writeln!(said, "  {}", line(sample, why));
        }
        // A strategy without a successful sample was not tested.
        wrong += of(Kind::Failed).count() + usize::from(right == 0);
        output::write(None, said.as_bytes(), io)?;
    }
    match wrong {
        0 => Ok(()),
        _ => Err(Failure::usage_help(
            "some strategies do not compute their meaning, or no sample could be tested",
            "correct the body, the `means` block or the conditions, or change `--arch`",
        )),
    }
}

/// Describes a sample and its error.
fn line(sample: &Sample, why: &Wrong) -> String {
    format!("{} of {}: {}", sample.by, sample.given, why.text)
}

/// The cause of a sample's error.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// The strategy is wrong.
    Failed,
    /// The architecture has no instruction for the sample.
    Architecture,
    /// The types that were drawn for the parameters do not fit.
    Types,
}

/// The error of a sample.
struct Wrong {
    text: String,
    kind: Kind,
}

impl Wrong {
    /// The error of a sample that cannot be decomposed. Errors of a strategy's body are found only
    /// when the strategy is instantiated.
    fn undecomposed(errors: &Diagnostics) -> Self {
        let Some(d) = errors.iter().next() else {
            return Wrong { text: String::new(), kind: Kind::Failed };
        };
        let notes: String = d.notes.iter().map(|n| format!("; {n}")).collect();
        let text = format!("{}: {}{notes}", d.code, d.message);
        let has = |code: &str| text.contains(&format!("{code}: "));
        // Codes of errors in the text of the body.
        let body = |letter: char| {
            let at = |(i, _): (usize, &str)| {
                let code = &text[i + 1..];
                code.get(4..6) == Some(": ") && code.bytes().take(4).all(|b| b.is_ascii_digit())
            };
            text.match_indices(letter).any(at)
        };
        let kind = match () {
            () if has(Code::ScalarMismatch.as_str()) => Kind::Types,
            () if ['V', 'P', 'L', 'S', 'T'].into_iter().any(body) => Kind::Failed,
            () if d.code.as_str().starts_with('D') => Kind::Architecture,
            () => Kind::Failed,
        };
        Wrong { text, kind }
    }
}

/// A sample's module and its decomposition.
fn decomposed(
    all: &Strategies,
    sample: &Sample,
    table: &AtomTable,
) -> Result<(Module, Decomposed), Wrong> {
    let module = text::parse(&sample.text).map_err(|e| Wrong::undecomposed(&e))?;
    let mut options = Options { strategies: all.clone(), ..Options::default() };
    options.search.sms = u32::try_from(sample.sms).ok();
    let found = decompose_by(&module, &sample.text, table, &options);
    Ok((module, found.map_err(|e| Wrong::undecomposed(&e))?))
}

fn outcome(all: &Strategies, sample: &Sample, table: &AtomTable) -> Result<(), Wrong> {
    let failed =
        |d: &Diagnostic| Wrong { text: format!("{}: {}", d.code, d.message), kind: Kind::Failed };
    let (module, found) = decomposed(all, sample, table)?;
    let mut run = carbyne_simulate::Options::default();
    // Each of several kernels is compared with its own meaning; all together with the meaning of
    // the sample.
    let meant = match found.program.kernels.len() {
        0 | 1 => None,
        _ => Some(checked(&module, &sample.text).map_err(|e| Wrong::undecomposed(&e))?),
    };
    if let Some(meant) = &meant {
        run.between = carbyne_simulate::Between::for_parent(meant);
    }
    let report = simulate(&found.program, table, &run).map_err(|d| failed(&d))?;
    // Accesses that do not meet with the drawn inputs may meet with others.
    if let Err(errors) = access_order::checked(&sample.text, &found, table)
        && let Some(d) = errors.iter().next()
    {
        return Err(failed(d));
    }
    if let Some(meant) = &meant {
        compare_with_parent(meant, table, &run, (&found.program, &report))
            .map_err(|d| failed(&d))?;
    }
    Ok(())
}
