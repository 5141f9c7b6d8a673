//! Tests which elements of a view exist: random chains of tiles, indices, permutations and new
//! shapes of a tensor are compared with a model that tracks the coordinates of every element in the
//! declared tensor.

use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{Program, Tensor, VarKind};
use carbyne_ir::testing;
use carbyne_ir::{resolve, text};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::HashMap;

/// The number of threads of the block.
const THREADS: i64 = 4;
/// The maximal number of elements of a view that are compared.
const MAX_ELEMENTS: i64 = 1 << 14;

/// Random numbers that determine a case.
struct Draw<'a> {
    numbers: std::slice::Iter<'a, u16>,
}

impl Draw<'_> {
    /// A number below `n`; 0 after the last random number.
    fn below(&mut self, n: i64) -> i64 {
        i64::from(self.numbers.next().copied().unwrap_or(0)) % n.max(1)
    }

    fn is(&mut self, one_in: i64) -> bool {
        self.below(one_in) == one_in - 1
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for i in (1..all.len()).rev() {
            let j = self.below(i as i64 + 1) as usize;
            all.swap(i, j);
        }
    }
}

/// A mode of a view: its extent as text and as a number.
#[derive(Clone, Debug)]
struct Mode {
    text: String,
    n: i64,
    is_const: bool,
}

impl Mode {
    fn constant(n: i64) -> Mode {
        Mode { text: n.to_string(), n, is_const: true }
    }
}

/// A view as a table: for each element its coordinates in the declared tensor, or `None` if it does
/// not exist. The first mode of the outermost level varies fastest.
#[derive(Clone, Debug)]
struct Model {
    levels: Vec<Vec<Mode>>,
    elements: Vec<Option<Vec<i64>>>,
}

impl Model {
    fn modes(&self) -> Vec<&Mode> {
        self.levels.iter().flatten().collect()
    }

    fn outer(&self) -> &[Mode] {
        self.levels.first().map_or(&[], Vec::as_slice)
    }

    /// The element at coordinates of all modes.
    fn at(&self, coords: &[i64]) -> Option<Vec<i64>> {
        let (mut index, mut step) = (0, 1);
        for (c, mode) in coords.iter().zip(self.modes()) {
            assert!((0..mode.n).contains(c), "the model leaves a mode");
            index += c * step;
            step *= mode.n;
        }
        self.elements[index as usize].clone()
    }

    /// A view with other outer levels. `from` maps coordinates of the new outer levels to those of
    /// the old outermost level; other coordinates stay.
    fn view(&self, outer: Vec<Vec<Mode>>, from: impl Fn(&[i64]) -> Option<Vec<i64>>) -> Model {
        let n_outer: usize = outer.iter().map(Vec::len).sum();
        let mut levels = outer;
        levels.extend(self.levels.iter().skip(1).cloned());
        levels.retain(|l| !l.is_empty());
        let mut made = Model { levels, elements: vec![] };
        let extents: Vec<i64> = made.modes().iter().map(|m| m.n).collect();
        let size: i64 = extents.iter().product();
        let element = |mut e: i64| {
            let mut coords = vec![];
            for n in &extents {
                coords.push(e % n);
                e /= n;
            }
            let mut before = from(&coords[..n_outer])?;
            before.extend(&coords[n_outer..]);
            self.at(&before)
        };
        made.elements = (0..size).map(element).collect();
        made
    }

    fn size(&self) -> i64 {
        self.modes().iter().map(|m| m.n).product()
    }
}

/// A program that defines `%v`, and the model of this view.
struct Case {
    src: String,
    model: Model,
    strides: Vec<Vec<(i64, i64)>>,
    values: HashMap<String, i64>,
    thread: i64,
}

/// Draws a declared tensor. Returns its type, its model, and for each mode its extents and strides.
fn declared(
    draw: &mut Draw<'_>,
    values: &HashMap<String, i64>,
) -> (String, Model, Vec<Vec<(i64, i64)>>) {
    let rank = 1 + draw.below(3);
    let (mut modes, mut shapes, mut leaves) = (vec![], vec![], vec![]);
    for _ in 0..rank {
        match draw.below(6) {
            0 | 1 => {
                let name = ["M", "N"][draw.below(2) as usize];
                let n = values[name];
                modes.push(Mode { text: name.to_owned(), n, is_const: false });
                shapes.push(name.to_owned());
                leaves.push(vec![n]);
            }
            2 => {
                let parts: Vec<i64> = (0..2 + draw.below(2)).map(|_| 1 + draw.below(4)).collect();
                modes.push(Mode::constant(parts.iter().product()));
                let texts: Vec<String> = parts.iter().map(i64::to_string).collect();
                shapes.push(format!("({})", texts.join(",")));
                leaves.push(parts);
            }
            _ => {
                let n = 1 + draw.below(12);
                modes.push(Mode::constant(n));
                shapes.push(n.to_string());
                leaves.push(vec![n]);
            }
        }
    }
    let constant = modes.iter().all(|m| m.is_const);
    let symbolic = modes.iter().any(|m| !m.is_const);
    let nested = shapes.iter().any(|s| s.starts_with('('));
    let kind = draw.below(4);
    let mut strides: Vec<Vec<i64>> = leaves.iter().map(|l| vec![0; l.len()]).collect();
    let (mut text, mut next) = (None, 1);
    if constant && (kind > 0 || nested) {
        // Leaf by leaf, from the first or the last one, with gaps.
        let mut order: Vec<(usize, usize)> = leaves
            .iter()
            .enumerate()
            .flat_map(|(i, l)| (0..l.len()).map(move |j| (i, j)))
            .collect();
        match kind {
            1 => {}
            2 => order.reverse(),
            _ => draw.shuffle(&mut order),
        }
        for (i, j) in order {
            strides[i][j] = next;
            next = next * leaves[i][j] + if draw.is(4) { 1 + draw.below(3) } else { 0 };
        }
        let one = |(shape, all): (&String, &Vec<i64>)| {
            let texts: Vec<String> = all.iter().map(i64::to_string).collect();
            match shape.starts_with('(') {
                true => format!("({})", texts.join(",")),
                false => texts.join(""),
            }
        };
        let of: Vec<String> = shapes.iter().zip(&strides).map(one).collect();
        text = Some(format!("({}):({})", shapes.join(","), of.join(",")));
    } else if symbolic && kind == 0 && rank == 2 && !nested {
        (strides[0][0], strides[1][0]) = (values["LDA"], 1);
        text = Some(format!("({}):(LDA,1)", shapes.join(",")));
    } else if symbolic && kind == 1 && rank == 2 && !nested {
        (strides[0][0], strides[1][0]) = (1, values["LDA"]);
        text = Some(format!("({}):(1,LDA)", shapes.join(",")));
    } else {
        // Row-major: the last mode varies fastest; in a nested mode, its last part.
        for (all, extents) in strides.iter_mut().zip(&leaves).rev() {
            for (s, n) in all.iter_mut().zip(extents).rev() {
                *s = next;
                next *= n;
            }
        }
    }
    let text = text.unwrap_or_else(|| shapes.join(","));
    let size: i64 = modes.iter().map(|m| m.n).product();
    let extents: Vec<i64> = modes.iter().map(|m| m.n).collect();
    let coords = |mut e: i64| {
        let one = |n: &i64| {
            let c = e % n;
            e /= n;
            c
        };
        Some(extents.iter().map(one).collect())
    };
    let elements = (0..size).map(coords).collect();
    let of = leaves.iter().zip(&strides);
    let leaves = of.map(|(n, s)| n.iter().copied().zip(s.iter().copied()).collect()).collect();
    (format!("[{text}]"), Model { levels: vec![modes], elements }, leaves)
}

/// The drawn context of the view.
#[derive(Default)]
struct Around {
    /// Loops around the view: variables and ends.
    loops: Vec<(String, String)>,
    /// Conditions, and whether they hold.
    conditions: Vec<(String, bool)>,
    ops: String,
}

fn tile(draw: &mut Draw<'_>, model: &Model, around: &mut Around) -> Model {
    let (mut rest, mut own, mut by, mut texts) = (vec![], vec![], vec![], vec![]);
    for mode in model.outer() {
        if draw.is(4) {
            rest.push(Mode::constant(1));
            own.push(mode.clone());
            by.push(mode.n);
            texts.push("_".to_owned());
            continue;
        }
        let t = match mode.is_const {
            true => 1 + draw.below(mode.n + 3),
            false => [2, 3, 4, 5, 8][draw.below(5) as usize],
        };
        let count = (mode.n + t - 1) / t;
        let text = format!("ceil_div({}, {t})", mode.text);
        rest.push(Mode { text, n: count, is_const: mode.is_const });
        own.push(Mode::constant(t));
        by.push(t);
        texts.push(t.to_string());
    }
    around.ops += &format!(".tile([{}])", texts.join(","));
    let extents: Vec<i64> = model.outer().iter().map(|m| m.n).collect();
    let n = extents.len();
    model.view(vec![rest, own], |coords| {
        let at = (0..n).map(|i| coords[i] * by[i] + coords[n + i]);
        let at: Vec<i64> = at.collect();
        at.iter().zip(&extents).all(|(c, n)| c < n).then_some(at)
    })
}

fn index(
    draw: &mut Draw<'_>,
    model: &Model,
    around: &mut Around,
    values: &mut HashMap<String, i64>,
    thread: i64,
) -> Model {
    /// The entry of a mode.
    enum Entry {
        At(i64),
        From(i64),
    }
    let (mut entries, mut texts, mut kept) = (vec![], vec![], vec![]);
    for mode in model.outer() {
        let (text, entry) = match draw.below(8) {
            0 | 1 => ("_".to_owned(), Entry::From(0)),
            2 if mode.is_const => {
                let from = draw.below(mode.n);
                let to = from + 1 + draw.below(mode.n - from);
                kept.push(Mode::constant(to - from));
                texts.push(format!("{from}..{to}"));
                entries.push(Entry::From(from));
                continue;
            }
            3 if mode.is_const => (format!("@t % {}", mode.n), Entry::At(thread % mode.n)),
            4 if mode.is_const => {
                let at = draw.below(mode.n);
                (at.to_string(), Entry::At(at))
            }
            5 => ("0".to_owned(), Entry::At(0)),
            _ => {
                let name = format!("k{}", around.loops.len());
                let at = if draw.is(2) { mode.n - 1 } else { draw.below(mode.n) };
                around.loops.push((name.clone(), mode.text.clone()));
                values.insert(name.clone(), at);
                // The condition that this tile is complete.
                if let Some((of, by)) = mode.text.strip_prefix("ceil_div(").and_then(|t| {
                    let (of, by) = t.strip_suffix(')')?.rsplit_once(", ")?;
                    Some((of.to_owned(), by.parse::<i64>().ok()?))
                }) && let Some(n) = value_of(&of, values)
                {
                    let text = format!("{name} * {by} + {by} <= {of}");
                    around.conditions.push((text, at * by + by <= n));
                }
                (name, Entry::At(at))
            }
        };
        if let Entry::From(_) = entry {
            kept.push(mode.clone());
        }
        texts.push(text);
        entries.push(entry);
    }
    around.ops += &format!("[{}]", texts.join(", "));
    model.view(vec![kept], |coords| {
        let mut next = coords.iter();
        let at = entries.iter().map(|e| match e {
            Entry::At(at) => *at,
            Entry::From(from) => from + next.next().copied().unwrap_or(0),
        });
        Some(at.collect())
    })
}

/// The value of a number or symbol.
fn value_of(text: &str, values: &HashMap<String, i64>) -> Option<i64> {
    text.parse().ok().or_else(|| values.get(text).copied())
}

fn permute(draw: &mut Draw<'_>, model: &Model, around: &mut Around) -> Model {
    let n = model.outer().len();
    let mut order: Vec<usize> = (0..n).collect();
    if n > 1 && draw.is(2) {
        order.swap(n - 2, n - 1);
        around.ops += ".transpose()";
    } else {
        draw.shuffle(&mut order);
        around.ops += &format!(".permute({order:?})");
    }
    let modes = order.iter().map(|i| model.outer()[*i].clone()).collect();
    model.view(vec![modes], |coords| {
        let mut before = vec![0; n];
        order.iter().zip(coords).for_each(|(i, c)| before[*i] = *c);
        Some(before)
    })
}

/// The coordinates of an index over the outermost modes; the first mode varies fastest.
fn coordinates(extents: &[i64], mut index: i64) -> Vec<i64> {
    let one = |n: &i64| {
        let c = index % n;
        index /= n;
        c
    };
    extents.iter().map(one).collect()
}

fn reshape(draw: &mut Draw<'_>, model: &Model, around: &mut Around) -> Model {
    let extents: Vec<i64> = model.outer().iter().map(|m| m.n).collect();
    let size: i64 = extents.iter().product();
    // Split each mode in two, or the product of all modes, and reorder the parts.
    let mut leaves = vec![];
    let whole = [size];
    let parts = if draw.is(2) { &whole[..] } else { &extents[..] };
    let mut step = 1;
    for n in parts {
        let divisors: Vec<i64> = (1..=*n).filter(|d| n % d == 0).collect();
        let first = divisors[draw.below(divisors.len() as i64) as usize];
        leaves.extend([(first, step), (n / first, step * first)]);
        step *= n;
    }
    leaves.retain(|(n, _)| *n > 1);
    if leaves.is_empty() {
        leaves.push((1, 1));
    }
    draw.shuffle(&mut leaves);
    let texts = |f: fn(&(i64, i64)) -> i64| {
        leaves.iter().map(|l| f(l).to_string()).collect::<Vec<_>>().join(",")
    };
    around.ops += &format!(".reshape([{}]:[{}])", texts(|l| l.0), texts(|l| l.1));
    let modes = leaves.iter().map(|(n, _)| Mode::constant(*n)).collect();
    model.view(vec![modes], |coords| {
        let index = coords.iter().zip(&leaves).map(|(c, (_, s))| c * s).sum();
        Some(coordinates(&extents, index))
    })
}

/// The values of one thread; `None` if the elements cannot be divided evenly.
fn thread_values(
    draw: &mut Draw<'_>,
    model: &Model,
    around: &mut Around,
    thread: i64,
) -> Option<Model> {
    let extents: Vec<i64> = model.outer().iter().map(|m| m.n).collect();
    let size: i64 = extents.iter().product();
    let n = size / THREADS;
    if size % THREADS != 0 {
        return None;
    }
    let (of_thread, of_value) = if draw.is(2) { (n, 1) } else { (1, THREADS) };
    around.ops += &format!(".tv(({THREADS},{n}):({of_thread},{of_value}) over #cta)");
    Some(model.view(vec![vec![Mode::constant(n)]], |coords| {
        Some(coordinates(&extents, thread * of_thread + coords[0] * of_value))
    }))
}

fn case(numbers: &[u16]) -> Option<Case> {
    let mut draw = Draw { numbers: numbers.iter() };
    let draw = &mut draw;
    let mut values = HashMap::from([
        ("M".to_owned(), 1 + draw.below(12)),
        ("N".to_owned(), 4 * (1 + draw.below(3))),
        ("LDA".to_owned(), 12 + draw.below(9)),
    ]);
    let thread = draw.below(THREADS);
    let (ty, mut model, strides) = declared(draw, &values);
    let mut around = Around::default();
    for _ in 0..1 + draw.below(5) {
        if model.levels.is_empty() {
            break;
        }
        let is_const = model.outer().iter().all(|m| m.is_const);
        model = match draw.below(10) {
            0..=3 => tile(draw, &model, &mut around),
            4..=6 => index(draw, &model, &mut around, &mut values, thread),
            7 => permute(draw, &model, &mut around),
            8 if is_const => reshape(draw, &model, &mut around),
            9 if is_const => thread_values(draw, &model, &mut around, thread).unwrap_or(model),
            _ => continue,
        };
        if model.size() > MAX_ELEMENTS {
            return None;
        }
    }
    let mut src = format!(
        "carbyne 2
sym M{{min=1, max=12}}
sym N{{min=4, max=12, div=4}}
sym LDA{{min=12, max=20}}
%A:{ty}.f32.GL
%B:[1].f32.GL
Spec @f <<<#grid:[1], #cta:[@t < {THREADS}]>>> (%A) -> (%B) {{
"
    );
    let mut closing = String::new();
    for (var, end) in &around.loops {
        src += &format!("for ({var} = 0; {var} < {end}; {var} += 1) {{\n");
        closing += "}\n";
    }
    for (condition, holds) in &around.conditions {
        if *holds && draw.is(2) {
            src += &format!("if ({condition}) {{\n");
            closing += "}\n";
        }
    }
    src += &format!("%v = %A{}\n{closing}}}\n", around.ops);
    Some(Case { src, model, strides, values, thread })
}

impl Case {
    fn value(&self, p: &Program, dim: Dim) -> i64 {
        let value = |var: VarId| match p.vars.get(&var) {
            Some(VarKind::Thread(_)) => Some(self.thread),
            Some(VarKind::Index(of)) => Some(self.value(p, *of)),
            _ => self.values.get(&p.arena.var_info(var).name).copied(),
        };
        p.arena.eval(dim, &value).unwrap_or_else(|e| panic!("{e}\n{}", self.src))
    }

    /// The offset of an element of the declared tensor.
    fn address(&self, coords: &[i64]) -> i64 {
        let of = |(c, leaves): (&i64, &Vec<(i64, i64)>)| {
            let mut rest = *c;
            let one = |(n, s): &(i64, i64)| {
                let at = rest % n * s;
                rest /= n;
                at
            };
            leaves.iter().map(one).sum::<i64>()
        };
        coords.iter().zip(&self.strides).map(of).sum()
    }

    /// Compares a resolved view with the model.
    fn compare(&self, p: &Program, view: &Tensor) -> Result<(), TestCaseError> {
        let layout = |l: &carbyne_ir::layout::Layout<Dim>| {
            let value = |var: VarId| match p.vars.get(&var) {
                Some(VarKind::Thread(_)) => Some(self.thread),
                _ => self.values.get(&p.arena.var_info(var).name).copied(),
            };
            l.eval(&p.arena, &value).unwrap_or_else(|e| panic!("{e}\n{}", self.src))
        };
        let src = &self.src;
        let whole = layout(&view.concat());
        let extents: Vec<i64> = whole.modes().iter().map(|m| m.size()).collect();
        let want: Vec<i64> = self.model.modes().iter().map(|m| m.n).collect();
        // A value mode may consist of several modes if the strides of its elements do not continue
        // each other.
        match src.contains(".tv(") {
            true => prop_assert_eq!(whole.size(), want.iter().product::<i64>(), "size in\n{}", src),
            false => prop_assert_eq!(extents, want, "extents in\n{}", src),
        }
        let offset = self.value(p, view.offset);
        let mut bounds = vec![];
        for bound in &view.bounds {
            let along = layout(&bound.concat());
            prop_assert_eq!(along.shape(), whole.shape(), "a bound's shape in\n{}", src);
            let levels =
                bound.levels.iter().map(|l| l.rank()).eq(view.levels.iter().map(|l| l.rank()));
            prop_assert!(levels, "a bound's levels in\n{}", src);
            bounds.push((along, self.value(p, bound.offset), self.value(p, bound.extent)));
        }
        for (e, want) in self.model.elements.iter().enumerate() {
            let e = e as i64;
            let there = bounds.iter().all(|(along, offset, extent)| offset + along.at(e) < *extent);
            prop_assert_eq!(there, want.is_some(), "whether there is element {} of\n{}", e, src);
            if let Some(coords) = want {
                let at = offset + whole.at(e);
                prop_assert_eq!(at, self.address(coords), "element {} {:?} of\n{}", e, coords, src);
            }
        }
        Ok(())
    }
}

#[test]
fn views_have_the_elements_that_there_are() {
    let (seen, bounded, partial, dropped) =
        (Cell::new(0u32), Cell::new(0u32), Cell::new(0u32), Cell::new(0u32));
    let count = |of: &Cell<u32>, by: bool| of.set(of.get() + u32::from(by));
    let mut runner = testing::runner(testing::config(testing::count(1 << 12, 1 << 17)));
    let numbers = proptest::collection::vec(any::<u16>(), 20..120);
    let outcome = runner.run(&numbers, |numbers| {
        let Some(case) = case(&numbers) else { return Ok(()) };
        let module = text::parse(&case.src).unwrap_or_else(|e| panic!("{e}\n{}", case.src));
        let Ok(program) = resolve::resolve(&module, &case.src) else { return Ok(()) };
        let view = program.tensors.iter().find(|(_, t)| t.name.as_deref() == Some("v"));
        let Some((_, view)) = view else { return Ok(()) };
        case.compare(&program, view)?;
        count(&seen, true);
        count(&bounded, !view.bounds.is_empty());
        count(&partial, case.model.elements.iter().any(Option::is_none));
        count(&dropped, case.src.contains("if (") && view.bounds.is_empty());
        Ok(())
    });
    if let Err(e) = outcome {
        panic!("{e}");
    }
    let [seen, bounded, partial, dropped] = [seen, bounded, partial, dropped].map(|c| c.get());
    assert!(
        seen > 1000 && bounded > 300 && partial > 200 && dropped > 20,
        "too few: {seen} views, {bounded} with bounds, {partial} of parts, {dropped} within \
         conditions"
    );
}

/// The view `%v` of a text, or the errors.
fn view(src: &str) -> Result<Tensor, String> {
    let module = text::parse(src).unwrap_or_else(|e| panic!("{e}\n{src}"));
    let program = resolve::resolve(&module, src).map_err(|e| e.to_string())?;
    let found = program.tensors.iter().find(|(_, t)| t.name.as_deref() == Some("v"));
    Ok(found.map(|(_, t)| t.clone()).unwrap_or_else(|| panic!("no view in\n{src}")))
}

/// Coordinates have no bound, even after the only element of a mode.
#[test]
fn coordinates_count_on() {
    for (shape, axis, by) in [("1,20", 0, "4,8"), ("20,1", 1, "8,4"), ("(1,1),20", 0, "4,8")] {
        let src =
            format!("carbyne 2\n%X:[{shape}].f32.GL\n%v = %X.iota({axis}).tile([{by}])[0, 0]\n");
        let v = view(&src).unwrap();
        assert!(v.bounds.is_empty(), "{src}");
        let layout = v.concat().to_fixed().unwrap();
        let found: Vec<i64> = (0..layout.size()).map(|e| layout.at(e)).collect();
        let want: Vec<i64> = (0..32).map(|e| if axis == 0 { e % 4 } else { e / 8 }).collect();
        assert_eq!(found, want, "{src}");
    }
}

#[test]
fn maps_are_of_tensors_that_end_where_they_say() {
    let text = |by: i64| {
        format!("carbyne 2\n%A:[64,100].f16.GL\n%v = %A.tile([64,{by}])[0, 1].tensormap([16,16])\n")
    };
    assert!(view(&text(50)).is_ok());
    assert!(view(&text(64)).is_err_and(|e| e.contains("partial tiles")));
}

/// Elements at coordinates in a list: those after the end of the list do not exist.
#[test]
fn lists_of_coordinates_end_where_they_do() {
    let src = "carbyne 2
%A:[64,20].f32.GL
%rows:[10].i32.GL in 0..64
%B:[1].f32.GL
Spec @f <<<#grid:[@b < 2], #cta:[@t < 4]>>> (%A, %rows) -> (%B) {
  %mine = %rows.tile([8])[@b]
  %v = %A[%mine, _].tile([3,8])[2, 2]
}
";
    let v = view(src).unwrap();
    // The end of the list, and the ends of both modes.
    assert_eq!(v.bounds.len(), 3, "{:?}", v.bounds);
    let shape = v.concat().shape();
    assert!(v.bounds.iter().all(|b| b.concat().shape() == shape), "{:?}", v.bounds);
}
