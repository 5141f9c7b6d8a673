//! Makes one attempt to decompose a module, from its text to the atomic module, through all stages
//! ([`attempt()`]). An attempt that fails may start again with fewer rewrites. `decompose.rs` calls
//! it and explains its errors.

use super::decomposed::{Decomposed, Options, is_staged, parents};
use super::generated::{Generated, one};
use super::kernels::{blamed, plan, theirs};
use super::refusals::{fits, known_atoms, no_counters, no_idle_pins};
use super::solving::{MAX_ROUNDS, certified, solved};
use super::tiles::{Staging, Tiles, tiles};
use super::unstated;
use super::writing::written;
use crate::access::kernel_level::Said;
use crate::emit;
use crate::layouts::{calls, other_tensors};
use crate::names::Names;
use crate::origins::Origins;
use crate::resolved::separated;
use crate::strategies::candidates::{Ranking, WithBodies};
use crate::tricks;
use carbyne_atoms::{AtomTable, smem};
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{Key, Module, NodeId, NodeKey, Stmt, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::text;
use std::collections::{BTreeMap, BTreeSet};

/// A module to decompose, and the means. An attempt does not ask which pins are to blame.
#[derive(Copy, Clone)]
pub(super) struct Attempt<'a> {
    pub(super) given: &'a Module,
    pub(super) module: &'a Module,
    pub(super) src: &'a str,
    pub(super) table: &'a AtomTable,
    pub(super) options: &'a Options,
    /// Errors of earlier attempts: nothing orders these accesses if roles have own loops.
    pub(super) unordered: &'a [Diagnostic],
    pub(super) staging: Staging,
}

pub(super) fn attempt(a: Attempt<'_>) -> Result<Decomposed, Diagnostics> {
    let (module, program) = separated(a.module, a.src)?;
    known_atoms(&program, a.table)?;
    no_idle_pins(&program)?;
    no_counters(&program)?;
    let mut names = Names::of(&module);
    let generated = Generated { module: &module, src: a.src };
    let planned = plan(&generated, &program, a.table, a.options, &mut names, 0)?;
    let theirs = theirs(&planned.1);
    completed(a, &generated, program, planned, names).map_err(|errors| blamed(errors, &theirs))
}

/// Finds the layouts of a module whose kernels have bodies, and writes it with all of them.
pub(super) fn completed(
    a: Attempt<'_>,
    generated: &Generated<'_>,
    program: Program,
    (planned, rankings): WithBodies,
    mut names: Names,
) -> Result<Decomposed, Diagnostics> {
    let a = Attempt { module: generated.module, ..a };
    let Attempt { given, module, src, table, options, unordered, staging } = a;
    let search = options.search;
    let made = parents(&planned);
    let (unstated, lacking) = unstated::of_copied(generated, &program, &planned);
    let staged = is_staged(&planned).then(|| planned.clone());
    let state = (planned, vec![]);
    let by = (options, unordered, staging);
    let tiles = tiles(generated, state, program, table, &mut names, by)?;
    let (by_boxes, rotated) = (tiles.bulk, tiles.rotated);
    let other = |staging| attempt(Attempt { staging, ..a });
    let (tiles, mut solution) = match solved(generated, tiles, table, search, true, &mut names) {
        // Of values that have no registers nothing is gained.
        Ok((_, found)) if rotated && found.estimates.iter().any(|(_, e)| e.spills()) => {
            return other(Staging { rotated: false, ..staging });
        }
        Ok(solved) => solved,
        Err(_) if rotated => return other(Staging { rotated: false, ..staging }),
        // Other copies may succeed where boxes do not.
        Err(_) if by_boxes => return other(Staging { bulk: false, ..staging }),
        Err(errors) => {
            let more: Vec<Diagnostic> =
                errors.iter().filter(|d| d.code == Code::Role).cloned().collect();
            if more.is_empty() || unordered.len() >= MAX_ROUNDS {
                return Err(errors);
            }
            let all = [unordered, &more].concat();
            return attempt(Attempt { unordered: &all, ..a });
        }
    };
    let Tiles { tree, program, mut warnings, roles, .. } = tiles;
    other_tensors::lay_out(&program, &mut solution).map_err(|d| one(*d))?;
    certified(&program, &solution, table).map_err(|d| one(*d))?;
    let (mut written, _) = written(generated, &tree, &program, &solution, table, names)?;
    emit::aliases::apply(&mut written, module, table);
    if by_boxes {
        let atomic = generated.checked(&written)?;
        let mut names = Names::of(&written);
        if let Some(apart) = tricks::apart::apply(&written, &atomic, &mut names) {
            written = apart;
        }
    }
    let (mut written, alone) = tricks::consumers::apply(&written, &roles.producers, table);
    // Who has not asked for consumers is told nothing of what an instance asks for.
    if asks_for_consumers(given) {
        warnings.extend(alone);
    }
    let atomic = generated.checked(&written)?;
    match fits(&atomic, table) {
        // A prologue has a tile of its own.
        Err(_) if rotated => return other(Staging { rotated: false, ..staging }),
        Err(errors) => {
            let Some(left_out) = too_large(&atomic, table, &rankings, &options.left_out) else {
                return Err(errors);
            };
            let options = &Options { left_out, ..options.clone() };
            let next = attempt(Attempt { options, staging: Staging::ALL, ..a });
            return next.map_err(|_| errors);
        }
        Ok(()) => {}
    }
    let calling = calls::check(&atomic, Some(table));
    if !calling.is_empty() {
        return Err(calling);
    }
    adopt(&mut written, module, &made);
    let origins = Origins::new(given, module, &written);
    let printed = (tree != *module).then_some(tree);
    let tile_level = printed.as_ref().map_or_else(|| src.to_owned(), text::print);
    let said = Said::of(module);
    warnings.extend(solution.warnings.drain(..).filter(|d| said.concerns(d)));
    let warnings = lacking.into_iter().chain(warnings).map(|d| program.noted(d)).collect();
    written.inherit_executors();
    let (module, text, atomic) = generated.read_again(&written)?;
    Ok(Decomposed {
        module,
        text,
        program: atomic,
        tile_level,
        tile: program,
        certificates: solution.certificates,
        leaves: solution.leaves,
        chosen: solution.chosen,
        estimates: solution.estimates,
        searched: solution.searched,
        warnings,
        origins,
        rankings,
        unstated,
        printed,
        staged,
    })
}

/// Whether a spec of a text says `consumers=`.
pub(super) fn asks_for_consumers(module: &Module) -> bool {
    Walk::new(&module.items).stmts().any(|stmt| match &stmt.kind {
        StmtKind::Spec(spec) => spec.attr(Key::Consumers).is_some(),
        _ => false,
    })
}

/// Statements whose parents are gone, as those of stages that replaced others, name what these were
/// made from.
pub(super) fn adopt(written: &mut Module, given: &Module, made: &BTreeMap<NodeKey, NodeId>) {
    let ids = |m: &Module| -> Vec<NodeKey> {
        Walk::new(&m.items).with_means().stmts().map(|s| s.id.key()).collect()
    };
    let known: BTreeSet<NodeKey> = ids(written).into_iter().chain(ids(given)).collect();
    let mut todo: Vec<&mut Stmt> = written.items.iter_mut().collect();
    while let Some(stmt) = todo.pop() {
        while let Some(from) = stmt.from.filter(|from| !known.contains(&from.key())) {
            let Some(next) = made.get(&from.key()) else { break };
            stmt.from = Some(*next);
        }
        todo.extend(stmt.kind.blocks_mut().flat_map(|b| &mut b.stmts));
    }
}

/// How many instances are left out, one after the other.
pub(super) const MOST_LEFT_OUT: usize = 16;

/// The instances that are left out, and those that were chosen for kernels that need too much
/// shared memory; none where there are none of these.
pub(super) fn too_large(
    p: &Program,
    table: &AtomTable,
    rankings: &[Ranking],
    left_out: &[String],
) -> Option<Vec<String>> {
    let large =
        |kernel: &&SpecId| smem::Arena::place(p, &smem::buffers(p, **kernel), table).is_err();
    let names: Vec<&str> =
        p.kernels.iter().filter(large).filter_map(|k| p.specs[*k].name.as_deref()).collect();
    let of = |r: &&Ranking| names.contains(&r.kernel.trim_start_matches('@'));
    let chosen = rankings.iter().filter(of).filter_map(|r| r.instances.first());
    let more: Vec<String> =
        chosen.map(|c| c.by.clone()).filter(|by| !left_out.contains(by)).collect();
    let few = left_out.len() < MOST_LEFT_OUT;
    (few && !more.is_empty()).then(|| [left_out, &more].concat())
}
