//! Prepares a module before layouts are chosen.

pub(crate) mod approximate;
