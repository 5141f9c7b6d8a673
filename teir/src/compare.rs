//! Compares a program with the operation of TEIR (the Tiled Execution IR) from which it was
//! lowered. [`crate::execute`] executes the operation, and the simulator executes the program. Both
//! get equal small integers, whose sums and products are exact, so all elements of the output must
//! be equal. The program may be decomposed further.

use crate::check::Checked;
use crate::lowered::{Lowered, NAME, refused};
use crate::record::{DataType, Tensor};
use crate::semantics::{Element, MAX_STEPS, execute, is_small, too_large};
use crate::violation::{Code, Field, Place, Violation, Violations};
use carbyne_embed::{Array, AtomTable, Checked as Program, Code as Limit, Diagnostics, Options};

/// Executes an operation by its specification and `program`, which is what [`crate::lower`] gave or
/// what that was decomposed to, in the simulator. Inputs are drawn by a seed, from -2 to 2. Returns
/// the number of elements that were compared.
///
/// # Errors
/// `TEIR12` for an operation or a program that is too large to execute, `TEIR16` for other errors
/// of the simulator, `TEIR17` for the first element of the output that differs.
pub fn compare(
    operation: &Checked,
    lowered: &Lowered,
    program: &Program,
    table: &AtomTable,
    seed: u64,
) -> Result<u64, Violations> {
    is_comparable(operation)?;
    let spans = used_spans(operation);
    let mut state = seed;
    let drawn = spans.map(|span| (0..span).map(|_| integer(&mut state)).collect::<Vec<f64>>());
    // The simulator refuses what is too large before it begins.
    let found = simulated(operation, lowered, program, table, &drawn)?;
    let wanted = match operation.primitives().data_type {
        DataType::Fp32 => executed(operation, &drawn, |x| x as f32, f64::from)?,
        DataType::Fp64 => executed(operation, &drawn, |x| x, |x: f64| x)?,
    };
    let mut compared = 0;
    for (offset, found) in lowered.offsets(Tensor::Out).zip(found.numbers()) {
        let wanted = wanted[offset as usize];
        if found != wanted {
            let place = Place::Field(Field::StridesOut);
            let found = format!("{found} at element {offset} of out");
            let help = "report this program: it is a defect of carbyne-teir";
            let wanted = wanted.to_string();
            return Err(Violation::new(Code::Differs, place, found, wanted, help).into());
        }
        compared += 1;
    }
    Ok(compared)
}

/// Whether an operation is small enough for [`compare()`].
///
/// # Errors
/// `TEIR12` for too many iterations, and for each tensor that spans too many elements.
pub fn is_comparable(operation: &Checked) -> Result<(), Violations> {
    let mut wrong: Vec<Violation> = is_small(operation).err().into_iter().collect();
    for (tensor, span) in Tensor::ALL.into_iter().zip(used_spans(operation)) {
        if span > MAX_STEPS {
            let found = format!("{span} elements from first to last of {}", tensor.as_str());
            wrong.push(too_large(tensor.strides(), found, MAX_STEPS));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Violations(wrong)) }
}

/// The span of each tensor; 0 for a tensor that no primitive uses.
fn used_spans(operation: &Checked) -> [u64; 3] {
    Tensor::ALL.map(|tensor| if operation.uses(tensor) { operation.span(tensor) } else { 0 })
}

/// An integer from -2 to 2, by the linear congruential generator of D. Knuth's MMIX.
fn integer(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    ((*state >> 33) % 5) as f64 - 2.0
}

/// The output by the specification.
fn executed<T: Element>(
    operation: &Checked,
    drawn: &[Vec<f64>; 3],
    narrow: fn(f64) -> T,
    widen: fn(T) -> f64,
) -> Result<Vec<f64>, Violations> {
    let [in0, in1, mut out] =
        drawn.each_ref().map(|all| all.iter().map(|x| narrow(*x)).collect::<Vec<T>>());
    execute(operation, &in0, &in1, &mut out)?;
    Ok(out.into_iter().map(widen).collect())
}

/// The violation for errors of the simulator.
fn unexecuted(errors: &Diagnostics) -> Violation {
    let limits = [Limit::StepBudget, Limit::TooLarge, Limit::NotDecomposed];
    match errors.iter().find(|d| limits.contains(&d.code)) {
        Some(limit) => {
            let (field, wanted) = (Field::DimSizes, "a program that the simulator executes whole");
            let help = "make sizes smaller";
            let found = limit.message.clone();
            Violation::new(Code::TooLarge, Place::Field(field), found, wanted, help)
        }
        None => refused(errors),
    }
}

/// The output of the program.
fn simulated(
    operation: &Checked,
    lowered: &Lowered,
    program: &Program,
    table: &AtomTable,
    drawn: &[Vec<f64>; 3],
) -> Result<Array, Violation> {
    let scalar = operation.primitives().data_type.scalar();
    let refuse = |found: String| {
        let (wanted, help) =
            ("an output of the simulator", "report it: it is a defect of carbyne-teir");
        Violation::new(Code::Refused, Place::Operation, found, wanted, help)
    };
    let mut options = Options { all_blocks: true, ..Options::default() };
    for tensor in Tensor::ALL.into_iter().filter(|t| operation.uses(*t)) {
        let elements = &drawn[tensor as usize];
        let numbers: Vec<f64> =
            lowered.offsets(tensor).map(|offset| elements[offset as usize]).collect();
        let array = Array::from_numbers(scalar, &lowered.shape(tensor), &numbers);
        let array = array.map_err(|e| refuse(e.to_string()))?;
        options.arrays.insert(tensor.as_str().to_owned(), array);
    }
    let report = program.simulate(table, &options).map_err(|errors| unexecuted(&errors))?;
    let output = report.outputs.get(Tensor::Out.as_str());
    output.ok_or_else(|| refuse(format!("no whole output of @{NAME}")))
}
