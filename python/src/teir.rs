//! Defines the Python type of an operation in TEIR, the Tiled Execution IR: it checks the
//! operation, lowers it to a program of carbyne, and executes it as TEIR's specification describes
//! it.

use carbyne_teir::{
    Checked, DataType, Element, Operation, Tensor, Violations, execute, lower, lower_to_spec,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

pyo3::import_exception!(carbyne.teir, Error);

/// Violations as an exception of Python: the text for people, and all of them as JSON.
fn refused(errors: &Violations) -> PyErr {
    let one = |v: &carbyne_teir::Violation| {
        json!({
            "code": v.code.as_str(),
            "place": v.place.to_string(),
            "found": v.found,
            "wanted": v.wanted,
            "help": v.help,
        })
    };
    let list: Value = errors.0.iter().map(one).collect();
    Error::new_err((errors.to_string(), list.to_string()))
}

/// A checked operation.
#[pyclass(frozen, name = "Teir", module = "carbyne._native")]
pub(crate) struct Teir {
    operation: Operation,
    checked: Checked,
}

/// Elements in the byte order of this machine.
trait Bytes: Element {
    fn read(bytes: &[u8]) -> Vec<Self>;
    fn write(all: &[Self]) -> Vec<u8>;
}

macro_rules! bytes {
    ($($T:ty),*) => {$(
        impl Bytes for $T {
            fn read(bytes: &[u8]) -> Vec<Self> {
                let (chunks, _) = bytes.as_chunks();
                chunks.iter().map(|chunk| Self::from_ne_bytes(*chunk)).collect()
            }

            fn write(all: &[Self]) -> Vec<u8> {
                all.iter().flat_map(|x| x.to_ne_bytes()).collect()
            }
        }
    )*};
}

bytes!(f32, f64);

impl Teir {
    fn executed<T: Bytes>(&self, arrays: [&[u8]; 3]) -> Result<Vec<u8>, Violations> {
        let [in0, in1, mut out] = arrays.map(T::read);
        execute(&self.checked, &in0, &in1, &mut out)?;
        Ok(T::write(&out))
    }
}

#[pymethods]
impl Teir {
    #[new]
    fn new(source: &str) -> PyResult<Self> {
        let operation = Operation::read(source).map_err(|e| refused(&e))?;
        let checked = operation.check().map_err(|e| refused(&e))?;
        Ok(Teir { operation, checked })
    }

    fn text(&self) -> PyResult<String> {
        self.operation.to_text().map_err(|e| refused(&e))
    }

    fn json(&self) -> String {
        self.operation.to_json()
    }

    /// The numbers of elements from the first to the last of `in0`, `in1` and `out`, gaps included;
    /// 0 for a tensor that no primitive uses.
    fn spans(&self) -> [u64; 3] {
        Tensor::ALL.map(|t| if self.checked.uses(t) { self.checked.span(t) } else { 0 })
    }

    /// The text of the program, and the parts of the schedule that it does not pin.
    fn lower(&self, to_spec: bool, pins: bool) -> PyResult<(String, Vec<String>)> {
        let lowered = match to_spec {
            true => lower_to_spec(&self.checked, pins),
            false => lower(&self.checked),
        };
        let lowered = lowered.map_err(|e| refused(&e))?;
        Ok((lowered.program.text().to_owned(), lowered.open))
    }

    /// The bytes of the output by the words of the specification.
    fn execute<'py>(
        &self,
        py: Python<'py>,
        in0: &[u8],
        in1: &[u8],
        out: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        let arrays = [in0, in1, out];
        let found = py.detach(|| match self.checked.primitives().data_type {
            DataType::Fp32 => self.executed::<f32>(arrays),
            DataType::Fp64 => self.executed::<f64>(arrays),
        });
        Ok(PyBytes::new(py, &found.map_err(|e| refused(&e))?))
    }
}
