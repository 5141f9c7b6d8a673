//! Converts diagnostics to Python exceptions. Messages and helps name Python keywords instead of
//! options of the command line: `symbols=` instead of `--sym`.

use carbyne::documents::{self, Refused};
use carbyne_embed::{Diagnostic, Diagnostics};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

pyo3::import_exception!(carbyne, Error);

/// Command-line options in messages, and the corresponding Python keywords.
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

/// Replaces command-line options in a message by Python keywords.
fn spoken(text: &str) -> String {
    KEYWORDS.iter().fold(text.to_owned(), |text, (option, keyword)| text.replace(option, keyword))
}

/// The arguments of `carbyne.Error`: the diagnostics as text for people, and as JSON.
pub(crate) fn shown(name: &str, text: &str, list: &[Diagnostic]) -> (String, String) {
    let one = |d: &Diagnostic| Diagnostic { help: d.help.as_deref().map(spoken), ..d.clone() };
    let list: Vec<Diagnostic> = list.iter().map(one).collect();
    let documents = documents::diagnostics(name, text, &list);
    (documents::rendered(name, text, &list, false), Value::from(documents).to_string())
}

/// Converts errors of a program to a Python exception.
pub(crate) fn refused(name: &str, text: &str, errors: Diagnostics) -> PyErr {
    Error::new_err(shown(name, text, &errors.into_vec()))
}

/// Converts errors of a command to a Python exception. An error outside of the program is a wrong
/// argument.
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
