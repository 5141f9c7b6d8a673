//! Writes the loops, conditions, pipelines with explicit stages, and specs with a body of a random
//! program, each around steps of a description. A loop is written only if the state at the end of
//! its body is one in which the body may begin again.

use super::Writer;
use super::state::{ALL, Body, Code, Owner, View};
use super::steps::tensor;
use super::views::nth;
use crate::gate::description::{Pick, Place, Step};
use crate::gate::exact::{Flow, Function};
use std::collections::BTreeSet;

impl Body {
    /// Writes the body of a loop so that it can be repeated: the state at its end is a state in
    /// which it may begin. Iterates to a fixed point, or gives up.
    pub(super) fn turns(
        &mut self,
        w: &mut Writer,
        (k, trips): (&str, i64),
        body: &mut dyn FnMut(&mut Body, &mut Writer) -> Code,
    ) -> Option<Code> {
        let mut entry = self.clone();
        entry.loops.push((k.to_owned(), trips));
        for _ in 0..5 {
            let mut end = entry.clone();
            let code = body(&mut end, w);
            let mut next = entry.clone();
            for (before, after) in next.locals.iter_mut().zip(&end.locals) {
                before.written.iter_mut().zip(&after.written).for_each(|(b, a)| *b &= a);
            }
            let new = end.since.iter().filter(|a| !entry.since.contains(a)).cloned();
            next.since.extend(new);
            let changed = next.since != entry.since
                || next.locals.iter().zip(&entry.locals).any(|(a, b)| a.written != b.written);
            if !changed {
                end.loops.pop();
                *self = end;
                return Some(code);
            }
            entry = next;
        }
        None
    }

    /// Writes a condition that is equal for all threads.
    pub(super) fn either(
        &mut self,
        w: &mut Writer,
        cond: u8,
        bodies: (&[Step], &[Step]),
        code: &mut Code,
    ) {
        let (m, _) = w.grid;
        let of_loop = self.loops.last().cloned().filter(|_| cond < 20);
        let text = match (&of_loop, cond % 5) {
            _ if cond == 31 => {
                self.has("`if` on threads that holds for all");
                self.numbered = true;
                format!("@t < {}", w.threads)
            }
            (Some((k, _)), 0) => format!("{k} == 1"),
            (Some((k, _)), 1) => format!("{k} % 2 == 0"),
            (Some((k, n)), 2) => format!("{k} + 1 < {n}"),
            (Some((k, _)), 3) => format!("{k} > 0"),
            (Some((k, _)), _) => format!("{k} < 2 && @i == {}", m - 1),
            (None, 0) => format!("@i == {}", m - 1),
            (None, 1) => "@i % 2 == 0".to_owned(),
            (None, 2) => "@i > 0".to_owned(),
            (None, 3) => format!("@i + 1 < {m}"),
            (None, _) => "@i == 0".to_owned(),
        };
        let by_block = text.contains("@i");
        let ifs = self.ifs;
        let before: Vec<Vec<u8>> = self.locals.iter().map(|l| l.written.clone()).collect();
        let since = self.since.clone();
        let diverged = self.diverged;
        self.diverged |= text.contains("@t");
        self.ifs = if by_block { (ifs.0, ifs.1 + 1) } else { (ifs.0 + 1, ifs.1) };
        let then = self.inside(w, bodies.0);
        let after: Vec<Vec<u8>> = self.locals.iter().map(|l| l.written.clone()).collect();
        let after_since = std::mem::replace(&mut self.since, since);
        for (i, l) in self.locals.iter_mut().enumerate() {
            match before.get(i) {
                Some(written) => l.written.clone_from(written),
                None => l.written.fill(0),
            }
        }
        let otherwise = self.inside(w, bodies.1);
        for (l, then) in self.locals.iter_mut().zip(&after) {
            l.written.iter_mut().zip(then).for_each(|(a, b)| *a &= b);
        }
        let n = after.len();
        self.locals[n..].iter_mut().for_each(|l| l.written.fill(0));
        let new: Vec<_> = after_since.into_iter().filter(|a| !self.since.contains(a)).collect();
        self.since.extend(new);
        (self.ifs, self.diverged) = (ifs, diverged);
        if then.lines.is_empty() && otherwise.lines.is_empty() {
            return;
        }
        self.has(if by_block { "`if` on a block" } else { "`if` on a loop" });
        code.within(format!("if ({text})"), then.lines);
        if !otherwise.lines.is_empty() {
            code.lines.pop();
            code.within("} else".to_owned(), otherwise.lines);
        }
        code.flow.push(Flow::Either(then.flow, otherwise.flow));
    }

    /// Writes a pipeline with explicit stages.
    pub(super) fn stages(
        &mut self,
        w: &mut Writer,
        (stages, late, by_hand): (usize, bool, bool),
        source: Pick,
        body: &[Step],
        code: &mut Code,
    ) {
        let walked = |v: &View| {
            let Owner::Global(g) = v.owner else { return false };
            w.globals[g].tiles.1 > 1 && w.grid.1 == 1 && v.shape.0 > 1 && v.shape.1 > 1
        };
        let list = self.readable(w, Place::Global, 0);
        let list: Vec<View> = list.into_iter().filter(walked).collect();
        let (Some(from), true) = (nth(&list, source.which), self.loops.is_empty()) else { return };
        let Owner::Global(g) = from.owner else { return };
        let n = w.globals[g].tiles.1;
        let ahead = (stages as i64 - 1).min(n);
        let part = if stages == 2 { 12 } else { 14 };
        let new = Pick { part, ..Pick::default() };
        let stage = self.allocate(true, new, from.shape, from.scalar, code);
        let held = self.allocate(false, Pick::default(), from.shape, from.scalar, code);
        let (Owner::Local(s), Owner::Local(r)) = (stage.owner, held.owner) else { return };
        let name = self.locals[s].name.clone();
        // No other tensor may share the memory while copies are in flight.
        self.locals[s].locked = true;
        let of = w.globals[g].clone();
        let tile = |k: &str| format!("%{}.tile([{},{}])[@i, {k}]", of.name, of.tile.0, of.tile.1);
        let copied = |b: &mut Body, code: &mut Code, k: &str, to: &str| {
            let from = View { text: tile(k), ..from.clone() };
            let to = View { text: format!("%{name}[{to}]"), stage: None, ..stage.clone() };
            b.moved(code, &from, &to, false);
        };
        let p = self.variable();
        let mut fill = Code::default();
        copied(self, &mut fill, &p, &p);
        if by_hand {
            fill.line("async.commit");
        }
        code.within(format!("for ({p} = 0; {p} < {ahead}; {p} += 1)"), fill.lines);
        code.flow.push(Flow::Op {
            op: Function::Same,
            inputs: vec![tensor(&from)],
            output: (stage.slot, stage.scalar),
            all: true,
        });
        let k = self.variable();
        let ask = |b: &mut Body, code: &mut Code| {
            let mut next = Code::default();
            let before = b.since.clone();
            let (at, to) = (format!("{k} + {ahead}"), format!("({k} + {ahead}) % {stages}"));
            copied(b, &mut next, &at, &to);
            // The last iterations issue no copy.
            let new: Vec<_> = before.into_iter().filter(|a| !b.since.contains(a)).collect();
            b.since.extend(new);
            code.flow.push(Flow::Either(next.flow, vec![]));
            code.within(format!("if ({k} + {ahead} < {n})"), next.lines);
            if by_hand {
                code.line("async.commit");
            }
        };
        let turn = self.turns(w, (&k, n), &mut |b, w| {
            let mut code = Code::default();
            if !late {
                ask(b, &mut code);
            }
            if by_hand {
                let left = if late { ahead - 1 } else { ahead };
                code.line(format!("async.wait({left})"));
                code.line("barrier");
                b.since.clear();
            }
            let from = View { text: format!("%{name}[{k} % {stages}]"), ..stage.clone() };
            let to = View { stage: Some(0), ..held.clone() };
            b.moved(&mut code, &from, &to, true);
            b.locals[r].written.fill(ALL);
            let rest = b.inside(w, body);
            code.append(rest);
            if late {
                ask(b, &mut code);
            }
            code
        });
        let Some(turn) = turn else { return };
        code.within(format!("for ({k} = 0; {k} < {n}; {k} += 1)"), turn.lines);
        code.flow.push(Flow::Loop(n, turn.flow));
        // The contents of the stages after the loop are unknown.
        self.locals[s].written.fill(0);
        self.has("stages by hand");
        if by_hand {
            self.has("commits and waits by hand");
        }
    }

    /// Writes a spec around steps.
    pub(super) fn group(&mut self, w: &mut Writer, body: &[Step], code: &mut Code) {
        let first = self.locals.len();
        self.groups.push(Default::default());
        let mut inner = self.inside(w, body);
        let Some((inputs, outputs)) = self.groups.pop() else { return };
        if outputs.is_empty() {
            code.append(inner);
            return;
        }
        // Tensors that the spec allocates are not its operands.
        let own = |o: &Owner| matches!(o, Owner::Local(l) if *l >= first && self.locals[*l].inner);
        let names = |set: &BTreeSet<Owner>| {
            let name = |o: &Owner| match o {
                Owner::Global(g) => format!("%{}", w.globals[*g].name),
                Owner::Local(l) => format!("%{}", self.locals[*l].name),
                Owner::Private(p) => format!("%{}", self.privates[*p].name),
            };
            set.iter().filter(|o| !own(o)).map(name).collect::<Vec<_>>().join(", ")
        };
        let head = format!("Spec <<<#grid, #cta>>> ({}) -> ({})", names(&inputs), names(&outputs));
        code.within(head, std::mem::take(&mut inner.lines));
        code.flow.append(&mut inner.flow);
        self.has("a spec with a body inside");
    }
}
