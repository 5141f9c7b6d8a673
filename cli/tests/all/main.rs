//! Tests of the command line, one program so that they link once.

mod abi;
mod against;
mod annotate;
mod atoms;
mod bad_input;
mod calculator;
mod carbyne1;
mod certificates;
mod damaged;
mod descriptors;
mod docs;
mod draw;
mod examples;
mod expand;
mod explain;
mod filetests;
mod golden;
mod imports;
mod language;
mod numpy;
mod outputs;
mod pairs;
mod run;
mod streams;
mod support;
mod tuned;
