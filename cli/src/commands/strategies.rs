//! `carbyne strategies`: by what kernels get their dataflow, and whether strategies compute what they mean.

use crate::args::Strategies as Args;
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, input, output, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_decompose::{Options, Sample, Strategies, decompose_by, own_texts};
use carbyne_ir::ast::{Choices, Def, SpecKind, StmtKind, TensorExpr};
use carbyne_ir::text;
use carbyne_simulate::simulate;
use std::fmt::Write;

pub(super) fn run(args: &Args, io: &mut Io<'_>) -> Outcome {
    let table = pipeline::table(&args.arch)?;
    if let Some(path) = &args.test {
        let source = input::read(path, io)?;
        let all = input::strategies_of(&source)?;
        // What they give may be kernels that others decompose.
        let with_ours = input::with_ours(&source)?;
        return tested((&all, &with_ours), &source, &table, usize::from(args.samples), io);
    }
    let none = input::nothing(io);
    let all = input::strategies(&none)?;
    let text = match &args.name {
        Some(name) => one(&all, name.trim_start_matches('@'))?,
        None => listed(&all, args.spec.as_deref()),
    };
    output::write(None, text.as_bytes(), io)?;
    Ok(())
}

/// A line each: the name, and what stands above it.
fn listed(all: &Strategies, spec: Option<&str>) -> String {
    let mut out = String::new();
    let wanted = |def: &Def| spec.is_none_or(|s| kinds(def).iter().any(|k| k.starts_with(s)));
    for (def, comment) in all.iter().filter(|(def, _)| wanted(def)) {
        let kinds = kinds(def).join(", ");
        let _ = writeln!(out, "@{}: {kinds}", def.name.text);
        for line in comment {
            let _ = writeln!(out, "    {line}");
        }
    }
    out
}

/// The kinds of specs that a strategy is for.
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

/// All of one: its text, where it is ours, and what its parameters may be.
fn one(all: &Strategies, name: &str) -> Result<String, Failure> {
    let Some((def, comment)) = all.iter().find(|(def, _)| def.name.text == name) else {
        let near = all.iter().map(|(def, _)| &def.name.text);
        let near = near.map(|n| (strsim::levenshtein(name, n), n)).min().filter(|(d, _)| *d <= 3);
        let help = match near {
            Some((_, near)) => format!("did you mean `@{near}`?"),
            None => "`carbyne strategies` lists all of them".to_owned(),
        };
        return Err(Failure::usage_help(format!("there is no strategy `@{name}`"), help));
    };
    let mut out = String::new();
    for line in comment {
        let _ = writeln!(out, "// {line}");
    }
    let module = carbyne_ir::ast::Module {
        header: vec![],
        version: carbyne_ir::ast::FORMAT_VERSION,
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
    Ok(out)
}

/// Decomposes samples of all strategies of a file, and compares bodies with meanings.
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
            format!("`{}` holds no strategy", source.name),
            "write one: `strategy @name[..] <<<..>>> (..) -> (..) means { .. } { .. }`",
        ));
    }
    for name in names {
        let samples = all.samples(&name, 132, most);
        let (mut right, mut other) = (0, vec![]);
        for sample in &samples {
            match outcome(with_ours, sample, table) {
                Ok(()) => right += 1,
                Err(why) => other.push((sample, why)),
            }
        }
        let n = samples.len();
        let mut said = format!("@{name}: {right} of {n} samples compute what they mean\n");
        if n == 0 {
            said.push_str("  no sizes up to 4096 and no types satisfy its conditions\n");
        }
        // What the architecture has no instruction for is no mistake of the strategy.
        let (unfit, failed): (Vec<_>, Vec<_>) = other.into_iter().partition(|(_, why)| why.unfit);
        if let Some((sample, why)) = unfit.first() {
            let _ = writeln!(
                said,
                "  {} not for this architecture: {}: {}",
                unfit.len(),
                sample.by,
                why.text
            );
        }
        for (sample, why) in &failed {
            let _ = writeln!(said, "  {}: {}", sample.by, why.text);
        }
        wrong += failed.len() + usize::from(n == 0);
        output::write(None, said.as_bytes(), io)?;
    }
    match wrong {
        0 => Ok(()),
        _ => Err(Failure::usage_help(
            "some strategies do not compute what they mean, or nothing of them could be tried",
            "correct the body, the `means` block or the conditions",
        )),
    }
}

/// Why a sample is not right.
struct Wrong {
    text: String,
    /// Whether no instance could be made of it.
    unfit: bool,
}

fn outcome(all: &Strategies, sample: &Sample, table: &AtomTable) -> Result<(), Wrong> {
    let first = |unfit: bool| {
        move |e: carbyne_ir::diag::Diagnostics| {
            let text = e.iter().next().map_or(String::new(), |d| {
                let notes = d.notes.iter().map(|n| format!("; {n}")).collect::<String>();
                format!("{}: {}{notes}", d.code, d.message)
            });
            Wrong { text, unfit }
        }
    };
    let module = text::parse(&sample.text).map_err(first(false))?;
    let options = Options { strategies: all.clone(), ..Options::default() };
    let found = decompose_by(&module, &sample.text, table, &options).map_err(first(true))?;
    let run = carbyne_simulate::Options::default();
    match simulate(&found.program, table, &run) {
        Ok(_) => Ok(()),
        Err(d) => Err(Wrong { text: format!("{}: {}", d.code, d.message), unfit: false }),
    }
}
