//! Reads the inputs of the commands that execute programs (`simulate`, `run`, `tune`): tensors from
//! `.npy` files, and numbers and the values of symbols from the command line. It also writes output
//! tensors to `.npy` files.

use crate::args::{Data, InputArgs};
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, input, output, regular_file};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::Program;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use carbyne_simulate::{Array, ArrayError, Inputs, Options, Outputs};
use std::collections::BTreeMap;
use std::io::Read;
use std::num::{IntErrorKind, ParseIntError};
use std::path::Path;

/// Converts inputs and symbols of the command line to options of the simulator.
pub(crate) fn options(
    args: &InputArgs,
    program: &Program,
    source: &Source,
) -> Result<Options, Failure> {
    let inputs = match args.ints {
        Some(seed) => Inputs::Ints(seed),
        None => Inputs::Seed(args.seed.unwrap_or(0)),
    };
    let mut options = Options { inputs, ..Options::default() };
    for given in &args.symbols {
        let (name, value) = assignment(given, "--sym")?;
        if !program.symbols.iter().any(|v| program.arena.var_info(*v).name == name) {
            return Err(Failure::usage_help(
                format!("the program has no symbol `{}`", short(name)),
                "use the name of a symbol that the program declares with `sym`",
            ));
        }
        let value = value.parse().map_err(|e: ParseIntError| match e.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                let text = format!("`{}` cannot be {}", short(name), short(value));
                let d = Diagnostic::new(Code::SymbolValue, Span::default(), text);
                Failure::one(source, d.help("give the symbol a value that fits 64 bits"))
            }
            _ => Failure::usage(format!("the value in `--sym {}` is not an integer", short(given))),
        })?;
        if options.symbols.insert(name.to_owned(), value).is_some() {
            return Err(Failure::usage(format!("`--sym` gives `{}` twice", short(name))));
        }
    }
    for given in &args.inputs {
        let (name, path) = assignment(given, "--in")?;
        let (name, path) = known(program, name, path)?;
        let array = load(program, source, &options.symbols, name, path)?;
        if options.arrays.insert(name.to_owned(), array).is_some() {
            return Err(Failure::usage(format!("`--in` gives `%{}` twice", short(name))));
        }
    }
    Ok(options)
}

/// The tensors to write, with their files.
pub(crate) fn wanted<'a>(
    args: &'a Data,
    program: &Program,
) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    args.outputs
        .iter()
        .map(|o| assignment(o, "--out").and_then(|(name, path)| known(program, name, path)))
        .collect()
}

/// Splits `NAME=VALUE`. The name may begin with `%`.
fn assignment<'a>(given: &'a str, option: &str) -> Result<(&'a str, &'a str), Failure> {
    match given.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.strip_prefix('%').unwrap_or(name), value))
        }
        _ => Err(Failure::usage(format!("`{option} {}` is not NAME=VALUE", short(given)))),
    }
}

/// Finds a tensor of the caller by name, and returns the value assigned to it.
fn known<'a>(
    program: &Program,
    name: &'a str,
    path: &'a str,
) -> Result<(&'a str, &'a str), Failure> {
    let names: Vec<&str> =
        program.params.iter().map(|b| program.buffers[*b].name.as_str()).collect();
    if names.contains(&name) {
        return Ok((name, path));
    }
    let names: Vec<String> = names.iter().map(|n| format!("`%{n}`")).collect();
    Err(Failure::usage_help(
        format!("the program has no tensor `%{}`", short(name)),
        format!("use one of its tensors: {}", names.join(", ")),
    ))
}

/// Maximum number of elements of an array; the simulator returns no larger arrays.
const MAX_ELEMENTS: u64 = 1 << 28;
/// Bytes of the widest element type in a file.
const MAX_BYTES: u64 = 8;
/// Maximum number of bytes of a `.npy` file besides its elements.
const MAX_HEADER: u64 = 1 << 16;

/// Reads a tensor. If its size depends on symbols, their values limit the size.
fn load(
    program: &Program,
    source: &Source,
    symbols: &BTreeMap<String, i64>,
    name: &str,
    path: &str,
) -> Result<Array, Failure> {
    let unreadable = |e: std::io::Error| {
        Failure::usage(format!("`{path}` cannot be read: {}", input::reason(&e)))
    };
    let Some(buffer) = program.params.iter().map(|b| &program.buffers[*b]).find(|b| b.name == name)
    else {
        return Err(Failure::usage(format!("the program has no tensor `%{}`", short(name))));
    };
    let misfit = |why: String| {
        let text = format!("`{path}` does not fit `%{name}`");
        let help = match buffer.is_number() {
            true => "give a number of this type, `--in alpha=2.5`, or a `.npy` file of one number",
            false => {
                "give a row-major `.npy` file with the extents and the scalar type of the tensor"
            }
        };
        Failure::one(
            source,
            Diagnostic::new(Code::BadInput, buffer.span, text).label(why).help(help),
        )
    };
    if buffer.is_number()
        && let Some(array) = number(buffer.scalar, path)
    {
        return array.map_err(|e| misfit(e.to_string()));
    }
    if buffer.is_number() && !Path::new(path).exists() {
        return Err(Failure::usage_help(
            format!("`{}` is neither a number nor an existing file", short(path)),
            format!("write a number of type {}: `--in {name}=2.5`", buffer.scalar),
        ));
    }
    if Path::new(path).is_dir() {
        return Err(Failure::usage(format!("`{path}` is a directory, not a file")));
    }
    let value = |v| symbols.get(&program.arena.var_info(v).name).copied();
    let shape = program.tensors[buffer.tensor].concat().eval(&program.arena, &value);
    let elements = shape.map_or(MAX_ELEMENTS, |l| (l.size().max(0) as u64).min(MAX_ELEMENTS));
    // A file may have wider elements than the tensor; they are converted.
    let limit = elements * MAX_BYTES + MAX_HEADER;
    let mut bytes = vec![];
    let file = regular_file::open(Path::new(path)).map_err(unreadable)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(misfit(format!("the file has more than {elements} elements, the maximum")));
    }
    Array::from_npy(&bytes, buffer.scalar).map_err(|e| misfit(e.to_string()))
}

/// A number of the command line as an array without modes; `None` if the text is not a number.
fn number(scalar: Scalar, text: &str) -> Option<Result<Array, ArrayError>> {
    let integer = text.parse::<i128>().ok().zip(scalar.int_range());
    if let Some((value, (lo, hi))) = integer {
        let mask = u64::MAX >> (64 - scalar.bits().clamp(1, 64));
        // Keep all bits of the integer; binary64 may not represent it.
        return Some(match (lo..=hi).contains(&value) {
            true => Ok(Array { scalar, shape: vec![], values: vec![value as u64 & mask] }),
            false => Err(ArrayError::Number { value: value.to_string(), scalar }),
        });
    }
    let value = text.parse::<f64>().ok()?;
    Some(Array::from_numbers(scalar, &[], &[value]))
}

/// Writes tensors to files. `complete` says whether all blocks of all kernels ran.
pub(crate) fn save(
    outputs: &Outputs,
    complete: bool,
    name: &str,
    path: &str,
    io: &mut Io<'_>,
) -> Outcome {
    let Some(array) = outputs.get(name) else {
        return Err(Failure::usage_help(
            format!("`%{name}` cannot be written: some of its elements are unknown"),
            match !complete {
                true => "run all blocks: remove `--blocks`, or raise `--budget`",
                false => "choose a tensor of at most 2^28 elements that a kernel writes completely",
            },
        ));
    };
    let bytes =
        array.to_npy().map_err(|e| Failure::usage(format!("`%{name}` cannot be written: {e}")))?;
    output::write(Some(Path::new(path)), &bytes, io)
}

/// A text from the command line, shortened for messages.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}
