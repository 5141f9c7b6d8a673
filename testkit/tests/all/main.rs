//! Tests the text format on generated modules. All tests are one program, so that Cargo links once.

mod coverage;
mod ids;
mod text_properties;
