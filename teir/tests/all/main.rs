//! Tests TEIR: records, rules, semantics, lowering and the examples.

mod draw;
mod examples;
mod lowering;
mod records;
mod reference;
mod rules;
