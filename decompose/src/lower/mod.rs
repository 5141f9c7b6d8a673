//! Rewrites operations of a module before layouts are chosen. The only rewrite so far is
//! [`approximate`].

pub(crate) mod approximate;
