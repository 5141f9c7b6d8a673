//! Diagnostics as exceptions of Python.

use carbyne::documents;
use carbyne_embed::{Diagnostic, Diagnostics};
use pyo3::prelude::*;

pyo3::import_exception!(carbyne, Error);

/// Diagnostics as the text for people and all of them as JSON: the arguments of `carbyne.Error`.
pub(crate) fn shown(name: &str, text: &str, list: &[Diagnostic]) -> (String, String) {
    let documents = documents::diagnostics(name, text, list);
    (documents::rendered(name, text, list, false), serde_json::Value::from(documents).to_string())
}

/// Errors of a program as an exception of Python.
pub(crate) fn refused(name: &str, text: &str, errors: Diagnostics) -> PyErr {
    Error::new_err(shown(name, text, &errors.into_vec()))
}
