//! Writes leaves of a random kernel that single threads execute: copies between a tensor and the
//! thread's registers, copies from global to shared memory, and arithmetic on registers. A copy
//! accesses a part of a tensor, the thread's own part or the part of a thread at some distance. A
//! barrier precedes it if accesses of other threads before require one.

use super::Writer;
use super::state::{Body, Code, Owner, Private, View};
use super::views::nth;
use crate::gate::description::{Pick, Place};
use crate::gate::exact::{Function, Source};
use carbyne_ir::ast::{BinaryOp, UnaryOp};
use carbyne_ir::scalar::Scalar;

/// A tensor of which each thread takes some consecutive elements.
#[derive(Clone)]
struct Parted {
    view: View,
    /// The mode along which the elements of a thread lie.
    along: usize,
}

impl Body {
    /// Writes a leaf of threads, with a barrier before it if needed.
    pub(super) fn threads(
        &mut self,
        w: &mut Writer,
        what: u8,
        pick: Pick,
        (width, shift, who): (u8, u8, u8),
        code: &mut Code,
    ) {
        if self.diverged {
            return;
        }
        let read = matches!(what, 0 | 2 | 6);
        match what {
            4 => return self.arithmetic(w, pick, who, code),
            5 => return self.through(w, pick, (width, shift, who), code),
            _ => {}
        }
        let place = if matches!(what, 0 | 1 | 6 | 7) { Place::Shared } else { Place::Global };
        let mut list = self.parted(w, place, pick.part, !read);
        if list.is_empty() && place == Place::Shared {
            // Allocates a tensor that threads can divide.
            let from = self.readable(w, Place::Global, pick.part);
            let from: Vec<View> =
                from.into_iter().filter(|v| v.shape.0 > 1 && v.shape.1 > 1).collect();
            let Some(from) = nth(&from, pick.which) else { return };
            let new = Pick { part: 5, ..pick };
            let to = self.allocate(true, new, from.shape, from.scalar, code);
            if read {
                self.moved(code, &from, &to, true);
            }
            list = self.parted(w, place, pick.part, !read);
        }
        let Some(of) = nth(&list, pick.which) else { return };
        let Some((view, inside)) = self.share(w, &of, (self.width(&of, width), shift, pick.part))
        else {
            return;
        };
        let n = view.shape.0 * view.shape.1;
        let own = self.privates.iter().enumerate();
        let own = own.filter(|(_, p)| p.scalar == view.scalar && p.width == n).map(|(i, _)| i);
        let own: Vec<usize> = own.collect();
        let p = match nth(&own, pick.new) {
            Some(p) if !read || pick.new > 1 => p,
            _ => self.private(view.scalar, n),
        };
        let private = self.privates[p].clone();
        if self.threads_touch(&view, !read) {
            code.line("barrier");
            self.has("barrier before threads");
        }
        let name = format!("%{}", private.name);
        let (from, to) = match read {
            true => (view.text.as_str(), name.as_str()),
            false => (name.as_str(), view.text.as_str()),
        };
        let leaf = |threads: &str| format!("Move <<<#grid, {threads}>>> ({from}) -> ({to})");
        self.by(w, (who, inside), code, &leaf);
        let (from, to) = match read {
            true => (view.slot, (private.slot, view.scalar)),
            false => (private.slot, (view.slot, view.scalar)),
        };
        code.op(Function::Same, vec![Source::Tensor(from)], to, false);
        self.mention(Owner::Private(p), read);
        if matches!(view.owner, Owner::Local(l) if !self.locals[l].fixed) {
            self.has("threads on an open shared tensor");
        }
        self.has(if read { "threads read" } else { "threads write" });
        if shift > 0 {
            self.has("a part that lies some threads away");
        }
    }

    /// Writes a copy from global to shared memory without registers.
    fn through(
        &mut self,
        w: &mut Writer,
        pick: Pick,
        (width, shift, who): (u8, u8, u8),
        code: &mut Code,
    ) {
        let to = self.parted(w, Place::Shared, pick.part, true);
        let Some(to) = nth(&to, pick.which) else { return };
        let from = self.parted(w, Place::Global, pick.part, false);
        let like = |p: &&Parted| {
            p.along == to.along && (p.view.scalar, p.view.shape) == (to.view.scalar, to.view.shape)
        };
        let Some(from) = from.iter().find(like) else { return };
        let how = (self.width(&to, width % 2), shift, pick.part);
        let Some((to, inside)) = self.share(w, &to, how) else { return };
        let Some((from, _)) = self.share(w, from, how) else { return };
        let first = self.threads_touch(&from, false);
        let second = self.threads_touch(&to, true);
        if second {
            // The barrier precedes both accesses.
            self.threads_touch(&from, false);
        }
        if first || second {
            code.line("barrier");
            self.has("barrier before threads");
        }
        let bits = to.shape.0 * to.shape.1 * to.scalar.bits();
        let fixed = matches!(to.owner, Owner::Local(l) if self.locals[l].fixed);
        let atom = match (pick.new, bits) {
            _ if !fixed => "",
            (2, 128) => " atom=cp.async.cg.b128",
            (2, 64) => " atom=cp.async.ca.b64",
            (2, 32) => " atom=cp.async.ca.b32",
            _ => "",
        };
        let leaf = |threads: &str| {
            format!("Move <<<#grid, {threads}>>> ({}) -> ({}){atom}", from.text, to.text)
        };
        self.by(w, (who, inside), code, &leaf);
        code.op(Function::Same, vec![Source::Tensor(from.slot)], (to.slot, to.scalar), false);
        self.has("threads copy from global to shared memory");
        if !atom.is_empty() {
            code.line("async.commit");
            if pick.part % 2 == 1 {
                self.between(w, pick, code);
            }
            code.line("async.wait(0)");
            // After the wait the copy counts as a write at this point.
            self.threads_touch(&to, true);
            self.has("asynchronous copies by hand");
        }
    }

    /// Writes a copy by the block to a new tensor, between an explicit copy and its wait.
    fn between(&mut self, w: &mut Writer, pick: Pick, code: &mut Code) {
        let full = |v: &View| v.shape.0 > 1 && v.shape.1 > 1;
        let list = self.readable(w, Place::Global, pick.part);
        let list: Vec<View> = list.into_iter().filter(full).collect();
        let Some(from) = nth(&list, pick.which) else { return };
        let to = self.allocate(true, Pick::default(), from.shape, from.scalar, code);
        self.moved(code, &from, &to, true);
    }

    /// Writes arithmetic on registers of threads.
    fn arithmetic(&mut self, w: &mut Writer, pick: Pick, who: u8, code: &mut Code) {
        let whole = |p: &&Private| matches!(p.scalar, Scalar::F16 | Scalar::F32 | Scalar::I32);
        let list: Vec<usize> =
            (0..self.privates.len()).filter(|p| whole(&&self.privates[*p])).collect();
        let Some(p) = nth(&list, pick.which) else { return };
        let kind = |p: usize| (self.privates[p].scalar, self.privates[p].width);
        let like: Vec<usize> = list.into_iter().filter(|o| kind(*o) == kind(p)).collect();
        let Some(o) = nth(&like, pick.part) else { return };
        self.mention(Owner::Private(p), false);
        self.mention(Owner::Private(p), true);
        self.mention(Owner::Private(o), false);
        let (p, o) = (self.privates[p].clone(), self.privates[o].clone());
        let u = self.fresh("u");
        let (to, from) = (format!("%{}[{u}]", p.name), format!("%{}[{u}]", o.name));
        let (op, inputs, text) = match pick.new {
            0 => (
                Function::Unary(UnaryOp::Neg),
                vec![Source::Tensor(p.slot)],
                ("UnaryPointwise.neg", to.clone()),
            ),
            _ => (
                Function::Binary(BinaryOp::Add),
                vec![Source::Tensor(p.slot), Source::Tensor(o.slot)],
                ("BinaryPointwise.add", format!("{to}, {from}")),
            ),
        };
        let leaf =
            |threads: &str| format!("{} <<<#grid, {threads}>>> ({}) -> ({to})", text.0, text.1);
        let mut body = Code::default();
        self.by(w, (who, None), &mut body, &leaf);
        let n = p.width;
        code.within(format!("for ({u} = 0; {u} < {n}; {u} += 1) unroll"), body.lines);
        code.op(op, inputs, (p.slot, p.scalar), false);
        self.has("arithmetic of threads");
    }

    /// Writes a leaf for all threads, or for those that a number selects.
    fn by(
        &mut self,
        w: &Writer,
        (who, inside): (u8, Option<i64>),
        code: &mut Code,
        leaf: &dyn Fn(&str) -> String,
    ) {
        let half = w.threads / 2;
        let some = match (inside, who) {
            (Some(n), _) => Some(format!("@t < {n}")),
            (None, 4) => Some(format!("@t < {half}")),
            (None, 5) => Some("@t % 2 == 0".to_owned()),
            (None, 7) => Some(format!("@t >= {half}")),
            _ => None,
        };
        self.numbered = true;
        if who == 6 && w.threads > 32 && inside.is_none() {
            self.has("a part of the block");
            return code.line(leaf("#cta.tile([32])[0].scalar()"));
        }
        match some {
            None => code.line(leaf("#one")),
            Some(cond) => {
                code.within(format!("if ({cond})"), vec![leaf("#one")]);
                self.has("`if` on threads");
            }
        }
    }

    /// Allocates registers of each thread, initialized with zeros.
    fn private(&mut self, scalar: Scalar, width: i64) -> usize {
        let name = self.fresh("p");
        let u = self.fresh("u");
        let slot = self.slot();
        self.numbered = true;
        self.head.line(format!("Allocate %{name}:[{width}].{scalar}.RF"));
        let init = format!("Init <<<#grid, #one>>> (0) -> (%{name}[{u}])");
        self.head.within(format!("for ({u} = 0; {u} < {width}; {u} += 1) unroll"), vec![init]);
        self.head.op(Function::Same, vec![Source::Number(0.0)], (slot, scalar), true);
        self.privates.push(Private { name, scalar, width, slot });
        self.privates.len() - 1
    }

    /// The tensors that threads can divide.
    fn parted(&self, w: &Writer, place: Place, part: u8, write: bool) -> Vec<Parted> {
        if place == Place::Global {
            let all = (0..w.globals.len()).map(|g| (g, self.tile(w, g, part)));
            let fits = |(g, v): &(usize, View)| match write {
                true => self.writable(w, *g),
                false => self.readable(w, Place::Global, part).iter().any(|o| o.text == v.text),
            };
            return all
                .filter(fits)
                .filter_map(|(g, view)| Some(Parted { along: w.globals[g].consecutive()?, view }))
                .filter(|p| p.view.scalar.bits() >= 8)
                .collect();
        }
        // In an open layout, threads take single elements, or pieces that a later layout must
        // allow.
        let open = part % 4 == 3;
        let fits = |l: &&usize| {
            let t = &self.locals[**l];
            t.visible && t.shared && (t.fixed || open) && (write || t.is_written())
        };
        let all: Vec<usize> = (0..self.locals.len()).collect();
        let along = |l: usize| usize::from(self.locals[l].fixed || part % 8 == 3);
        let whole = |l: &usize| Parted { view: self.whole_tensor(*l, 0), along: along(*l) };
        all.iter().filter(fits).map(whole).collect()
    }

    /// The number of elements of each thread.
    fn width(&self, of: &Parted, width: u8) -> i64 {
        let open = matches!(of.view.owner, Owner::Local(l) if !self.locals[l].fixed);
        // The neighbors in an open tensor are not known yet.
        let widths = if open { [1, 2, 1, 1] } else { [8, 4, 2, 1] };
        widths[usize::from(width) % 4].min(128 / of.view.scalar.bits())
    }

    /// The part of a thread. If there are fewer parts than threads, also the number of threads with
    /// a part.
    fn share(
        &self,
        w: &Writer,
        of: &Parted,
        (n, shift, which): (i64, u8, u8),
    ) -> Option<(View, Option<i64>)> {
        let View { text, shape, .. } = &of.view;
        let (r, c) = *shape;
        let length = if of.along == 1 { c } else { r };
        if length % n != 0 {
            return None;
        }
        let parts = r * c / n;
        let t = w.threads;
        let (e, inside) = match parts / t {
            // The verifier does not see through a division that the condition bounds the thread
            // index.
            0 => (format!("(@t % {parts})"), Some(parts)),
            rounds => {
                let own = match shift {
                    0 => "@t".to_owned(),
                    s => {
                        format!("(@t + {}) % {t}", [1, 16, t / 2, 32, 3, 7, 5][usize::from(s) % 7])
                    }
                };
                match i64::from(which) % rounds {
                    0 => (own, None),
                    m => (format!("({own} + {})", m * t), None),
                }
            }
        };
        let e = if e.contains(' ') && !e.ends_with(')') { format!("({e})") } else { e };
        let (tile, at, shape) = match of.along {
            1 => (format!("[1,{n}]"), format!("{e} / {0}, {e} % {0}", c / n), (1, n)),
            _ => (format!("[{n},1]"), format!("{e} % {0}, {e} / {0}", r / n), (n, 1)),
        };
        let stage = of.view.stage;
        let owner: Owner = of.view.owner;
        let text = format!("{text}.tile({tile})[{at}]");
        Some((View { text, shape, owner, stage, ..of.view.clone() }, inside))
    }
}
