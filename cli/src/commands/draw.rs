//! `carbyne draw`: draws a layout, a tensor or an atom as SVG, HTML or text. A layout may be drawn
//! as a grid of offsets, with outlines of tiles, or with the banks of shared memory that one access
//! touches.

use crate::args::{Draw, PictureFormat, Unit};
use crate::calculator::Session;
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, input, output, pipeline};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_draw::{
    DrawError, Field, Picture, banks, elide, grid, parse, svg, tensor, text, tiling, tv,
};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::{ComposedLayout, Layout};
use carbyne_ir::program::{Program, TensorId, ThreadsId};
use carbyne_ir::span::Span;
use std::path::Path;

/// Maximum length of an expression.
const MAX_TEXT: usize = 1 << 16;

pub(super) fn run(args: &Draw, io: &mut Io<'_>) -> Outcome {
    let picture = match (&args.atom, &args.what) {
        (Some(name), _) => atom(name, args)?,
        (None, Some(what)) if is_file(what, args) => of_file(Path::new(what), args, io)?,
        (None, Some(what)) => of_layout(what, args)?,
        // The command line parser guarantees one of them.
        (None, None) => return Err(Failure::usage("there is nothing to draw")),
    };
    let picture = if args.whole { picture } else { elide::elide(picture, "--whole") };
    let to = args.output.as_deref().filter(|p| !input::is_stdin(p));
    let format = args.format.unwrap_or_else(|| by_name(to));
    let written = match format {
        PictureFormat::Svg => svg::svg(&picture),
        PictureFormat::Html => svg::html(&picture),
        PictureFormat::Text => text::text(&picture, to.is_none() && io.stdout_color),
    };
    output::write(to, written.as_bytes(), io)
}

fn by_name(to: Option<&Path>) -> PictureFormat {
    let extension = to.and_then(Path::extension).map(|e| e.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("svg") => PictureFormat::Svg,
        Some("html" | "htm") => PictureFormat::Html,
        _ => PictureFormat::Text,
    }
}

/// Whether the argument names a file. A layout contains `:` or begins like a layout; file names
/// rarely do.
fn is_file(what: &str, args: &Draw) -> bool {
    let path = Path::new(what);
    let named = input::is_stdin(path) || path.extension().is_some_and(|e| e == "cby");
    let layout =
        what.contains(':') || what.trim_start().starts_with('(') || what.starts_with("Sw<");
    args.tensor.is_some() || named || !layout
}

fn unit(args: &Draw) -> carbyne_draw::Unit {
    match args.unit {
        Unit::Element => carbyne_draw::Unit::Element,
        Unit::Byte => carbyne_draw::Unit::Byte,
    }
}

/// An error in a text of the command line, which is shown as the source.
fn refused(name: &str, text: &str, e: &DrawError) -> Failure {
    let (start, end) = match e {
        DrawError::Syntax { at, .. } => (*at, (*at + 1).min(text.len())),
        _ => (0, text.len()),
    };
    Failure::one(
        &Source { name: name.to_owned(), text: text.to_owned(), ..Source::default() },
        coded(e, start, end),
    )
}

fn coded(e: &DrawError, start: usize, end: usize) -> Diagnostic {
    let mut d = Diagnostic::new(e.code(), Span::new(start, end), e.to_string()).label(e.label());
    d.help = e.help();
    d
}

fn of_layout(what: &str, args: &Draw) -> Result<Picture, Failure> {
    let failed = |e: DrawError| refused("<layout>", what, &e);
    let layout = evaluated("<layout>", what)?;
    if let Some(shape) = args.shape.as_deref().filter(|_| args.tv) {
        let shape = parse::shape(shape).map_err(|e| refused("--shape", shape, &e))?;
        if layout.plain().is_none() {
            return Err(Failure::usage_help(
                "a thread-value layout has neither a swizzle nor an offset",
                "remove `--tv`, or write only the layout",
            ));
        }
        return tv::tv(layout.layout(), &shape).map_err(failed);
    }
    by_offset(&Field::new(&layout, args.bits), args, failed)
}

/// The picture of a layout with offsets: its banks, its tiles or a grid.
fn by_offset(
    field: &Field,
    args: &Draw,
    failed: impl Fn(DrawError) -> Failure,
) -> Result<Picture, Failure> {
    if args.banks {
        let lanes = args.lanes.as_deref().map(lanes).transpose()?;
        return banks::banks(field, args.access.unwrap_or(16), lanes.as_ref()).map_err(failed);
    }
    if args.tile.is_empty() {
        return grid::layout(field, unit(args)).map_err(failed);
    }
    let tilings: Result<Vec<_>, _> =
        args.tile.iter().map(|t| parse::tilers(t).map_err(|e| refused("--tile", t, &e))).collect();
    tiling::tiled(field, &tilings?, unit(args)).map_err(failed)
}

fn lanes(text: &str) -> Result<Layout, Failure> {
    Ok(evaluated("--lanes", text)?.layout().clone())
}

/// Evaluates an expression of the calculator to a layout.
fn evaluated(name: &str, text: &str) -> Result<ComposedLayout, Failure> {
    let source = || Source { name: name.to_owned(), text: text.to_owned(), ..Source::default() };
    if text.len() > MAX_TEXT {
        return Err(Failure::usage_help("the layout is too long", "write at most 64 KiB"));
    }
    let mut session = Session::default();
    let value = session.line(text).map_err(|d| Failure::one(&source(), *d))?;
    match value.map(|v| v.fixed(session.arena())) {
        Some(Ok(layout)) => Ok(layout),
        _ => {
            let d = Diagnostic::new(
                Code::CalcArguments,
                Span::new(0, text.len()),
                "this is not a layout of numbers",
            )
            .label("has another kind of value")
            .help("write an expression with a layout as value: `(4,8):(8,1)`, `A = 8:1; A o 4:2`");
            Err(Failure::one(&source(), d))
        }
    }
}

fn atom(name: &str, args: &Draw) -> Result<Picture, Failure> {
    let tables: Vec<AtomTable> = match &args.arch {
        Some(arch) => vec![pipeline::table(arch)?],
        None => Arch::ALL.iter().map(|a| AtomTable::new(*a)).collect(),
    };
    let Some(atom) = tables.iter().find_map(|t| t.get(name)) else {
        return Err(super::atoms::unknown_atom(name, &tables));
    };
    tensor::atom(atom).map_err(|e| refused("--atom", name, &e))
}

/// A tensor or a thread tensor.
#[derive(Copy, Clone)]
enum Named {
    Data(TensorId),
    Threads(ThreadsId),
}

fn of_file(path: &Path, args: &Draw, io: &mut Io<'_>) -> Result<Picture, Failure> {
    let source = input::read(path, io)?;
    let (_, program) = pipeline::verified(&source)?;
    let (named, span) = find(&source, &program, args)?;
    let failed =
        |e: DrawError| Failure::one(&source, coded(&e, span.start as usize, span.end as usize));
    match named {
        Named::Threads(_) if args.banks || !args.tile.is_empty() => Err(Failure::usage_help(
            "threads have no banks, and their tiles are in the program",
            "remove `--banks` and `--tile`",
        )),
        Named::Threads(id) => tensor::threads(&program, id).map_err(failed),
        Named::Data(id) if program.tensors[id].dist.is_none() && wants_field(args) => {
            // An instruction accesses one stage of a ring.
            let of = if args.banks { tensor::innermost } else { tensor::field };
            let (field, notes) = of(&program, id).map_err(failed)?;
            let mut picture = by_offset(&field, args, failed)?;
            picture.title = format!("{}: {}", program.tensor_name(id), picture.title);
            picture.notes.extend(notes);
            if args.banks {
                picture.notes.push(
                    "the access is assumed, not one of the program: `--access` and `--lanes` \
                     state another"
                        .to_owned(),
                );
            }
            Ok(picture)
        }
        Named::Data(id) if wants_field(args) => Err(Failure::usage_help(
            format!("`{}` is spread over threads and has no offsets", program.tensor_name(id)),
            "remove `--banks` and `--tile`, or draw the tensor in shared memory",
        )),
        Named::Data(id) => tensor::tensor(&program, id, unit(args)).map_err(failed),
    }
}

fn wants_field(args: &Draw) -> bool {
    args.banks || !args.tile.is_empty()
}

/// Finds the tensor with this name, and the place that defines it.
fn find(source: &Source, p: &Program, args: &Draw) -> Result<(Named, Span), Failure> {
    let data = p
        .tensors
        .iter()
        .filter_map(|(id, t)| t.name.as_ref().map(|n| (format!("%{n}"), Named::Data(id), t.span)));
    let threads = p.threads.iter().filter_map(|(id, t)| {
        t.name.as_ref().map(|n| (format!("#{n}"), Named::Threads(id), t.span))
    });
    let all: Vec<(String, Named, Span)> = data.chain(threads).collect();
    let line_of = |span: Span| span.line_col(&source.text).0;
    let Some(asked) = &args.tensor else {
        return Err(Failure::usage_help(
            "the program has several tensors, and none is selected",
            format!("select one with `--tensor NAME`: {}", names(&all)),
        ));
    };
    let shown: String = asked.chars().take(64).collect();
    let of_name: Vec<&(String, Named, Span)> = all.iter().filter(|(n, ..)| n == asked).collect();
    let found: Vec<_> = match args.line {
        Some(line) => of_name.iter().filter(|(.., span)| line_of(*span) == line).collect(),
        None => of_name.iter().collect(),
    };
    let lines: Vec<String> = of_name.iter().map(|(.., span)| line_of(*span).to_string()).collect();
    match (found.as_slice(), of_name.len()) {
        ([(_, named, span)], _) => Ok((*named, *span)),
        (_, 0) => Err(Failure::usage_help(
            format!("`{}` has no tensor `{shown}`", source.name),
            format!("use one of its tensors: {}", names(&all)),
        )),
        ([], _) => Err(Failure::usage_help(
            format!("no tensor `{shown}` is defined on that line"),
            format!("use a line that defines the tensor: {}", lines.join(", ")),
        )),
        ([(_, named, span), ..], _) if args.line.is_some() => Ok((*named, *span)),
        _ => Err(Failure::usage_help(
            format!("{} tensors have the name `{shown}`", of_name.len()),
            format!("select one with `--line`: {}", lines.join(", ")),
        )),
    }
}

/// All distinct names in text order. A long list is cut.
fn names(all: &[(String, Named, Span)]) -> String {
    const MOST: usize = 40;
    let mut out: Vec<&str> = vec![];
    for (name, ..) in all {
        if !out.contains(&name.as_str()) {
            out.push(name);
        }
        if out.len() > MOST {
            break;
        }
    }
    let cut = if out.len() > MOST { ", ..." } else { "" };
    format!("{}{cut}", out[..out.len().min(MOST)].join(", "))
}
