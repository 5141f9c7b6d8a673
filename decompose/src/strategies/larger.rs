//! Explains why no larger tile of the chosen strategy was chosen ([`Larger`]).

use super::params::{self, Budget, Pins};
use super::write::Instance;
use crate::numbers::Numbers;
use crate::numbers::eval;
use crate::strategies::candidates::{Candidate, Choosing, Ranking, Reason, shown};
use crate::strategies::matched::Match;
use carbyne_ir::ast::{Attr, AttrValue, Def, Expr, ExprKind, Key};
use std::collections::BTreeMap;

/// Tiles that are spoken of.
const MOST: usize = 12;

/// What was found while instances were looked at.
pub(crate) struct Larger<'a> {
    pub m: &'a Match<'a>,
    /// All that can be, of all matches.
    pub candidates: &'a [Candidate],
    pub best: usize,
    /// Why instances of matches with such tiles cannot be.
    pub refused: &'a BTreeMap<(usize, Vec<i64>), Reason>,
    pub ranking: &'a Ranking,
    pub pins: &'a Pins,
}

/// What an attribute of the head stands for, of each mode.
fn exprs(def: &Def, key: Key) -> Vec<Expr> {
    let attrs = def.strategy.as_ref().map_or(&[][..], |s| &s.attrs);
    match Attr::among(attrs, key).map(|a| &a.value) {
        Some(AttrValue::Tuple(t)) => params::leaves(t).into_iter().cloned().collect(),
        Some(AttrValue::Word(name)) => vec![Expr::name(name)],
        _ => vec![],
    }
}

/// The tile of an instance; empty where the strategy does not say.
pub(crate) fn tile(def: &Def, numbers: &Numbers) -> Vec<i64> {
    values(def, Key::Tile, numbers)
}

/// The numbers of an instance, of warps that share its tile how many there are in all.
pub(crate) fn but_warps(def: &Def, numbers: &Numbers) -> Vec<i64> {
    let along = exprs(def, Key::Warps);
    let name = |e: &Expr| match &e.kind {
        ExprKind::Name(name) => Some(name.clone()),
        _ => None,
    };
    let names: Vec<String> = along.iter().filter_map(name).collect();
    let all = values(def, Key::Warps, numbers).into_iter().fold(1, i64::saturating_mul);
    let others = numbers.iter().filter(|(name, _)| !names.contains(name)).map(|(_, n)| *n);
    std::iter::once(all).chain(others).collect()
}

/// The numbers that an attribute of the head has in an instance.
pub(super) fn values(def: &Def, key: Key, numbers: &Numbers) -> Vec<i64> {
    let all = exprs(def, key);
    all.iter().map(|e| eval(e, numbers)).collect::<Option<_>>().unwrap_or_default()
}

impl Choosing<'_> {
    /// Tiles that are larger than the one that was chosen, each with the reason why it was not.
    pub(super) fn larger(&self, l: &Larger<'_>) -> Vec<(String, String)> {
        let (def, best) = (l.m.def, &l.candidates[l.best]);
        let own = tile(def, &best.numbers);
        let mut tiles: Vec<Vec<i64>> = vec![vec![]];
        for (e, least) in exprs(def, Key::Tile).iter().zip(&own) {
            let tried = params::tried(def, e, &best.numbers);
            let mut more: Vec<i64> = tried.into_iter().filter(|v| v > least).collect();
            more.push(*least);
            more.sort_unstable();
            let all = tiles.iter().flat_map(|t| more.iter().map(|v| [&t[..], &[*v]].concat()));
            tiles = all.take(1 << 12).collect();
        }
        tiles.retain(|t| *t != own && !t.is_empty());
        tiles.sort_by_key(|t| (t.iter().fold(1i64, |n, e| n.saturating_mul(*e)), t.clone()));
        tiles.dedup();
        let text = |t: &[i64]| t.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        tiles.iter().take(MOST).map(|t| (text(t), self.why_not(l, t))).collect()
    }

    fn why_not(&self, l: &Larger<'_>, wanted: &[i64]) -> String {
        let (m, of) = (l.m, l.candidates[l.best].of);
        let same = |c: &&Candidate| c.of == of && tile(m.def, &c.numbers) == wanted;
        let name = |c: &Candidate| shown(&Instance::of(m, &c.numbers));
        let solved = |c: &Candidate| {
            let by = name(c);
            l.ranking
                .instances
                .iter()
                .find(|r| r.by == by && (r.cycles.is_some() || r.refused.is_some()))
        };
        let all = l.candidates.iter().filter(same);
        if let Some(c) = all.clone().find(|c| solved(c).is_some()).or_else(|| all.clone().next()) {
            if c.spills {
                return "its threads need more registers than they have".to_owned();
            }
            return match solved(c).map(|r| (r.cycles, &r.refused)) {
                Some((_, Some(why))) => why.clone(),
                Some((Some(cycles), None)) => format!("{cycles:.0} cycles, {}", name(c)),
                _ => format!("at least {:.0} cycles", c.bound),
            };
        }
        if let Some(why) = l.refused.get(&(of, wanted.to_vec())) {
            return why.to_string();
        }
        let mut pins = l.pins.clone();
        pins.attrs.retain(|(key, _)| *key != Key::Tile);
        pins.attrs.push((Key::Tile, wanted.to_vec()));
        params::against(m.def, &self.given(m), &pins, Budget::new(m.file.theirs(&m.def.name.text)))
    }
}
