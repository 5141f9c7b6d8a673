//! What holds for every module that a text says, one program so that the tests link once.

mod coverage;
mod ids;
mod text_properties;
