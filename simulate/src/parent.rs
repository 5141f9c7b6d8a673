//! Compares the results of a program with the meaning of another program, its parent. The program
//! may be an edit of the parent or its decomposition; it must compute the parent's results.
//!
//! Both programs get the same inputs, by name. Kernels of the parent that have a meaning are
//! evaluated on the elements that the program wrote; other kernels of the parent are executed. The
//! comparison uses shadows (results without rounding), so the rounding of either program does not
//! matter. A larger difference than allowed is an error. The allowed difference is relative to the
//! scale of the parent's meaning, which is the sum of the magnitudes that are added, or, for an
//! executed kernel, to the largest magnitude of the tensor.

use crate::decisions::Decisions;
use crate::denote::{Exact, SLACK, cover};
use crate::exec::{Mode, Near, Numerics, elected_lane, value_text};
use crate::kernel_results::{Oracle, offset};
use crate::launch::{
    Memory, begin_again, chosen_blocks, execute, meant, merge_into, reads, symbols,
};
use crate::num::{decode, ulp};
use crate::options::{Between, Options};
use crate::plan::{Checked, Inverse, Kernel, Space, coordinates, coordinates_text, lower};
use crate::report::{OutputTensor, Report};
use crate::state::{GlobalMemory, Pages, Value};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{BufferId, Program, RoundedTypes, SpecId, TensorId};
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, HashSet};

/// A tensor of the parent and the number of its elements that were compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The name without `%`.
    pub tensor: String,
    /// The number of compared elements.
    pub elements: u64,
    /// The largest distance of a stored element from the parent's meaning in binary64, in units in
    /// the last place of its type.
    pub max_ulp: f64,
    /// The norm of these distances divided by the norm of the parent's meaning; none if the
    /// quotient is not a number.
    pub relative_norm: Option<f64>,
}

/// Compares the tensors that a program wrote with those of its parent. `options` are the options of
/// the program's run, with [`Between::for_parent`] if the program has several kernels; `report` is
/// the result of that run. If `options` contain the [`Decisions`] of both programs, the inputs test
/// the decisions of both.
///
/// # Errors
/// `S0513` if a tensor of the parent is missing, has another type, or has no element to compare;
/// `S0501` for the first element that differs; the errors of executing the parent.
pub fn compare_with_parent(
    parent: &Program,
    atoms: &AtomTable,
    options: &Options,
    (program, report): (&Program, &Report),
) -> Checked<Vec<Compared>> {
    let complete = report.kernels.iter().all(|k| k.complete);
    let comparison =
        Comparison { parent, program, report, complete, rounded: parent.rounded_types() };
    comparison.same_tensors()?;
    let decisions = options.decisions.clone().unwrap_or_else(|| Decisions::of(program));
    let decisions = Some(decisions);
    let options = Options { check: true, shadow: true, decisions, ..options.clone() };
    let go_on = Between::for_parent(parent);
    let symbols = symbols(parent, &options)?;
    let mut memory = Memory::new(parent, &options, &symbols)?;
    let mut compared: BTreeMap<BufferId, Numerics> = BTreeMap::new();
    let mut between = HashSet::new();
    for (i, id) in parent.kernels.iter().enumerate() {
        let kernel = lower(parent, *id, atoms, &symbols, elected_lane(None))?;
        let rest = &parent.kernels[i + 1..];
        let later: HashSet<BufferId> = rest.iter().flat_map(|k| reads(parent, *k)).collect();
        // A tensor that a later kernel writes again is compared after that kernel.
        let again: HashSet<BufferId> = parent.specs[*id]
            .outputs
            .iter()
            .filter(|t| rest.iter().any(|k| writes_again(parent, *k, **t)))
            .map(|t| parent.tensors[*t].buffer)
            .collect();
        let needed = outputs(parent, *id).any(|b| later.contains(&b) || again.contains(&b));
        let only_read = |b: &BufferId| later.contains(b) && !again.contains(b);
        between.extend(outputs(parent, *id).filter(only_read));
        let buffers = memory.of(&kernel)?;
        for (buffer, n) in
            comparison.compare_kernel(&kernel, &buffers, &options, (needed, &again))?
        {
            compared.entry(buffer).or_default().merge(&n);
        }
        if needed {
            let written = match kernel.root {
                Some(_) => meant(&kernel, &buffers, &options)?,
                None => run(&kernel, &buffers, &options, true)?,
            };
            merge_into(&mut memory, &kernel, written);
            begin_again(&mut memory, &kernel, &go_on);
        }
    }
    let written: Vec<BufferId> = parent
        .params
        .iter()
        .copied()
        .filter(|b| parent.kernels.iter().any(|k| outputs(parent, *k).any(|o| o == *b)))
        .collect();
    let mut out = Vec::new();
    let mut all_empty = !written.is_empty();
    for buffer in written {
        let name = &parent.buffers[buffer].name;
        let numerics = compared.get(&buffer).copied().unwrap_or_default();
        let elements = numerics.elements;
        let is_empty = memory.tensors.get(&buffer).is_some_and(|(_, sizes)| sizes.size == 0);
        all_empty &= is_empty;
        if elements == 0 && !between.contains(&buffer) && !is_empty {
            let text = format!("no element of %{name} can be compared with the original program");
            return Err(Box::new(
                Diagnostic::new(Code::OtherSpec, comparison.writer(name), text)
                    .label(
                        "the blocks that ran wrote no element that the original program also \
                         writes, or other blocks add to all of these elements",
                    )
                    .help("run more blocks with `--blocks all`, or write the tensor"),
            ));
        }
        let (max_ulp, relative_norm) = (numerics.max_ulp, numerics.relative_norm());
        out.push(Compared { tensor: name.clone(), elements, max_ulp, relative_norm });
    }
    if out.iter().all(|c| c.elements == 0) && !all_empty {
        let text = "nothing can be compared: the original program writes no tensor";
        let span = program.kernels.first().map(|k| program.specs[*k].span).unwrap_or_default();
        return Err(Box::new(
            Diagnostic::new(Code::OtherSpec, span, text)
                .help("name a program with kernels after `--against`"),
        ));
    }
    Ok(out)
}

fn outputs(p: &Program, kernel: SpecId) -> impl Iterator<Item = BufferId> + '_ {
    p.specs[kernel].outputs.iter().map(|t| p.tensors[*t].buffer)
}

/// Whether a kernel overwrites all of a tensor: through an equal view, or through the complete
/// buffer.
fn writes_again(p: &Program, kernel: SpecId, tensor: TensorId) -> bool {
    let (buffer, own) = (p.tensors[tensor].buffer, &p.tensors[tensor]);
    p.specs[kernel].outputs.iter().any(|t| {
        let other = &p.tensors[*t];
        let whole = *t == p.buffers[buffer].tensor;
        let same =
            other.levels == own.levels && other.offset == own.offset && other.bounds == own.bounds;
        other.buffer == buffer && (whole || same)
    })
}

/// Executes a kernel.
fn run(
    kernel: &Kernel<'_>,
    buffers: &[&GlobalMemory],
    options: &Options,
    whole: bool,
) -> Checked<Vec<Pages>> {
    let mode = Mode {
        check: false,
        small_ints: false,
        schedule: None,
        shadows: true,
        statements: false,
        most: None,
    };
    let (blocks, mode, _) = chosen_blocks(kernel, buffers, mode, options, whole)?;
    let (_, grid) = execute(kernel, buffers, &blocks, mode, |_, _| Ok(()))?;
    Ok(grid.into_written(blocks.len() as i64 == kernel.n_blocks).collect())
}

/// Records the distance of a stored element from the parent's meaning.
fn note(of: &mut Numerics, scalar: Scalar, value: Value, reference: f64) {
    let distance = (decode(scalar, value.bits) - reference).abs();
    match distance.is_finite() {
        true => {
            let ulp = ulp(scalar, reference);
            of.add(&Near { error: 0.0, allowed: 0.0, distance, ulp, reference, undecided: 0 }, 0.0);
        }
        false => of.elements += 1,
    }
}

/// A program, its results, and the parent that it is compared with.
struct Comparison<'p> {
    parent: &'p Program,
    program: &'p Program,
    report: &'p Report,
    /// Whether all blocks of the program ran.
    complete: bool,
    /// The types that the parent rounds to.
    rounded: RoundedTypes,
}

impl<'p> Comparison<'p> {
    fn tensor(&self, name: &str) -> Option<&'p OutputTensor> {
        self.report.outputs.tensors.iter().find(|t| t.memory.name == name)
    }

    /// The span of the program's kernel that writes a tensor, or of its first kernel.
    fn writer(&self, name: &str) -> Span {
        let p = self.program;
        let writes = |k: &&SpecId| outputs(p, **k).any(|b| p.buffers[b].name == name);
        let kernel = p.kernels.iter().find(writes).or(p.kernels.first());
        kernel.map(|k| p.specs[*k].span).unwrap_or_default()
    }

    /// Checks that tensors of both programs have equal types, that the program has all tensors that
    /// the parent writes, and that it reads no other inputs.
    fn same_tensors(&self) -> Checked<()> {
        let (parent, program) = (self.parent, self.program);
        let refuse = |span: Span, text: String, help: &str| {
            Err(Box::new(Diagnostic::new(Code::OtherSpec, span, text).help(help)))
        };
        let of = |p: &'p Program, name: &str| {
            p.params.iter().map(|b| &p.buffers[*b]).find(|b| b.name == name)
        };
        let show = |p: &Program, b: &carbyne_ir::program::Buffer| {
            let levels = &p.tensors[b.tensor].levels;
            format!("{}.{}", carbyne_ir::program::show_levels(&p.arena, levels), b.scalar)
        };
        // A tensor that no kernel reads after its last write must exist in the program.
        let last = |id: &BufferId| {
            parent.kernels.iter().rposition(|k| outputs(parent, *k).any(|b| b == *id))
        };
        let read_on = |id: &BufferId| {
            let rest = last(id).map_or(&[][..], |i| &parent.kernels[i + 1..]);
            rest.iter().any(|k| reads(parent, *k).contains(id))
        };
        for id in &parent.params {
            let theirs = &parent.buffers[*id];
            let name = &theirs.name;
            let written = parent.kernels.iter().any(|k| outputs(parent, *k).any(|b| b == *id));
            match of(program, name) {
                None if written && !read_on(id) => {
                    return refuse(
                        self.writer(name),
                        format!("%{name}, which the original program writes, is missing"),
                        "declare the tensor and write it: tensors are compared by name",
                    );
                }
                None => {}
                Some(ours) => {
                    let (ours_shown, theirs_shown) = (show(program, ours), show(parent, theirs));
                    if ours_shown != theirs_shown {
                        return refuse(
                            ours.span,
                            format!(
                                "%{name} is {ours_shown}, in the original program {theirs_shown}"
                            ),
                            "keep the types of the caller's tensors, and edit the kernels only",
                        );
                    }
                }
            }
        }
        let read: HashSet<BufferId> =
            program.kernels.iter().flat_map(|k| reads(program, *k)).collect();
        for id in &program.params {
            let ours = &program.buffers[*id];
            let own = program.kernels.iter().any(|k| outputs(program, *k).any(|b| b == *id));
            if read.contains(id) && !own && of(parent, &ours.name).is_none() {
                return refuse(
                    ours.span,
                    format!(
                        "the program reads %{}, and the original program has no such tensor",
                        ours.name
                    ),
                    "read only tensors of the original program: inputs are matched by name",
                );
            }
        }
        Ok(())
    }

    /// Compares the results of a kernel of the parent, by the parent's buffer.
    fn compare_kernel(
        &self,
        kernel: &Kernel<'_>,
        buffers: &[&GlobalMemory],
        options: &Options,
        (needed, again): (bool, &HashSet<BufferId>),
    ) -> Checked<Vec<(BufferId, Numerics)>> {
        let mut out = Vec::new();
        let run = match &kernel.root {
            Some(_) => None,
            None => Some(run(kernel, buffers, options, needed)?),
        };
        for (number, (view, _)) in kernel.outputs.iter().enumerate() {
            let Space::Global(global) = kernel.views[*view].space else { continue };
            let buffer = kernel.globals[global].buffer;
            if again.contains(&buffer) {
                continue;
            }
            let name = &self.parent.buffers[buffer].name;
            let Some(ours) = self.tensor(name) else { continue };
            let n = match &run {
                Some(written) => self.with_run(ours, &written[global])?,
                None => self.with_meaning(kernel, buffers, (number, *view), ours)?,
            };
            out.push((buffer, n));
        }
        Ok(out)
    }

    /// The program's value of an element; none if a block that did not run may write it.
    fn given(&self, ours: &OutputTensor, at: i64) -> Option<Value> {
        match self.complete {
            true => ours.memory.read(at),
            false => ours.memory.pages.get(at),
        }
    }

    fn with_meaning(
        &self,
        kernel: &Kernel<'_>,
        buffers: &[&GlobalMemory],
        (number, view): (usize, usize),
        ours: &OutputTensor,
    ) -> Checked<Numerics> {
        let mut compared = Numerics::default();
        let Some(root) = &kernel.root else { return Ok(compared) };
        let view = &kernel.views[view];
        let rounded = self.rounded.all.contains(&view.scalar);
        let Some((inverse, base)) = Inverse::of_view(view) else { return Ok(compared) };
        let mut elements: Vec<i64> =
            ours.memory.pages.elements().filter_map(|(at, _)| inverse.element(at - base)).collect();
        if self.complete {
            // Elements that the program does not write keep their values, and count as results.
            elements = (0..view.size).collect();
        }
        elements.sort_unstable();
        let oracle = Oracle::new(kernel, buffers, root);
        for region in cover(&view.modes, &elements) {
            for part in oracle.parts(number, region) {
                let Some(exact) = oracle.wanted(number, &part)?.exact else { continue };
                for (i, e) in part.elements(&view.modes).enumerate() {
                    let at = offset(view, e);
                    let Some(value) = self.given(ours, at).filter(|_| !view.is_outside(at)) else {
                        continue;
                    };
                    note(&mut compared, view.scalar, value, exact.numbers[i]);
                    if !exact.is(i, view.scalar, value.shadow, rounded) {
                        let at = coordinates_text(&coordinates(&view.modes, e));
                        return Err(self.differs(ours, &at, value, exact.numbers[i]));
                    }
                }
            }
        }
        Ok(compared)
    }

    /// Compares with a kernel of the parent that was executed.
    fn with_run(&self, ours: &OutputTensor, theirs: &Pages) -> Checked<Numerics> {
        let sizes = theirs.elements().map(|(_, v)| v.shadow.abs()).filter(|s| s.is_finite());
        let largest = sizes.fold(0.0, f64::max);
        let mut compared = Numerics::default();
        for (at, theirs) in theirs.elements() {
            let Some(value) = self.given(ours, at) else { continue };
            note(&mut compared, ours.memory.scalar, value, theirs.shadow);
            let (numbers, scales) = (vec![theirs.shadow], vec![largest]);
            if !(Exact { numbers, scales }).is(0, ours.memory.scalar, value.shadow, false) {
                let e = ours.memory.inverse.element(at).unwrap_or(0);
                let name = coordinates_text(&coordinates(&ours.modes, e));
                return Err(self.differs(ours, &name, value, theirs.shadow));
            }
        }
        Ok(compared)
    }

    fn differs(&self, ours: &OutputTensor, at: &str, value: Value, want: f64) -> Box<Diagnostic> {
        let GlobalMemory { name, scalar, .. } = &ours.memory;
        let text = format!(
            "%{name}{at} is `{}` before rounding, the original program means `{want}`",
            value.shadow
        );
        let stored = value_text(*scalar, value.bits);
        Box::new(
            Diagnostic::new(Code::WrongElement, self.writer(name), text)
                .label("the result of the program differs from that of the original program")
                .help(
                    "correct the statement that computes the element, or name another program \
                     after `--against`",
                )
                .note(format!(
                    "the stored element is `{stored}`; without rounding, in binary64, the two \
                     differ by more than 2^-{} of the sum of the added magnitudes",
                    libm::log2(SLACK).abs()
                )),
        )
    }
}
