//! Tests `carbyne draw`: compares pictures with files, and checks properties of other pictures,
//! such as that nothing is clipped.
//!
//! `cargo xtask bless cli/tests/draw` rewrites the pictures, `cargo xtask bless docs/draw` rewrites
//! the pictures of the page.

use crate::support::{carbyne, golden, none, root, scratch};
use carbyne::Io;

/// Pictures under `cli/tests/draw` and `docs`, with the commands that draw them.
const PICTURES: &[(&str, &[&str])] = &[
    ("cli/tests/draw/layout.svg", &["((2,2),8):((1,16),2)"]),
    ("cli/tests/draw/layout.txt", &["((2,2),8):((1,16),2)"]),
    ("cli/tests/draw/layout.html", &["((2,2),2):((1,4),2)"]),
    ("cli/tests/draw/row.txt", &["(4,2):(2,1) o 8:1"]),
    ("cli/tests/draw/rank3.txt", &["(2,4,3):(4,1,8)"]),
    ("cli/tests/draw/negative.txt", &["4:-1"]),
    ("cli/tests/draw/bytes.txt", &["(2,4):(4,1)", "--unit", "byte", "--bits", "4"]),
    ("cli/tests/draw/swizzle.svg", &["Sw<2,1,3> o 0 o (4,8):(8,1)"]),
    ("cli/tests/draw/swizzle.txt", &["Sw<2,1,3> o 0 o (4,8):(8,1)"]),
    ("cli/tests/draw/fig4d.svg", &["(4,8):(1,4)", "--tile", "[2:2],[(2,2):(1,4)]"]),
    ("cli/tests/draw/fig4d.txt", &["(4,8):(1,4)", "--tile", "[2:2],[(2,2):(1,4)]"]),
    ("cli/tests/draw/tiles.txt", &["(8,8):(8,1)", "--tile", "(4,4)", "--tile", "_,2"]),
    ("cli/tests/draw/tv.txt", &["((2,4),(2,2)):((8,1),(4,16))", "--tv", "--shape", "4,8"]),
    ("cli/tests/draw/replicas.svg", &["(8,2):(0,1)", "--tv", "--shape", "2,2"]),
    ("cli/tests/draw/replicas.txt", &["(8,2):(0,1)", "--tv", "--shape", "2,2"]),
    ("cli/tests/draw/mma.txt", &["--atom", "mma.m16n8k16.f32.f16", "--arch", "sm_80"]),
    ("cli/tests/draw/wgmma.txt", &["--atom", "wgmma.m64n8k8.f32.tf32.rs"]),
    ("cli/tests/draw/banks.txt", &["Sw<3,3,3> o 0 o (8,64):(64,1)", "--banks"]),
    (
        "cli/tests/draw/banks8.txt",
        &["(32,4):(4,1)", "--banks", "--access", "8", "--bits", "32", "--lanes", "32:1"],
    ),
    (
        "cli/tests/draw/broadcast.txt",
        &["(1,32):(0,1)", "--banks", "--access", "4", "--bits", "32", "--lanes", "(16,2):(1,0)"],
    ),
    ("cli/tests/draw/fig3c.txt", &["examples/layouts_fig3_fig4.cby", "--tensor", "%c3"]),
    ("cli/tests/draw/fig4c.txt", &["examples/layouts_fig3_fig4.cby", "--tensor", "%C"]),
    ("cli/tests/draw/fig5c.txt", &["examples/threads_fig5_fig6.cby", "--tensor", "#groups"]),
    ("cli/tests/draw/fig6b.txt", &["examples/threads_fig5_fig6.cby", "--tensor", "#quadpairs"]),
    ("cli/tests/draw/fragment.txt", &["examples/graphene_fig1_ldmatrix.cby", "--tensor", "%2"]),
    ("cli/tests/draw/large.txt", &["(128,128):(128,1)"]),
    ("cli/tests/draw/large_swizzle.txt", &["Sw<3,3,3> o 0 o (64,64):(64,1)"]),
    ("cli/tests/draw/large_panels.txt", &["(16,32,40):(32,1,512)"]),
    ("cli/tests/draw/large_random.txt", &["Sw<5,0,5> o 0 o (1,1000):(0,7)"]),
    ("cli/tests/draw/large_atom.txt", &["--atom", "wgmma.m64n128k16.f32.f16.rs"]),
    ("cli/tests/draw/large_tv.txt", &[ACCUMULATOR, "--tv", "--shape", "128,256"]),
    ("docs/draw_tv.svg", &["((4,8),(2,2)):((32,1),(16,8))", "--tv", "--shape", "16,8"]),
    ("docs/draw_banks.svg", &["Sw<3,3,3> o 0 o (8,64):(64,1)", "--banks", "--lanes", "8:1"]),
];

/// A layout of 256 threads: four groups of two warps.
const ACCUMULATOR: &str = "((4,8,2,4),(2,2,4,8)):((256,1,64,8192),(128,8,16,1024))";

/// The arguments with full paths of programs, and the format for the name of the file.
fn arguments(file: &str, args: &[&str]) -> Vec<String> {
    let whole = |a: &&str| match a.ends_with(".cby") {
        true => root().join(a).display().to_string(),
        false => (*a).to_owned(),
    };
    let format = match file.rsplit('.').next() {
        Some("svg") => "svg",
        Some("html") => "html",
        _ => "text",
    };
    let all = ["draw"].iter().chain(args).map(whole);
    all.chain(["--format".to_owned(), format.to_owned()]).collect()
}

fn drawn(file: &str, args: &[&str]) -> String {
    let args = arguments(file, args);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    carbyne(&args, "").ok().text().to_owned()
}

#[test]
fn pictures_are_as_expected() {
    let wrong = PICTURES
        .iter()
        .filter_map(|(file, args)| golden(&root().join(file), &drawn(file, args)).err());
    none(wrong.collect());
}

#[test]
fn no_picture_is_left_over() {
    let files = std::fs::read_dir(root().join("cli/tests/draw")).expect("cli/tests/draw");
    let names = files.map(|f| f.expect("a readable folder").file_name());
    let stray = names.filter(|name| {
        let path = format!("cli/tests/draw/{}", name.to_string_lossy());
        !PICTURES.iter().any(|(file, _)| *file == path)
    });
    none(stray.map(|n| format!("{} belongs to no picture", n.to_string_lossy())).collect());
}

#[test]
fn a_large_picture_leaves_out_what_repeats() {
    let large: [&[&str]; 6] = [
        &[ACCUMULATOR, "--tv", "--shape", "128,256"],
        &["(256,256):(256,1)"],
        &["(2,2,16384):(1,2,4)"],
        &["examples/ampere_gemm_by_hand.cby", "--tensor", "%c"],
        &["examples/ampere_gemm_by_hand.cby", "--tensor", "%As"],
        &["examples/hopper_gemm_by_hand.cby", "--tensor", "%Bs"],
    ];
    for args in large {
        let whole: Vec<&str> = args.iter().copied().chain(["--whole"]).collect();
        let (svg, text) = (drawn("x.svg", args), drawn("x.txt", args));
        assert!(svg.len() < 300_000 && text.lines().count() <= 200, "{args:?}");
        for picture in [&svg, &text] {
            assert!(picture.contains(" left out") && picture.contains("`--whole` draws all"));
        }
        let all = drawn("x.svg", &whole);
        assert!(!all.contains("left out") && all.matches("<rect").count() > 4000, "{args:?}");
    }
    // A small picture is drawn completely.
    let small = ["(32,32):(32,1)"];
    assert_eq!(drawn("x.svg", &small), drawn("x.svg", &["(32,32):(32,1)", "--whole"]));
}

/// The value of an attribute of a tag.
fn attribute(tag: &str, name: &str) -> Option<usize> {
    let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag[start..].split('"').next()?.parse().ok()
}

#[test]
fn nothing_of_an_svg_is_clipped() {
    let swizzle = drawn("x.svg", &["Sw<3,3,3> o 0 o (64,64):(64,1)", "--banks"]);
    let large = drawn("x.svg", &["(128,128):(128,1)"]);
    let mma = drawn("x.svg", &["--atom", "mma.m16n8k16.f32.f16"]);
    for svg in [swizzle, large, mma] {
        let body = svg.split("</style>").nth(1).expect("a style");
        let (w, h) = (attribute(&svg, "width").unwrap(), attribute(&svg, "height").unwrap());
        let mut n = 0;
        for tag in body.split('<').filter(|t| t.starts_with("rect") || t.starts_with("text")) {
            let (x, y) = (attribute(tag, "x").unwrap_or(0), attribute(tag, "y").unwrap_or(0));
            let (tw, th) =
                (attribute(tag, "width").unwrap_or(0), attribute(tag, "height").unwrap_or(0));
            let text = tag.split('>').nth(1).map_or(0, |t| t.chars().count());
            assert!(x + tw <= w && y + th <= h, "{tag} in {w}×{h}");
            // Centered text must fit its cell: seven units per character.
            assert!(tag.contains("class") || text * 7 <= 2 * (w - x).max(1), "{tag}");
            n += 1;
        }
        assert!(n > 100);
        assert!(svg.contains("prefers-color-scheme:dark"));
    }
}

#[test]
fn html_says_what_a_cell_is() {
    let html = drawn("x.html", &["((2,2),8):((1,16),2)"]);
    assert!(html.contains("<title>(2,1) = ((0,1),1) -&gt; offset 18, byte 36</title>"), "{html}");
    let tv = drawn("x.html", &["((2,4),(2,2)):((8,1),(4,16))", "--tv", "--shape", "4,8"]);
    assert!(tv.contains("<title>(1,5) -&gt; T2 V3</title>"), "Hexcute, Figure 2");
    let banks = drawn("x.html", &["Sw<3,3,3> o 0 o (8,64):(64,1)", "--banks"]);
    assert!(banks.contains("<title>(1,0) -&gt; byte 144, bank 4, L1</title>"));
    for text in ["http-equiv", "<script", "src="] {
        assert!(!html.contains(text), "{text}");
    }
}

#[test]
fn the_output_chooses_the_format() {
    let folder = scratch("draw");
    for (name, begins) in [("a.svg", "<svg"), ("a.html", "<!DOCTYPE"), ("a.txt", "(2,2):(1,2)\n")] {
        let path = folder.join(name);
        let ran = carbyne(&["draw", "(2,2):(1,2)", "-o", path.to_str().unwrap()], "").ok();
        assert!(ran.stdout.is_empty());
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(begins), "{name}");
    }
}

#[test]
fn colors_are_for_terminals() {
    let run = |args: &[&str], stdout_color: bool| {
        let (mut out, mut err) = (vec![], vec![]);
        let mut stdin: &[u8] = b"";
        let all = ["carbyne", "draw"].iter().chain(args);
        let mut io = Io { stdout_color, ..Io::plain(&mut stdin, &mut out, &mut err) };
        assert_eq!(carbyne::run_on(all, &mut io), 0);
        String::from_utf8(out).unwrap()
    };
    assert!(run(&["(2,2):(1,2)"], true).contains("\u{1b}[48;5;"));
    assert!(!run(&["(2,2):(1,2)"], false).contains('\u{1b}'));
    assert!(!run(&["(2,2):(1,2)", "--format", "svg"], true).contains('\u{1b}'));
}

/// Checks the error and the exit code of a command line.
fn refused(args: &[&str], code: &str) {
    let all: Vec<&str> = ["draw"].iter().chain(args).copied().collect();
    let human = carbyne(&all, "");
    assert!(human.stderr.contains(code) && human.stderr.contains("help: "), "{}", human.stderr);
    assert!(human.code == 1 && human.stdout.is_empty(), "{args:?}: {}", human.code);
    assert!(human.stderr.len() < 20_000, "a report of {} bytes", human.stderr.len());
}

#[test]
fn what_is_not_drawn_has_a_code() {
    assert!(carbyne(&["draw", "(256,256):(256,1)"], "").code == 0);
    refused(&["(256,257):(257,1)"], "X0008");
    refused(&["(4294967296,2147483647):(0,0)"], "X0008");
    refused(&["(256,257):(257,1)", "--banks"], "X0008");
    refused(&["(1048576,1048576):(0,0)", "--tv", "--shape", "4,4"], "L01");
    refused(&["(4,8):(1,4", "--unit", "byte"], "K0601");
    refused(&["Sw<3,4> o 4:1"], "K0601");
    refused(&["Sw<3,1,1> o 0 o 4:1"], "L01");
    refused(&["4:1 o"], "K0601");
    refused(&[&format!("{}:1", "9".repeat(5000))], "P0004");
    refused(&[&format!("{}:1", "(".repeat(60_000))], "X0002");
    refused(&["(4,8):(1,4)", "--tile", "3,2"], "V0204");
    refused(&["(4,8):(1,4)", "--tile", "2:3,2"], "V0204");
    refused(&["(4,8):(1,4)", "--tile", "2,2,"], "L01");
    refused(&["(4,8):(1,4)", "--tv", "--shape", "4,4"], "V0215");
    refused(&["(4,8,2):(1,4,0)", "--tv", "--shape", "4,8"], "V0215");
    refused(&["(4,8):(1,-4)", "--tv", "--shape", "4,8"], "V0215");
    refused(&["(8,8):(8,1)", "--banks", "--access", "3"], "G0601");
    refused(&["(8,8):(16,2)", "--banks", "--access", "4"], "G0601");
    refused(&["(8,8):(9,1)", "--banks"], "G0601");
    refused(&["(8,8):(8,1)", "--banks", "--lanes", "32:8"], "G0601");
    let wrong = carbyne(&["draw", "(4,8):(1,4)", "--tv"], "");
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    let unknown = carbyne(&["draw", "--atom", "mma.m16n8k16.f32.f1"], "");
    assert!(unknown.code == 2 && unknown.stderr.contains("mma.m16n8k16.f32.f16"));
}

#[test]
fn odd_layouts_are_drawn_or_refused() {
    let shapes = ["1", "(1,1)", "()", "((),4)", "(7,3,2)", "(2,2,100)", "((2,2),(3,(1,5)))"];
    let strides = [
        "0",
        "(9223372036854775807,1)",
        "()",
        "((),-3)",
        "(5,0,64)",
        "(1,2,4)",
        "((0,9),(1,(7,2)))",
    ];
    for (shape, stride) in shapes.iter().zip(strides) {
        for prefix in ["", "Sw<1,0,1> o 5 o ", "Sw<3,4,3> o ", "Sw<0,0,0> o 9223372036854775807 o "]
        {
            let layout = format!("{prefix}{shape}:{stride}");
            let more: [&[&str]; 6] = [
                &[],
                &["--banks"],
                &["--banks", "--access", "2"],
                &["--tv", "--shape", "8"],
                &["--tile", "_"],
                &["--unit", "byte", "--bits", "1", "--format", "html"],
            ];
            for args in more {
                let all: Vec<&str> = ["draw", &layout].iter().chain(args).copied().collect();
                let ran = carbyne(&all, "");
                assert!(ran.code <= 2, "{all:?}: {}", ran.stderr);
            }
        }
    }
}

/// The types in the examples of the paper's figures are checked: no number can be changed.
#[test]
fn the_figures_strides_are_asserted() {
    let mut n_changed = 0;
    for name in ["layouts_fig3_fig4", "threads_fig5_fig6"] {
        let text = std::fs::read_to_string(root().join(format!("examples/{name}.cby"))).unwrap();
        let mut from = 0;
        for line in text.split_inclusive('\n') {
            let start = from;
            from += line.len();
            let head = line.trim_start().trim_start_matches("Allocate ");
            let free = ["%x:", "%in:", "%out:", "%tile:", "#grid:", "#one:"];
            let free = free.iter().any(|n| head.starts_with(n));
            let (true, false, Some(colon)) = (head.starts_with(['%', '#']), free, line.find(':'))
            else {
                continue;
            };
            // The levels of the type, without the scalar type or view that follows.
            let levels = line[..line.find(" = ").unwrap_or(line.len())].rfind(']').unwrap();
            let digits = line[colon..=levels].char_indices().filter(|(_, c)| c.is_ascii_digit());
            for (at, digit) in digits {
                let at = start + colon + at;
                let other = if digit == '9' { '1' } else { char::from(digit as u8 + 1) };
                let mut changed = text.clone();
                changed.replace_range(at..=at, &other.to_string());
                let ran = carbyne(&["check", "-"], &changed);
                assert_eq!(ran.code, 1, "{name}: nothing notices {other} for {digit} in {line}");
                n_changed += 1;
            }
        }
    }
    assert!(n_changed > 100, "only {n_changed} numbers");
}

#[test]
fn of_a_ring_the_banks_of_one_stage_are_drawn() {
    let tile = "[(32,32):(32,1)].f16.SH{swizzle=(2,4,3)}";
    let drawn = |levels: &str| {
        let text = format!(
            "carbyne 2\n%A:[32,32].f16.GL\n#grid:[1].block\n#cta:[32].thread\n\
             Move @f <<<#grid, #cta>>> (%A) -> (%A) {{\n  Allocate %s:{levels}{tile}\n  barrier\n\
             }}\n"
        );
        carbyne(&["draw", "-", "--tensor", "%s", "--banks"], &text).ok().text().to_owned()
    };
    let (ring, alone) = (drawn("[3:1024]."), drawn(""));
    assert!(ring.contains("no conflicts") && ring.contains("the first of 3 tiles"), "{ring}");
    // The pictures are equal, except for the note about stages.
    let cells = |text: &str| text.split_once("\n\n").map(|(_, cells)| cells.to_owned());
    assert_eq!(cells(&ring), cells(&alone));
}
