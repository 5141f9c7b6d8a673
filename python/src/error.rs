//! Diagnostics as exceptions of Python.

use carbyne::documents::{self, Refused};
use carbyne_embed::{Diagnostic, Diagnostics};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

pyo3::import_exception!(carbyne, Error);

/// Options of the command line that messages name, as keywords of Python.
const KEYWORDS: [(&str, &str); 9] = [
    ("`--sym NAME=VALUE`", "`symbols={'NAME': VALUE}`"),
    ("`--strategy FILE`", "`strategies=`"),
    ("`--budget N`", "`budget=`"),
    ("`carbyne decompose --budget N`", "`budget=`"),
    ("`--tensor NAME`", "`tensor=`"),
    ("`--line`", "`line=`"),
    ("`--at ", "`at="),
    ("`--blocks all`", "more blocks"),
    ("`--", "`"),
];

/// A message of the command line with keywords of Python in the places of options.
fn spoken(text: &str) -> String {
    KEYWORDS.iter().fold(text.to_owned(), |text, (option, keyword)| text.replace(option, keyword))
}

/// Diagnostics as the text for people and all of them as JSON: the arguments of `carbyne.Error`.
pub(crate) fn shown(name: &str, text: &str, list: &[Diagnostic]) -> (String, String) {
    let one = |d: &Diagnostic| Diagnostic { help: d.help.as_deref().map(spoken), ..d.clone() };
    let list: Vec<Diagnostic> = list.iter().map(one).collect();
    let documents = documents::diagnostics(name, text, &list);
    (documents::rendered(name, text, &list, false), Value::from(documents).to_string())
}

/// Errors of a program as an exception of Python.
pub(crate) fn refused(name: &str, text: &str, errors: Diagnostics) -> PyErr {
    Error::new_err(shown(name, text, &errors.into_vec()))
}

/// Turns the errors of a command into an exception of Python. A mistake outside of the program is a
/// wrong argument.
pub(crate) fn of_command(refused: &Refused) -> PyErr {
    match refused.errors.as_slice() {
        [one] if one["code"].is_null() => {
            let text = |key: &str| one[key].as_str().map(spoken);
            let message = text("message").unwrap_or_default();
            let help = text("help").map(|help| format!("; {help}")).unwrap_or_default();
            PyValueError::new_err(format!("{message}{help}"))
        }
        all => Error::new_err((spoken(&refused.rendered), Value::from(all).to_string())),
    }
}
