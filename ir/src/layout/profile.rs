//! Defines [`Profile`], the nesting of a tuple without the numbers, `((*,*),*)`.
//!
//! A layout keeps one profile for its shape and its stride, so the two cannot differ. Profiles of
//! up to 32 leaves and parentheses need no allocation.
//!
//! Invariant: the tokens are one leaf or one balanced tuple.

use super::LayoutError;
use crate::tuple::{IntTuple, MAX_DEPTH, MAX_NODES};
use smallvec::SmallVec;
use std::ops::Range;

#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Token {
    Leaf,
    Open,
    Close,
}

/// The nesting of a tuple.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Profile {
    tokens: SmallVec<[Token; 32]>,
}

impl Clone for Profile {
    fn clone(&self) -> Self {
        // A copy of bytes. The derived `clone` would clone token by token.
        Profile { tokens: SmallVec::from_slice(&self.tokens) }
    }
}

/// The ranges of one mode among the tokens and among the leaves.
pub(crate) struct ModeAt {
    pub(crate) tokens: Range<usize>,
    pub(crate) leaves: Range<usize>,
}

impl Profile {
    /// The profile of a number.
    #[must_use]
    #[inline]
    pub fn leaf() -> Self {
        Profile { tokens: SmallVec::from_slice(&[Token::Leaf]) }
    }

    /// The profile of a tuple of `n` numbers.
    #[must_use]
    #[inline]
    pub fn flat(n: usize) -> Self {
        const FLAT: [Token; 32] = {
            let mut tokens = [Token::Leaf; 32];
            tokens[0] = Token::Open;
            tokens
        };
        if n + 2 <= FLAT.len() {
            let mut tokens = SmallVec::from(FLAT);
            tokens[n + 1] = Token::Close;
            tokens.truncate(n + 2);
            return Profile { tokens };
        }
        let mut tokens = SmallVec::from_elem(Token::Leaf, n + 2);
        tokens[0] = Token::Open;
        tokens[n + 1] = Token::Close;
        Profile { tokens }
    }

    /// The profile of a tuple. Calls `leaves` on each leaf in order.
    pub(crate) fn of_tuple<L: Copy>(tuple: &IntTuple<L>, leaves: &mut impl FnMut(L)) -> Self {
        fn walk<L: Copy>(t: &IntTuple<L>, out: &mut Builder, leaves: &mut impl FnMut(L)) {
            match t {
                IntTuple::Leaf(leaf) => {
                    out.leaf();
                    leaves(*leaf);
                }
                IntTuple::Tuple(modes) => {
                    out.open();
                    modes.iter().for_each(|m| walk(m, out, leaves));
                    out.close();
                }
            }
        }
        let mut out = Builder::default();
        walk(tuple, &mut out, leaves);
        out.done()
    }

    /// The tuple with this nesting and these leaves; their number must match.
    pub(crate) fn tuple<L: Copy>(&self, mut leaves: impl Iterator<Item = L>) -> IntTuple<L> {
        let mut open: Vec<Vec<IntTuple<L>>> = vec![vec![]];
        for token in &self.tokens {
            let done = match token {
                Token::Leaf => leaves.next().map(IntTuple::Leaf),
                Token::Open => {
                    open.push(vec![]);
                    None
                }
                Token::Close => open.pop().map(IntTuple::Tuple),
            };
            if let (Some(done), Some(last)) = (done, open.last_mut()) {
                last.push(done);
            }
        }
        let one = open.pop().and_then(|mut modes| modes.pop());
        one.unwrap_or(IntTuple::Tuple(vec![])) // There is one: the tokens are balanced.
    }

    /// The modes of the outermost tuple; a number is its own only mode.
    pub(crate) fn modes(&self) -> impl Iterator<Item = ModeAt> + '_ {
        // The range within the outer parentheses, or everything.
        let (mut at, end) =
            if self.is_leaf() { (0, 1) } else { (1, self.tokens.len().saturating_sub(1)) };
        let mut leaf = 0;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (start, first) = (at, leaf);
            let mut depth = 0usize;
            loop {
                match self.tokens.get(at)? {
                    Token::Leaf => leaf += 1,
                    Token::Open => depth += 1,
                    Token::Close => depth = depth.saturating_sub(1),
                }
                at += 1;
                if depth == 0 {
                    return Some(ModeAt { tokens: start..at, leaves: first..leaf });
                }
            }
        })
    }

    /// The profile of one mode.
    pub(crate) fn part(&self, tokens: Range<usize>) -> Self {
        Profile { tokens: SmallVec::from_slice(&self.tokens[tokens]) }
    }

    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// Whether the profile is that of a number.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        self.tokens.len() == 1
    }

    /// The number of modes of the outermost tuple; 1 for a number.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.modes().count()
    }

    /// The depth of nesting: 0 for a number, 1 for a flat tuple.
    #[must_use]
    pub fn depth(&self) -> usize {
        let (mut depth, mut deepest) = (0usize, 0);
        for token in &self.tokens {
            match token {
                Token::Leaf => {}
                Token::Open => depth += 1,
                Token::Close => depth = depth.saturating_sub(1),
            }
            deepest = deepest.max(depth);
        }
        deepest
    }

    /// Refuses profiles that nest too deep or have too many nodes.
    #[inline]
    pub(crate) fn check_limits(&self) -> Result<(), LayoutError> {
        // So few tokens cannot exceed a limit.
        if self.tokens.len() <= MAX_DEPTH {
            return Ok(());
        }
        let n_closed = self.tokens.iter().filter(|t| **t == Token::Close).count();
        if self.tokens.len() - n_closed > MAX_NODES {
            return Err(LayoutError::TooLarge { what: "a tuple", limit: MAX_NODES });
        }
        if self.depth() > MAX_DEPTH {
            return Err(LayoutError::TooDeep { limit: MAX_DEPTH });
        }
        Ok(())
    }
}

/// Builds a profile from left to right.
#[derive(Default)]
pub(crate) struct Builder {
    tokens: SmallVec<[Token; 32]>,
}

impl Builder {
    #[inline]
    pub(crate) fn leaf(&mut self) {
        self.tokens.push(Token::Leaf);
    }

    #[inline]
    pub(crate) fn open(&mut self) {
        self.tokens.push(Token::Open);
    }

    #[inline]
    pub(crate) fn close(&mut self) {
        self.tokens.push(Token::Close);
    }

    /// One leaf, or a flat tuple of any other number of leaves.
    #[inline]
    pub(crate) fn leaves(&mut self, n: usize) {
        if n == 1 {
            return self.leaf();
        }
        self.open();
        (0..n).for_each(|_| self.leaf());
        self.close();
    }

    pub(crate) fn all(&mut self, profile: &Profile) {
        self.tokens.extend_from_slice(&profile.tokens);
    }

    #[inline]
    pub(crate) fn done(self) -> Profile {
        Profile { tokens: self.tokens }
    }
}
