//! `carbyne tune`: measures on a GPU which strategies, with which parameters, make the fastest
//! kernels.
//!
//! For each kernel-level spec without a pin, the instances that the cost model ranks first are
//! compiled and launched once, and their results are compared with the meaning of the spec. All
//! correct instances are then launched in turns. The pin of the fastest one is written to a
//! database (`crate::tuned`) as soon as it is known, and again whenever it changes.
//!
//! `measurement` measures one spec on the GPU, `report` prints the result.

#[cfg(feature = "gpu")]
mod measurement;
#[cfg(feature = "gpu")]
mod report;

use crate::Io;
use crate::args::{MessageFormat, Tune};
use crate::failure::Outcome;

#[cfg(not(feature = "gpu"))]
pub(super) fn run(_: &Tune, _: MessageFormat, _: &mut Io<'_>) -> Outcome {
    let source = crate::failure::Source { name: "carbyne tune".to_owned(), ..Default::default() };
    Err(crate::failure::Failure::one(&source, *carbyne_launch::without_gpu()))
}

#[cfg(feature = "gpu")]
pub(super) use device::run;

#[cfg(feature = "gpu")]
mod device {
    use super::measurement::{Candidate, Session};
    use super::{Io, MessageFormat, Outcome, Tune, report};
    use crate::commands::gpu::{self, Builder, Clock, side_by_side};
    use crate::failure::{Failure, Source};
    use crate::progress::shown;
    use crate::tuned::{Database, Key, card_name, is_open, pin, pinned, problem};
    use crate::{data, human, input, json, output, pipeline};
    use carbyne_decompose::ranked;
    use carbyne_ir::ast::{Module, Stmt, StmtKind};
    use carbyne_ir::progress::Stage;
    use carbyne_ir::text;
    use carbyne_launch::Gpu;
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::time::Duration;

    const COMMAND: &str = "carbyne tune";

    /// A kernel-level spec without a pin, as a separate program.
    struct Open {
        name: String,
        module: Module,
        key: Key,
    }

    pub(in crate::commands) fn run(args: &Tune, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
        let machine = |d: Box<_>| gpu::outside(COMMAND, *d);
        let source = input::read(&args.file, io)?;
        let (module, program) = pipeline::verified(&source)?;
        let options = data::options(&args.given, &program, &source)?;
        let mut database = match args.tuned.exists() {
            true => Database::from_file(&args.tuned)?,
            false => Database::default(),
        };
        let gpu = Gpu::open(args.gpu).map_err(machine)?;
        let table = gpu::table(COMMAND, &gpu, args.arch.as_deref())?;
        let builder = Builder::new(COMMAND, &gpu, &table)?;
        let key = |problem: String| Key {
            problem,
            arch: table.arch.as_str().to_owned(),
            card: card_name(&gpu.info().name),
            atoms: table.fingerprint(),
        };
        let specs = program.specs_by_node();
        let mut seen = BTreeSet::new();
        let mut open = vec![];
        for (at, stmt) in module.items.iter().enumerate() {
            let StmtKind::Spec(spec) = &stmt.kind else { continue };
            let Some(id) = specs.get(&stmt.id.key()).filter(|_| is_open(spec)) else { continue };
            let key = key(problem(&program, *id));
            if seen.insert(key.clone()) {
                let name = spec.name.as_ref().map_or("kernel", |n| &n.text).to_owned();
                open.push(Open { name, module: alone(&module, at), key });
            }
        }
        if open.is_empty() {
            return Err(Failure::usage_help(
                format!("`{}` has no kernel-level spec without a pin", source.name),
                "remove bodies, `by=`, `tile=`, `warps=` and `atom=` of the specs to tune",
            ));
        }
        let patience = Duration::from_secs(args.timeout.into());
        let clock = Clock::new(&gpu, args.given.seed.unwrap_or(0), patience).map_err(machine)?;
        let mut session = Session { args, gpu: &gpu, table: &table, options, clock };
        let (mut failures, mut all) = (vec![], vec![]);
        for spec in open {
            let is_shown = io.progress;
            let mut candidates = shown(is_shown, |_| candidates(args, &builder, &source, &spec))?;
            let mut keep = |entry| {
                database.entries.insert(spec.key.clone(), entry);
                output::write(Some(&args.tuned), database.print().as_bytes(), io)
            };
            let done = shown(is_shown, |_| {
                let stage = Stage::new("measuring", Some(candidates.len() as u64));
                session.measured(&mut candidates, &stage, &mut keep)
            });
            failures.extend(candidates.iter_mut().filter_map(|c| c.wrong.take()));
            let said = report::text(&spec.name, &spec.key, &candidates);
            output::write(None, said.as_bytes(), io)?;
            io.stdout.flush().map_err(Failure::stdout)?;
            all.push(report::json(&spec.name, &spec.key, &candidates));
            if let Some(path) = &args.json {
                let info = gpu.info();
                let value = json!({
                    "format": 1,
                    "gpu": info.name,
                    "driver": gpu::driver(info),
                    "arch": table.arch.as_str(),
                    "kernels": all,
                });
                output::write(Some(path), format!("{value:#}\n").as_bytes(), io)?;
            }
            done?;
        }
        let Some(last) = failures.pop() else { return Ok(()) };
        for failure in failures {
            let _ = match format {
                MessageFormat::Human => human::failure(&failure, io),
                MessageFormat::Json => json::failure(&failure, io),
            };
        }
        Err(last)
    }

    /// The module with only one of its specs.
    fn alone(module: &Module, spec: usize) -> Module {
        let kept = |(i, stmt): &(usize, &Stmt)| {
            *i == spec
                || matches!(
                    stmt.kind,
                    StmtKind::Let(_)
                        | StmtKind::Sym(_)
                        | StmtKind::Symbols(_)
                        | StmtKind::DataDecl { .. }
                        | StmtKind::DataDef { .. }
                        | StmtKind::ThreadDecl { .. }
                        | StmtKind::ThreadDef { .. }
                        | StmtKind::Def(_)
                )
        };
        let items = module.items.iter().enumerate().filter(kept).map(|(_, s)| s.clone());
        Module { items: items.collect(), ..module.clone() }
    }

    /// The instances of a spec that are ranked first, decomposed and compiled.
    fn candidates(
        args: &Tune,
        builder: &Builder<'_>,
        source: &Source,
        spec: &Open,
    ) -> Result<Vec<Candidate>, Failure> {
        let text = text::print(&spec.module);
        let name = format!("{}: @{}", source.name, spec.name);
        let own = Source { name, text, imports: source.imports.clone(), ..Source::default() };
        let module = pipeline::parsed(&own)?;
        let options = pipeline::options(&own, builder.search())?;
        let rankings = ranked(&module, &own.text, builder.table, &options)
            .map_err(|e| Failure::program(&own, e))?;
        let instances = rankings.into_iter().next().map(|r| r.instances).unwrap_or_default();
        let there = instances.into_iter().filter(|i| i.refused.is_none());
        let pins: Vec<String> = there.take(args.top.into()).map(|i| i.by).collect();
        let stage = Stage::new("compiling", Some(pins.len() as u64));
        stage.says(&format!("@{}", spec.name));
        side_by_side(COMMAND, &pins, &stage, |by| {
            let mut module = module.clone();
            for stmt in &mut module.items {
                if let (StmtKind::Spec(spec), Some(chosen)) = (&mut stmt.kind, pin(by)) {
                    spec.attrs.push(pinned(chosen, spec.span));
                }
            }
            let name = format!("{} by {by}", own.name);
            let source = Source {
                name,
                text: text::print(&module),
                imports: own.imports.clone(),
                ..Source::default()
            };
            let built = builder.built(&source);
            Candidate::new(by.clone(), source, built)
        })
    }
}
