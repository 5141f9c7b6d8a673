//! Tells the user how to write a product that no instruction computes as it stands: summed in a
//! type that instructions for its factors have (`acc=`), with factors converted to a type that has
//! all of their values, or decomposed for an architecture that has such instructions.

use super::graph::{Graph, Input, Step};
use super::pattern;
use super::scalars;
use crate::access::matmul_atoms::matmul_rows;
use crate::strategies::candidates::Choosing;
use carbyne_atoms::{Arch, AtomOp, AtomTable};
use carbyne_ir::ast::{SpecKind, UnaryOp};
use carbyne_ir::program::{SpecId, TensorId};
use carbyne_ir::scalar::Scalar;

/// Types that factors are converted to, those that are multiplied fastest first.
const CONVERTED: [Scalar; 5] = [Scalar::F16, Scalar::Bf16, Scalar::Tf32, Scalar::F32, Scalar::F64];

impl Choosing<'_> {
    fn casts(&self, from: Scalar, to: Scalar) -> bool {
        let casts = self.table.implementing(SpecKind::Unary(UnaryOp::Cast));
        from == to
            || casts
                .filter(|a| a.group == 1 && a.op == AtomOp::Unary(UnaryOp::Cast))
                .any(|a| matches!(&a.operands[..], [s, d] if s.is_of(from) && d.is_of(to)))
    }

    /// The type to which factors are to be converted, and that in which the product is summed up
    /// then: at least as precise as the one that is asked for.
    fn convertible(&self, factors: [Scalar; 2], acc: Scalar) -> Option<(Scalar, Scalar)> {
        CONVERTED.into_iter().find_map(|to| {
            let sum = if to == Scalar::F64 { Scalar::F64 } else { Scalar::F32 };
            let fits = factors.iter().all(|s| to.holds(*s) && self.casts(*s, to));
            let precise = acc != Scalar::F64 || sum == Scalar::F64;
            let wide = acc.is_float() || acc.bits() <= 32;
            let rows = || !matmul_rows(self.table, to, to, sum).is_empty();
            (fits && precise && wide && rows()).then_some((to, sum))
        })
    }

    /// What to write instead of a product that no instruction computes as it stands.
    pub(super) fn multiplied(
        &self,
        id: SpecId,
        [a, b, c]: [TensorId; 3],
        acc: Scalar,
    ) -> Option<String> {
        let (p, spec) = (self.program, &self.program.specs[id]);
        let [sa, sb, sc] = [a, b, c].map(|t| p.scalar_of(t));
        let others = [Scalar::F32, Scalar::F64, Scalar::I32];
        let other = others.into_iter().find(|s| {
            s.is_float() == acc.is_float() && !matmul_rows(self.table, sa, sb, *s).is_empty()
        });
        let converted = self.convertible([sa, sb], acc);
        // What is less precise than was asked for is the last resort.
        if let Some(other) = other.filter(|o| o.bits() >= acc.bits() || converted.is_none()) {
            return Some(format!("write `acc={other}`, in which {} sums {sa}", self.table.arch));
        }
        let Some((to, sum)) = converted else {
            let has = |a: &&Arch| !matmul_rows(&AtomTable::new(**a), sa, sb, acc).is_empty();
            let all: Vec<&str> = Arch::ALL.iter().filter(has).map(|a| a.as_str()).collect();
            return (!all.is_empty()).then(|| {
                format!("decompose for an architecture that has them: {}", all.join(", "))
            });
        };
        let [left, right] = [a, b].map(|t| match p.scalar_of(t) == to {
            true => p.tensor_name(t),
            false => format!("cast({}, {to})", p.tensor_name(t)),
        });
        let (result, product) = (p.tensor_name(c), format!("matmul({left}, {right})"));
        let value = if sc == sum { product } else { format!("cast({product}, {sc})") };
        let name = spec.name.as_ref().map_or(String::new(), |n| format!("@{n} "));
        let head = format!("Spec {name}({}, {}) -> ({result})", p.tensor_name(a), p.tensor_name(b));
        Some(format!(
            "convert both factors, and write `{head} means {{ {result} = {value} }}`{}",
            exact(acc, sum)
        ))
    }
}

impl Choosing<'_> {
    /// The same of a product among other steps.
    pub(super) fn unmultiplied(&self, graph: &Graph) -> Option<String> {
        let product = |s: &&Step| s.kind.is_product();
        graph.steps.iter().filter(product).find_map(|step| {
            let [Input::Value(a), Input::Value(b)] = step.inputs[..] else { return None };
            let [sa, sb] = [a, b].map(|v| scalars::scalar_of(graph, v));
            let acc = step.scalar.unwrap_or_else(|| pattern::accumulates(graph, step));
            if !matmul_rows(self.table, sa, sb, acc).is_empty() {
                return None;
            }
            let (to, sum) = self.convertible([sa, sb], acc)?;
            let [left, right] = [sa, sb].map(|s| match s == to {
                true => "..".to_owned(),
                false => format!("cast(.., {to})"),
            });
            let product = format!("matmul({left}, {right})");
            let value = if acc == sum { product } else { format!("cast({product}, {acc})") };
            Some(format!(
                "nothing multiplies {sa} and {sb} on {}; convert both factors, and write the \
                 product as `{value}`{}",
                self.table.arch,
                exact(acc, sum)
            ))
        })
    }
}

/// Up to where sums of integers are what they would be as integers.
fn exact(acc: Scalar, sum: Scalar) -> &'static str {
    match (acc.is_float(), sum) {
        (true, _) => "",
        (false, Scalar::F64) => "; its sums are exact up to 2^53",
        (false, _) => "; its sums are exact up to 2^24",
    }
}
