//! Gives access to the parse tree of pest, the parser generator. The functions that make the syntax
//! tree read it through [`Node`] and [`Parts`].
//!
//! Rules that exist only so that messages can name signs are skipped. If the tree differs from the
//! grammar, the result is the error `I0901`, an internal defect, never a panic.

use super::super::comments::Comments;
use super::Rule;
use crate::ast::{Name, Param};
use crate::diag::{Code, Diagnostic};
use crate::span::Span;
use pest::iterators::{Pair, Pairs};

/// A result with a boxed error, because errors are large and rare.
pub(super) type Answer<T> = Result<T, Box<Diagnostic>>;

/// Data that all nodes of one parse share.
#[derive(Copy, Clone)]
pub(super) struct Tree<'c, 's> {
    /// The offset of the parsed part in the text.
    pub(super) base: usize,
    pub(super) comments: &'c Comments<'s>,
    /// The parameters of the enclosing sub-spec.
    pub(super) params: &'c [Param],
}

impl<'c, 's> Tree<'c, 's> {
    /// The first pair of a parse.
    pub(super) fn first(self, mut pairs: Pairs<'s, Rule>) -> Answer<Node<'c, 's>> {
        match pairs.next() {
            Some(pair) => Ok(Node { tree: self, pair }),
            None => Err(internal(Span::new(self.base, self.base), "nothing")),
        }
    }
}

/// One pair of pest.
#[derive(Clone)]
pub(super) struct Node<'c, 's> {
    tree: Tree<'c, 's>,
    pair: Pair<'s, Rule>,
}

impl<'c, 's> Node<'c, 's> {
    pub(super) fn rule(&self) -> Rule {
        self.pair.as_rule()
    }

    /// The node with these parameters of the enclosing sub-spec.
    pub(super) fn with<'d>(self, params: &'d [Param]) -> Node<'d, 's>
    where
        'c: 'd,
    {
        Node { tree: Tree { params, ..self.tree }, pair: self.pair }
    }

    /// The parameters of the enclosing sub-spec.
    pub(super) fn params(&self) -> &'c [Param] {
        self.tree.params
    }

    /// The name, if it is a type parameter.
    pub(super) fn type_param(&self) -> Option<Name> {
        let name = self.name();
        is_type(self.params(), &name.text).then_some(name)
    }

    /// The text. For rules with parts it may end with blanks and comments.
    pub(super) fn text(&self) -> &'s str {
        self.pair.as_str()
    }

    /// The span, without trailing blanks and comments.
    pub(super) fn span(&self) -> Span {
        let span = self.pair.as_span();
        let (start, end) = (self.tree.base + span.start(), self.tree.base + span.end());
        Span::new(start, self.tree.comments.trimmed(start, end))
    }

    /// The name after the sigil.
    pub(super) fn without_sigil(&self) -> Name {
        Name { text: self.text().get(1..).unwrap_or("").to_owned(), span: self.span() }
    }

    /// The text as a name.
    pub(super) fn name(&self) -> Name {
        Name { text: self.text().trim_end().to_owned(), span: self.span() }
    }

    /// The parts of the node.
    pub(super) fn parts(self) -> Parts<'c, 's> {
        let span = self.pair.as_span();
        let whole = Span::new(self.tree.base + span.start(), self.tree.base + span.end());
        Parts { tree: self.tree, pairs: self.pair.into_inner(), whole }
    }
}

/// Whether one of the parameters is a type with this name.
pub(super) fn is_type(params: &[Param], name: &str) -> bool {
    params.iter().any(|p| p.is_type && p.name.text == name)
}

/// The remaining parts of a node.
pub(super) struct Parts<'c, 's> {
    tree: Tree<'c, 's>,
    pairs: Pairs<'s, Rule>,
    /// The span of the node, possibly with trailing blanks and comments.
    whole: Span,
}

impl<'c, 's> Parts<'c, 's> {
    /// The span of the whole node.
    pub(super) fn whole(&self) -> Span {
        Span { end: self.trimmed(self.whole), ..self.whole }
    }

    /// The end of `span` without trailing blanks and comments.
    pub(super) fn trimmed(&self, span: Span) -> u32 {
        self.tree.comments.trimmed(span.start as usize, span.end as usize) as u32
    }

    /// Whether no parts remain.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.len() == 0
    }

    /// The next part of any rule.
    pub(super) fn any(&mut self) -> Option<Node<'c, 's>> {
        let pair = self.pairs.by_ref().find(|p| !is_sign(p.as_rule()))?;
        Some(Node { tree: self.tree, pair })
    }

    /// The next part, if its rule is `rule`.
    pub(super) fn take(&mut self, rule: Rule) -> Option<Node<'c, 's>> {
        while self.pairs.peek().is_some_and(|p| is_sign(p.as_rule())) {
            self.pairs.next();
        }
        if self.pairs.peek()?.as_rule() != rule {
            return None;
        }
        self.any()
    }

    /// The next part, which must be of rule `rule`.
    pub(super) fn next(&mut self, rule: Rule) -> Answer<Node<'c, 's>> {
        self.take(rule).ok_or_else(|| internal(self.whole(), super::errors::describe(rule)))
    }

    /// The next part of any rule, which must exist.
    pub(super) fn some(&mut self) -> Answer<Node<'c, 's>> {
        self.any().ok_or_else(|| internal(self.whole(), "more"))
    }
}

/// Whether the rule only names a sign or a keyword.
pub(super) fn is_sign(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::lparen
            | Rule::rparen
            | Rule::rbracket
            | Rule::lbrace
            | Rule::rbrace
            | Rule::comma
            | Rule::colon
            | Rule::semicolon
            | Rule::dot
            | Rule::equals
            | Rule::less
            | Rule::plus_equals
            | Rule::and
            | Rule::arrow
            | Rule::exec_end
            | Rule::follow
            | Rule::until
            | Rule::kw_in
            | Rule::kw_splits
            | Rule::kw_stages
            | Rule::kw_def
            | Rule::kw_strategy
            | Rule::kw_step
            | Rule::kw_where
            | Rule::kw_usually
            | Rule::kw_import
            | Rule::kw_sqrt
            | Rule::kw_transpose
            | Rule::kw_permute
            | Rule::kw_iota
            | Rule::kw_plus
            | Rule::kw_pad
            | Rule::kw_carbyne
            | Rule::kw_else
            | Rule::kw_let
            | Rule::kw_sym
            | Rule::kw_typical
            | Rule::kw_indices
            | Rule::kw_allocate
            | Rule::kw_counter
            | Rule::kw_for
            | Rule::kw_if
            | Rule::kw_barrier
            | Rule::kw_tv
            | Rule::kw_over
            | Rule::kw_swizzle
            | Rule::kw_align
            | Rule::kw_at
            | Rule::kw_reuses
            | Rule::kw_after
            | Rule::kw_tile
            | Rule::kw_reshape
            | Rule::kw_scalar
            | Rule::kw_tensormap
            | Rule::kw_peer
            | Rule::kw_elect
    )
}

/// The error for a parse tree that differs from the grammar.
pub(super) fn internal(span: Span, wanted: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(Code::Internal, span, "the parser does not understand its own grammar")
            .label(format!("expected {wanted}"))
            .help("this is a defect of carbyne: report it with the text"),
    )
}
