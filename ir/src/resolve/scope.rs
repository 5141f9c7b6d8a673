//! Keeps the scopes ([`Scopes`]): the names of tensors, threads, numbers and kernels that a
//! statement may use, each with its definition.
//!
//! Invariant: a name cannot hide another name of its kind. The kinds are tensors (`%`), threads
//! (`#`), numbers (`@i`, or bare `k`), and kernels with sub-specs (`@`).

use crate::diag::apart;
use crate::expr::Dim;
use crate::program::{TensorId, ThreadsId};
use crate::span::Span;
use std::collections::HashMap;

/// The kind of a name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Sigil {
    Data,
    Thread,
    Index,
    /// Kernels and sub-specs. The scope only checks that their names differ.
    Kernel,
}

impl Sigil {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Sigil::Data => "%",
            Sigil::Thread => "#",
            Sigil::Index => "",
            Sigil::Kernel => "@",
        }
    }
}

/// The definition of a name.
#[derive(Copy, Clone, Debug)]
pub(super) enum Binding {
    Tensor(TensorId),
    Threads(ThreadsId),
    Index(Dim),
    /// A `let` whose values as an integer and as a real number differ, as an index into the list of
    /// constants.
    Constant(usize),
    /// A failed definition; uses report no error.
    Broken,
}

#[derive(Default)]
pub(super) struct Scopes {
    names: HashMap<(Sigil, String), (Span, Binding)>,
    /// The names in each open scope, which are removed at its end.
    open: Vec<Vec<(Sigil, String)>>,
    /// The places of names whose block has ended, until the outermost block ends.
    ended: HashMap<(Sigil, String), Span>,
}

impl Scopes {
    pub(super) fn enter(&mut self) {
        self.open.push(vec![]);
    }

    /// Whether the current scope is the top level.
    pub(super) fn is_top(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn leave(&mut self) {
        for key in self.open.pop().unwrap_or_default() {
            if let Some((span, _)) = self.names.remove(&key) {
                self.ended.insert(key, span);
            }
        }
        if self.is_top() {
            self.ended.clear();
        }
    }

    /// The place of a definition whose block has ended.
    pub(super) fn ended_at(&self, sigil: Sigil, name: &str) -> Option<Span> {
        self.ended.get(&(sigil, name.to_owned())).copied()
    }

    /// Binds a name. If it is already in scope, returns the place of its definition.
    pub(super) fn bind(
        &mut self,
        sigil: Sigil,
        name: &str,
        span: Span,
        binding: Binding,
    ) -> Result<(), Span> {
        let key = (sigil, name.to_owned());
        if let Some((first, _)) = self.names.get(&key) {
            return Err(*first);
        }
        if let Some(scope) = self.open.last_mut() {
            scope.push(key.clone());
        }
        self.names.insert(key, (span, binding));
        Ok(())
    }

    /// Gives a name in scope another definition.
    pub(super) fn rebind(&mut self, sigil: Sigil, name: &str, binding: Binding) {
        if let Some((_, old)) = self.names.get_mut(&(sigil, name.to_owned())) {
            *old = binding;
        }
    }

    /// Removes a name of the top level.
    pub(super) fn unbind(&mut self, sigil: Sigil, name: &str) {
        self.names.remove(&(sigil, name.to_owned()));
    }

    pub(super) fn get(&self, sigil: Sigil, name: &str) -> Option<Binding> {
        self.names.get(&(sigil, name.to_owned())).map(|(_, b)| *b)
    }

    /// The place of a definition in scope.
    pub(super) fn defined_at(&self, sigil: Sigil, name: &str) -> Option<Span> {
        self.names.get(&(sigil, name.to_owned())).map(|(span, _)| *span)
    }

    /// The name in scope that is most similar to another one in scope.
    pub(super) fn nearest_other(&self, sigil: Sigil, name: &str) -> Option<String> {
        self.nearest_but(sigil, name, Some(name))
    }

    /// The name in scope that is most similar to an undefined one.
    pub(super) fn nearest(&self, sigil: Sigil, name: &str) -> Option<String> {
        self.nearest_but(sigil, name, None)
    }

    fn nearest_but(&self, sigil: Sigil, name: &str, not: Option<&str>) -> Option<String> {
        let mut best: Option<((usize, usize), &String)> = None;
        let mut keys: Vec<&(Sigil, String)> = self.names.keys().collect();
        keys.sort_by(|a, b| a.1.cmp(&b.1));
        for (s, candidate) in keys {
            if *s != sigil
                || Some(candidate.as_str()) == not
                || candidate.len() > 64
                || name.len() > 64
            {
                continue;
            }
            let d = apart(name, candidate);
            if d.0 <= 2 && d.0 < name.len() && best.is_none_or(|(b, _)| d < b) {
                best = Some((d, candidate));
            }
        }
        best.map(|(_, n)| n.clone())
    }
}
