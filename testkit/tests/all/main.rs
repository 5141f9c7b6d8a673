//! Tests of the text format on generated modules, in one program so that they are linked once.

mod coverage;
mod ids;
mod text_properties;
