//! `decompose --emit json`: prints the decomposed text, the choices of the solver, and the
//! certificates that prove them, so that another program can check the proofs. The document also
//! has the schedules of loops and the statement that orders each pair of accesses.
//!
//! Layouts are strings, `shape:stride`. A certificate states a relation between layouts. The parts
//! of the relation have the names of the fields of its variant of [`Relation`], whose documentation
//! explains them.

use crate::access_order::Reports;
use crate::json::schema;
use carbyne_decompose::Decomposed;
use carbyne_decompose::certificate::{Certificate, Relation};
use carbyne_decompose::{Leaf, LoopSchedule, Searched};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::SpecId;
use carbyne_ir::span::{LineIndex, Span};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The document of a decomposition; `source` is the text that was decomposed.
pub(crate) fn document(
    found: &Decomposed,
    (reports, loops): (&Reports, &[LoopSchedule]),
    source: &str,
    arch: &str,
) -> String {
    let lines = Lines::new(found, source);
    let object = json!({
        "schema_version": schema::DECOMPOSITION,
        "arch": arch,
        "text": found.text,
        "tile_level": found.tile_level,
        "search": searched(&found.searched),
        "solutions": found.leaves.iter().map(|leaf| solution(leaf, &lines)).collect::<Vec<_>>(),
        "loops": super::loops::json(loops, found, source),
        "certificates": found.certificates.iter()
            .map(|c| certificate(c, &lines))
            .collect::<Vec<_>>(),
        "synchronization": reports
            .iter()
            .map(|(kernel, report)| {
                super::check::object(&found.program, *kernel, report, &found.text)
            })
            .collect::<Vec<_>>(),
    });
    format!("{object:#}\n")
}

/// Finds the lines of specs.
pub(super) struct Lines<'a> {
    found: &'a Decomposed,
    source: LineIndex,
    tile_level: LineIndex,
    spans: BTreeMap<SpecId, Span>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(found: &'a Decomposed, source: &str) -> Self {
        let tile_level = LineIndex::new(&found.tile_level);
        let spans = found.tile_level_spans();
        Lines { found, source: LineIndex::new(source), tile_level, spans }
    }

    /// The source line that an operation was written on or generated for.
    pub(super) fn source(&self, id: SpecId) -> usize {
        let span = self.found.origins.span(self.found.tile.specs[id].node);
        self.source.line(span.start)
    }

    /// The line of an operation in the tile-level text.
    fn tile_level(&self, id: SpecId) -> Option<usize> {
        self.spans.get(&id).map(|span| self.tile_level.line(span.start))
    }
}

/// The extent of the search.
pub(super) fn searched(s: &Searched) -> Value {
    json!({
        "solutions_costed": s.leaves,
        "branches_pruned": s.pruned,
        "branches_dead": s.dead,
        "ended_at_budget": s.cut_off,
    })
}

/// The choices of a solution and their cost.
pub(super) fn solution(leaf: &Leaf, lines: &Lines<'_>) -> Value {
    let choice =
        |(id, choice): &(SpecId, String)| json!({ "line": lines.source(*id), "choice": choice });
    json!({
        "cycles": leaf.estimate.cycles,
        "registers": leaf.estimate.registers,
        "shared_bytes": leaf.estimate.shared_bytes,
        "blocks_per_multiprocessor": leaf.estimate.blocks_per_sm,
        "choices": leaf.choices.iter().map(choice).collect::<Vec<_>>(),
    })
}

fn certificate(c: &Certificate, lines: &Lines<'_>) -> Value {
    let (name, parts) = relation(&c.relation);
    json!({
        "line": lines.source(c.spec),
        "tile_level_line": lines.tile_level(c.spec),
        "atom": (c.atom != "-").then_some(c.atom),
        "relation": name,
        "parts": parts,
    })
}

fn relation(relation: &Relation) -> (&'static str, Value) {
    let text = Layout::to_string;
    let texts = |layouts: &[Layout]| layouts.iter().map(text).collect::<Value>();
    match relation {
        Relation::Copy { p, q, f, g } => {
            ("copy", json!({ "p": text(p), "q": text(q), "f": text(f), "g": text(g) }))
        }
        Relation::Gemm { inst, block, groups, row, tensors, maps } => (
            "gemm",
            json!({
                "inst": [inst.0, inst.1, inst.2],
                "block": [block.0, block.1, block.2],
                "groups": [groups.0, groups.1, groups.2],
                "row": texts(row),
                "tensors": texts(tensors),
                "maps": texts(maps),
            }),
        ),
        Relation::Pointwise { extents, layouts, n, loops, steps } => (
            "pointwise",
            json!({
                "extents": extents,
                "layouts": texts(layouts),
                "n": n,
                "loops": loops,
                "steps": steps,
            }),
        ),
        Relation::Reduction { extents, axes, layouts, values, masks, through } => (
            "reduction",
            json!({
                "extents": extents,
                "axes": axes,
                "layouts": texts(layouts),
                "values": texts(values),
                "masks": masks,
                "through": through.iter().map(|pair| texts(pair)).collect::<Value>(),
            }),
        ),
        Relation::Part { f, g, view, offset, registers, first } => (
            "part",
            json!({
                "f": text(f),
                "g": text(g),
                "view": text(view),
                "offset": offset,
                "registers": text(registers),
                "first": first,
            }),
        ),
        Relation::Exchange { f, g, map, steps } => (
            "exchange",
            json!({
                "f": text(f),
                "g": text(g),
                "map": text(map),
                "steps": steps.iter()
                    .map(|(mask, register)| json!([mask, register]))
                    .collect::<Value>(),
            }),
        ),
    }
}
