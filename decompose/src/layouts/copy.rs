//! Lists the candidates for a copy ([`candidates`]): every row that could implement it, with the
//! thread-value layouts that follow.

use super::offset;
use super::partial::{self, Ends};
use super::smem::Run;
use super::tv::{self, Split};
use crate::access::matching::Mismatch;
use crate::access::ops;
use crate::cost::constants::FITTED;
use crate::cost::constants::SPLIT_CYCLES;
pub use crate::plan::copy::Candidate;
use carbyne_atoms::bind;
use carbyne_atoms::{Atom, AtomOperand, AtomTable, Extent, SECTOR_BYTES};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, Spec, SpecId, TensorId};
use num_integer::gcd;

/// How a copy spreads a tensor over threads that nothing else spreads.
#[derive(Copy, Clone, Debug)]
struct Way {
    /// Threads side by side along the consecutive direction, at most.
    most: i64,
    /// Whether nothing goes on from one mode into the next.
    by_modes: bool,
    /// Consecutive scalars of a thread; those of one instruction where these are more.
    values: i64,
}

impl Candidate {
    /// Threads that take part.
    pub fn threads(&self) -> i64 {
        self.f.mode(0).map_or(1, |t| t.size())
    }
}

/// What is known of one side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// A register tensor with this thread-value layout.
    Registers(Layout),
    /// A register tensor whose thread-value layout is wanted.
    Open,
    /// A tensor in GL or SH.
    Memory,
}

/// Every row that implements the operation, cheapest first; or each row's reason.
pub fn candidates(
    p: &Program,
    id: SpecId,
    src: Side,
    dst: Side,
    table: &AtomTable,
    threads: i64,
) -> Result<Vec<Candidate>, Vec<(&'static str, Mismatch)>> {
    let mut found: Vec<Candidate> = vec![];
    let mut rejected = vec![];
    // A register tensor that follows from the copy may be spread in several ways.
    let anchors = matches!((&src, &dst), (Side::Open, _) | (_, Side::Open));
    let most: &[i64] = if anchors { &[i64::MAX, 32, 8] } else { &[i64::MAX] };
    let ways =
        |by_modes: bool| most.iter().map(move |most| Way { most: *most, by_modes, values: 1 });
    let pinned = p.specs[id].atom.as_deref();
    let to_shared = pinned.is_none() && is_copied_to_shared(p, id);
    let anywhere = match pinned.is_some() || to_shared {
        true => None,
        false => anywhere(p, id, (&src, &dst), table, threads),
    };
    let is_partial = p.specs[id].input_tensors().any(|t| !p.tensors[t].bounds.is_empty());
    for atom in table.implementing(p.specs[id].kind) {
        // On the way to shared memory single elements are as near, and keep threads side by side.
        if to_shared && atom.begins_anywhere() {
            continue;
        }
        // A bulk copy is one thread's; the block's threads share the tensor here.
        if pinned.is_some_and(|name| name != atom.name) || atom.extent != Extent::Tile {
            continue;
        }
        // How many elements a thread reads follows from the tensor where tiles reach over its end,
        // else from nothing.
        if let Err(m) = bind::moves_whole_tile(atom)
            && !is_partial
        {
            rejected.push((atom.name, m));
            continue;
        }
        let mut crosses = false;
        let is_narrow = |n: i64| atom.operands.iter().all(|o| o.bits_per_thread() < n);
        let looked_at = if anywhere.is_some_and(is_narrow) { 1 } else { usize::MAX };
        for (i, way) in ways(false).chain(ways(true)).take(looked_at).enumerate() {
            // Of a layout that crosses modes unevenly nothing can be reduced or repeated.
            if way.by_modes && !crosses {
                break;
            }
            match candidate(p, id, (&src, &dst), atom, threads, way) {
                Ok(c) => {
                    crosses |= anchors && c.crosses;
                    if !found.iter().any(|o| o.is_same(&c)) {
                        found.push(c);
                    }
                }
                Err(m) => {
                    // Places of single elements that cross modes have no layout along a bound.
                    crosses |=
                        matches!(m, Mismatch::Partial { why: bind::Why::Cut { n: 1, .. }, .. });
                    if i == 0 {
                        rejected.push((atom.name, m));
                    }
                }
            }
        }
    }
    // What comes in narrow instructions may be spread as what goes with it, which comes in wide
    // ones.
    let bits = p.specs[id].outputs.first().map_or(VECTOR_BITS, |t| p.scalar_of(*t).bits());
    let widest = found.iter().map(|c| c.n).max().unwrap_or(0);
    let narrow = (1..VECTOR_BITS / bits.max(1)).contains(&widest);
    if matches!(&dst, Side::Open) && narrow && computes_with(p, id) {
        let way = Way { most: i64::MAX, by_modes: false, values: VECTOR_BITS / bits };
        let rows: Vec<&Atom> =
            found.iter().filter(|c| c.n == widest).filter_map(|c| table.get(c.atom)).collect();
        for atom in rows {
            let other = candidate(p, id, (&src, &dst), atom, threads, way);
            found.extend(other.ok().filter(|c| !found.iter().any(|o| o.is_same(c))));
        }
    }
    // Of instructions that move the same elements the cheapest is enough.
    let dear = |c: &Candidate| {
        let same = |o: &&Candidate| (o.n, o.group) == (c.n, c.group) && o.moves_same(c);
        found.iter().filter(same).any(|o| o.cost < c.cost && alike(table, o, c))
    };
    let dear: Vec<bool> = found.iter().map(dear).collect();
    let mut dear = dear.into_iter();
    found.retain(|_| !dear.next().unwrap_or(false));
    // Fewer cycles first, then wider instructions; the table's order breaks ties.
    found.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(b.n.cmp(&a.n)));
    if found.is_empty() { Err(rejected) } else { Ok(found) }
}

/// Where vectors begin anywhere and no row takes as wide ones at once, of how many bits they are:
/// narrower rows are not spread in several ways then.
fn anywhere(
    p: &Program,
    id: SpecId,
    sides: (&Side, &Side),
    table: &AtomTable,
    threads: i64,
) -> Option<i64> {
    let way = Way { most: i64::MAX, by_modes: false, values: 1 };
    let bits = |a: &Atom| a.operands.first().map(AtomOperand::bits_per_thread);
    let fits = |a: &&Atom| candidate(p, id, sides, a, threads, way).is_ok();
    let rows = || table.implementing(p.specs[id].kind).filter(|a| a.extent == Extent::Tile);
    let found = rows().filter(|a| a.begins_anywhere()).filter(fits).filter_map(bits).max()?;
    let mut wide = rows().filter(|a| !a.begins_anywhere() && bits(a) >= Some(found));
    (!wide.any(|a| fits(&a))).then_some(found)
}

/// Whether outputs of two rows are there at the same time.
fn alike(table: &AtomTable, a: &Candidate, b: &Candidate) -> bool {
    let of = |c: &Candidate| table.get(c.atom).map(|atom| atom.visibility);
    of(a) == of(b)
}

/// Whether what a copy writes is copied on to shared memory.
fn is_copied_to_shared(p: &Program, id: SpecId) -> bool {
    let to = p.specs[id].outputs.first().map(|t| p.tensors[*t].buffer);
    let reads = |t: TensorId| Some(p.tensors[t].buffer) == to;
    let shared = |t: &TensorId| p.buffer_of(*t).is_shared();
    let copies = p.specs.iter().filter(|(_, s)| s.kind == SpecKind::Move);
    copies.filter(|(_, s)| s.outputs.iter().any(shared)).any(|(_, s)| s.input_tensors().any(reads))
}

/// Whether something else than a copy reads what a copy writes.
fn computes_with(p: &Program, id: SpecId) -> bool {
    let to = p.specs[id].outputs.first().map(|t| p.tensors[*t].buffer);
    let reads = |t: TensorId| Some(p.tensors[t].buffer) == to;
    p.specs.iter().any(|(_, s)| s.kind != SpecKind::Move && s.input_tensors().any(reads))
}

/// Bits of the widest access of a thread.
const VECTOR_BITS: i64 = 128;

fn candidate(
    p: &Program,
    id: SpecId,
    (src, dst): (&Side, &Side),
    atom: &Atom,
    threads: i64,
    way: Way,
) -> Result<Candidate, Mismatch> {
    let spec = &p.specs[id];
    let rows = rows(p, spec, atom)?;
    let (from, to, group) = (rows.from, rows.to, atom.group);
    bind::groups(threads, atom)?;
    // The known side and what follows for the other; letters as in the module header of `tv`.
    let Known { tv: known, is_src, mut part, crosses } =
        known(p, &rows, (src, dst), (group, threads), way)?;
    let (row_known, row_other, operand) = match is_src {
        true => (&rows.p, &rows.q, rows.s.name),
        false => (&rows.q, &rows.p, rows.d.name),
    };
    let n = row_known.mode(1).map_or(1, |v| v.size());
    let Split { lanes, groups, inst, rest } = tv::split(&known, group, n)
        .map_err(|e| refused(operand, format!("{n} values an instruction"), e.to_string()))?;
    let other = tv::other_side(&lanes, &inst, row_known, row_other)
        .map_err(|e| refused(operand, "an exact relation f∘p⁻¹ = g∘q⁻¹".into(), e.to_string()))?;
    // Of an accumulation each element counts once.
    if matches!(spec.kind, SpecKind::Accumulate(_))
        && ops::whole(p, to).is_none_or(|l| l.size() != known.size())
    {
        let found = "some that hold the same".to_owned();
        let want = "threads and registers that hold different elements".to_owned();
        return Err(Mismatch::Threads { want, found });
    }
    let build = |l: &Layout, v: &Layout| -> Result<Layout, Mismatch> {
        let e =
            |e: carbyne_ir::layout::LayoutError| refused(operand, "a layout".into(), e.to_string());
        let t = tv::join(&[l.clone(), groups.clone()]).map_err(e)?;
        let v = Layout::concat(&[v.clone(), rest.clone()]).map_err(e)?;
        tv::tv(&t, &v).map_err(e)
    };
    let mine = build(&lanes, &inst)?;
    let modes = (other.mode(0), other.mode(1));
    let (Ok(ol), Ok(ov)) = modes else {
        return Err(refused(operand, "two modes".into(), other.to_string()));
    };
    let theirs = build(&ol, &ov.coalesce())?;
    let (f, g) = if is_src { (mine, theirs) } else { (theirs, mine) };
    let taking = known.mode(0).map_or(1, |t| t.size());
    if taking != threads && part.is_none() {
        part = Some(tv::mode(taking, 1));
    }
    let (lanes_p, lanes_q) = if is_src { (inst.clone(), ov) } else { (ov, inst.clone()) };
    let src_run = memory_run(p, from, &lanes_p, &f, rows.s)?;
    let dst_run = memory_run(p, to, &lanes_q, &g, rows.d)?;
    let is_split = is_split(p, (spec, atom), &rows, (&lanes_p, &f), (&lanes_q, &g))?;
    // Vector registers: values of one instruction are consecutive in the thread's V by
    // construction.
    let instructions = (rest.size() * ((taking + 31) / 32)) as f64;
    let sectors = sectors(p, &[(from, &f, false), (to, &g, true)]);
    Ok(Candidate {
        sectors,
        atom: atom.name,
        group,
        n,
        part,
        f,
        g,
        p: rows.p.clone(),
        q: rows.q.clone(),
        src_run,
        dst_run,
        src_rf: p.buffer_of(from).is_per_thread(),
        dst_rf: p.buffer_of(to).is_per_thread(),
        instructions,
        cost: instructions * (atom.cost.issue_cycles + if is_split { SPLIT_CYCLES } else { 0.0 }),
        crosses,
    })
}

/// The operands of a row of the atom table, and the tensors that it moves.
struct Rows<'a> {
    s: &'a AtomOperand,
    d: &'a AtomOperand,
    from: TensorId,
    to: TensorId,
    /// The row's layout of the source, in scalars.
    p: Layout,
    /// The row's layout of the destination, in scalars.
    q: Layout,
}

fn rows<'a>(p: &Program, spec: &Spec, atom: &'a Atom) -> Result<Rows<'a>, Mismatch> {
    bind::operation(spec.kind, atom)?;
    let wrong = || Mismatch::Op { want: atom.op.to_string() };
    let [s, d] = &atom.operands[..] else { return Err(wrong()) };
    let (Some(from), Some(&to)) = (spec.input_tensors().next(), spec.outputs.first()) else {
        return Err(wrong());
    };
    let mut per = [1, 1];
    for (i, (operand, t)) in [(s, from), (d, to)].into_iter().enumerate() {
        per[i] = bind::unit(p.scalar_of(t), operand)?;
        bind::memory(p.buffer_of(t).memory, operand)?;
    }
    // More values a thread than a register row holds come with more instructions.
    let in_scalars = |o: &AtomOperand, per| {
        tv::in_scalars(&o.tv, per).map_err(|e| refused(o.name, "a layout".into(), e.to_string()))
    };
    Ok(Rows { s, d, from, to, p: in_scalars(s, per[0])?, q: in_scalars(d, per[1])? })
}

fn refused(operand: &'static str, want: String, found: String) -> Mismatch {
    Mismatch::Order { operand, want, found }
}

/// The side of a copy that determines the layout of the other side.
struct Known {
    tv: Layout,
    /// Whether the known side is the source.
    is_src: bool,
    /// The threads that take part, if not the whole block.
    part: Option<Layout>,
    /// See [`Candidate::crosses`].
    crosses: bool,
}

fn known(
    p: &Program,
    rows: &Rows<'_>,
    sides: (&Side, &Side),
    (group, threads): (i64, i64),
    way: Way,
) -> Result<Known, Mismatch> {
    let s = rows.s;
    let whole = |tv: &Layout, is_src| Known { tv: tv.clone(), is_src, part: None, crosses: false };
    match sides {
        (Side::Registers(f), Side::Memory) => {
            // One of the threads that hold the same elements writes them.
            let (tv, part) = writers(f)
                .map_err(|e| refused(s.name, "a thread-value layout".into(), e.to_string()))?;
            if part.is_some() && group != 1 {
                return Err(Mismatch::Threads {
                    want: format!("{group} threads that hold different elements"),
                    found: "some that hold the same".to_owned(),
                });
            }
            Ok(Known { tv, is_src: true, part, crosses: false })
        }
        (Side::Registers(f), _) => Ok(whole(f, true)),
        (_, Side::Registers(g)) => Ok(whole(g, false)),
        _ if group != 1 => Err(Mismatch::Threads {
            want: format!("{group} threads with a known thread-value layout"),
            found: "an open one".to_owned(),
        }),
        _ => along_memory(p, rows, sides, threads, way),
    }
}

/// The known side if neither layout is known: memory, accessed along its consecutive direction.
fn along_memory(
    p: &Program,
    rows: &Rows<'_>,
    (src, dst): (&Side, &Side),
    threads: i64,
    way: Way,
) -> Result<Known, Mismatch> {
    let Rows { s, from, to, .. } = *rows;
    let anchor = match (src, dst, p.buffer_of(from).open) {
        (Side::Memory, _, false) => from,
        _ => to,
    };
    let memory = ops::whole(p, anchor)
        .ok_or_else(|| refused(s.name, "known sizes".into(), "symbolic ones".into()))?;
    let n = rows.p.mode(1).map_or(1, |v| v.size());
    let wanted = |e: String| refused(s.name, format!("{n} consecutive elements"), e);
    // A copy into one of several stages is not waited for at once: its cost is the cost of issuing
    // it.
    let ring = p.tensors[p.buffer_of(to).tensor].levels.len() > 1;
    let copied = matches!((src, dst), (Side::Memory, Side::Memory)) && ring;
    let line = copied.then(|| line(&memory, n, p.scalar_of(anchor).bits(), threads));
    let most = line.flatten().unwrap_or(i64::MAX).min(way.most);
    let f = match way.by_modes {
        false => tv::coalesced(&memory, n.max(way.values), threads, most),
        true => tv::coalesced_by_modes(&memory, n.max(way.values), threads, most),
    };
    let f = f.map_err(|e| wanted(e.to_string()))?;
    let crosses = tv::crosses(&f, &memory);
    let mut part = None;
    let own = matches!(src, Side::Open) || matches!(dst, Side::Open);
    let f = if own {
        let all = tv::replicated(&f, threads).map_err(|e| wanted(e.to_string()))?;
        if matches!(src, Side::Open) {
            let (f, writers) = writers(&all).map_err(|e| wanted(e.to_string()))?;
            part = writers;
            f
        } else {
            all
        }
    } else {
        f
    };
    Ok(Known { tv: f, is_src: true, part, crosses })
}

/// Whether an instruction must be split into moves of single elements where its elements do not all
/// lie in the tensors.
fn is_split(
    p: &Program,
    (spec, atom): (&Spec, &Atom),
    rows: &Rows<'_>,
    (lanes_p, f): (&Layout, &Layout),
    (lanes_q, g): (&Layout, &Layout),
) -> Result<bool, Mismatch> {
    let (from, to, counts) = (rows.from, rows.to, atom.counts());
    let may_split = bind::may_split(p, spec, atom);
    let is_around = atom.begins_anywhere();
    if is_around && !may_split {
        return Err(partial::cut(p, from, lanes_p.size()));
    }
    let mut is_split = is_around;
    if !p.tensors[from].bounds.is_empty() {
        let ends = partial::ends(p, from, lanes_p, f)?;
        let is_apart = ends == Ends::Apart || ends == Ends::Counted && !counts;
        if is_apart && !may_split {
            return Err(partial::cut(p, from, lanes_p.size()));
        }
        is_split |= is_apart;
        // Zeros are written to registers, or by what counts.
        if !counts && !p.buffer_of(to).is_per_thread() {
            let (tensor, why) = (p.tensor_name(from), bind::Why::Registers);
            return Err(Mismatch::Partial { tensor, why });
        }
    }
    if !p.tensors[to].bounds.is_empty() && partial::ends(p, to, lanes_q, g)? != Ends::Together {
        if !may_split {
            return Err(partial::cut(p, to, lanes_q.size()));
        }
        is_split = true;
    }
    Ok(is_split)
}

/// How many threads of `n` values each stand side by side in a copy between memories whose rows are
/// longer than a line of 128 bytes, where there are rows enough for all threads. Lines are what the
/// caches transfer, so that whole rows transfer nothing more; but what one thread copies along its
/// row is then a constant away from its first address, and need not be computed.
fn line(memory: &Layout, n: i64, bits: i64, threads: i64) -> Option<i64> {
    /// Bits of a line.
    const LINE: i64 = 1024;
    let mut sizes = memory.coalesce().flatten().leaves().to_vec();
    sizes.retain(|(extent, _)| *extent > 1);
    let (row, _) = sizes.iter().copied().find(|(_, stride)| *stride == 1)?;
    let rows: i64 = sizes.iter().filter(|(_, s)| *s != 1).map(|(e, _)| *e).product();
    let lanes = LINE / n.checked_mul(bits)?.max(1);
    let long = lanes > 0 && row % (lanes * n) == 0 && row > lanes * n;
    // Rows that follow one another are one long row, whose parts are constants apart in any case.
    let apart = sizes.iter().all(|(_, stride)| *stride != row);
    (long && apart && threads % lanes == 0 && rows % (threads / lanes) == 0).then_some(lanes)
}

/// The layout of the threads that write, and which of the block's threads they are, where several
/// threads hold the same elements.
fn writers(tv: &Layout) -> Result<(Layout, Option<Layout>), carbyne_ir::layout::LayoutError> {
    let t = tv.mode(0)?;
    let (mut own, mut threads, mut step) = (vec![], vec![], 1);
    for &(n, s) in t.leaves() {
        if n > 1 && s != 0 {
            own.push(tv::mode(n, s));
            threads.push(tv::mode(n, step));
        }
        step *= n;
    }
    let size: i64 = own.iter().map(Layout::size).product();
    if size == step {
        return Ok((tv.clone(), None));
    }
    let own = tv::tv(&tv::join(&own)?, &tv.mode(1)?)?;
    Ok((own, Some(tv::join(&threads)?)))
}

/// Checks that the values of one instruction are consecutive and aligned in a tensor of known
/// layout; for an open one, the run that its layout must provide.
fn memory_run(
    p: &Program,
    t: TensorId,
    inst: &Layout,
    whole_tv: &Layout,
    operand: &AtomOperand,
) -> Result<Option<Run>, Mismatch> {
    let align = operand.align;
    let buffer = p.buffer_of(t);
    bind::around(p, t, operand)?;
    if buffer.is_per_thread() {
        return Ok(None);
    }
    let n = inst.size();
    let wrong = |found: String| Mismatch::Order {
        operand: operand.name,
        want: format!("{n} consecutive elements, `{n}:1`"),
        found,
    };
    let layout = ops::whole(p, t).ok_or_else(|| wrong("symbolic sizes".into()))?;
    let at = layout.compose(inst).map_err(|e| wrong(e.to_string()))?.coalesce();
    if !buffer.open && n > 1 && (0..n).any(|i| at.at(i) != i) {
        return Err(wrong(at.to_string()));
    }
    let addresses = layout.compose(whole_tv).map_err(|e| wrong(e.to_string()))?;
    let (tm, vm) = (addresses.mode(0), addresses.mode(1).and_then(|v| v.mode(1)));
    let steps: Vec<(i64, i64)> =
        [tm, vm].into_iter().flatten().flat_map(|part| part.leaves().to_vec()).collect();
    // In bits: elements below a byte may begin within one.
    let bits = |e: i64| e.saturating_mul(buffer.scalar.bits());
    if buffer.open {
        // A swizzle that is stated keeps only so many bytes together.
        let kept = buffer.swizzle.map_or(align, |sw| 1 << sw.base().min(30));
        bind::aligned(kept, operand)?;
        let run: Run = at.flatten().leaves().iter().copied().filter(|(n, _)| *n > 1).collect();
        let together = offset::together(&p.arena, p.tensors[t].offset, &steps, &run);
        if together < n {
            let found = (bits(together) / 8).max(1).min(align);
            return Err(Mismatch::Align {
                operand: operand.name,
                want: align,
                found,
                facts: vec![],
            });
        }
        return Ok(Some(run));
    }
    let mut found = buffer.align.saturating_mul(8);
    let offset = p.arena.divisor(p.tensors[t].offset);
    if offset != 0 {
        found = gcd(found, bits(offset));
    }
    for (extent, stride) in steps {
        if extent > 1 && stride != 0 {
            found = gcd(found, bits(stride).saturating_abs());
        }
    }
    if let Some(sw) = buffer.swizzle {
        found = found.min(8 << sw.base().min(30));
    }
    if found % (8 * align) != 0 {
        // Searches reject many, and explain few: which facts are missing is looked for by who says
        // so.
        let (operand, want, found) = (operand.name, align, found / 8);
        return Err(Mismatch::Align { operand, want, found, facts: vec![] });
    }
    Ok(None)
}

/// 32-byte sectors of global memory that one warp touches with one instruction, on average. Those
/// that it writes in part count several times ([`FITTED`]).
fn sectors(p: &Program, sides: &[(TensorId, &Layout, bool)]) -> f64 {
    let mut total = 0.0;
    for &(t, tv, writes) in sides {
        let buffer = p.buffer_of(t);
        if !buffer.is_global() {
            continue;
        }
        let (Some(inside), Ok(tm), Ok(vm)) = (ops::whole(p, t), tv.mode(0), tv.mode(1)) else {
            continue;
        };
        let inst = vm.mode(0).map_or(1, |m| m.size());
        let lanes = tm.size().min(32);
        let bits = buffer.scalar.bits();
        // Sectors, and bits of each.
        let mut seen: Vec<(i64, i64)> = vec![];
        for lane in 0..lanes {
            for v in 0..inst {
                let at = inside.at(tv.at(lane + tm.size() * v));
                let sector = at.saturating_mul(bits) / (8 * SECTOR_BYTES);
                match seen.iter_mut().find(|s| s.0 == sector) {
                    Some(s) => s.1 += bits,
                    None => seen.push((sector, bits)),
                }
            }
        }
        let part = |covered: i64| writes && covered < 8 * SECTOR_BYTES;
        total += seen.iter().map(|s| if part(s.1) { FITTED.partial } else { 1.0 }).sum::<f64>();
    }
    total
}
