//! Tests that the simulator finds errors of synchronization: in correct pipelines, one
//! synchronization is removed, moved or changed. A second test removes each statement, of whatever
//! kind.
//!
//! The programs of `mutants/` are correct and run without a report. The comment after each
//! synchronization statement lists the expected code for every single mutation of the statement:
//! `// delete=S0502 later=S0502 earlier=ok(why it is as good)`, where S0502 is a race. Mutations
//! are: `delete`; `earlier` and `later`, past the neighboring statement, unless that is equal;
//! `parity` of a wait; `fewer` and `more` for arrivals of an init, bytes of an `expect`, and groups
//! of a wait. A mutation without a neighbor or a number does not exist. If the verifier refuses the
//! text, the code is the verifier's; `ok` must give a reason.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::ast::{BinOp, Expr, Module, Name, Stmt, StmtKind, SyncArg, SyncOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::{resolve, text, verify};
use carbyne_simulate::{Inputs, Options, simulate};
use std::collections::BTreeMap;

/// One mutation of one statement, which is given by its number among the synchronization
/// statements.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Delete,
    Earlier,
    Later,
    Parity,
    Fewer,
    More,
}

const CHANGES: [(Change, &str); 6] = [
    (Change::Delete, "delete"),
    (Change::Earlier, "earlier"),
    (Change::Later, "later"),
    (Change::Parity, "parity"),
    (Change::Fewer, "fewer"),
    (Change::More, "more"),
];

const PROGRAMS: [(&str, &str, Arch); 9] = [
    ("cp_async_in_place.cby", include_str!("../mutants/cp_async_in_place.cby"), Arch::Sm80),
    ("bulk_store.cby", include_str!("../mutants/bulk_store.cby"), Arch::Sm90a),
    ("cp_async_double.cby", include_str!("../mutants/cp_async_double.cby"), Arch::Sm80),
    ("mbarrier_ring.cby", include_str!("../mutants/mbarrier_ring.cby"), Arch::Sm90a),
    ("roles.cby", include_str!("../mutants/roles.cby"), Arch::Sm80),
    ("tma_ring.cby", include_str!("../mutants/tma_ring.cby"), Arch::Sm90a),
    ("tma_copy.cby", include_str!("../mutants/tma_copy.cby"), Arch::Sm90a),
    ("multicast.cby", include_str!("../mutants/multicast.cby"), Arch::Sm90a),
    ("wgmma.cby", include_str!("../mutants/wgmma.cby"), Arch::Sm90a),
];

fn synchronizes(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Barrier(_) | StmtKind::Sync { .. })
}

/// Visits every list of statements, outer ones first.
fn lists<'m>(stmts: &'m mut Vec<Stmt>, visit: &mut dyn FnMut(&mut Vec<Stmt>) -> bool) -> bool {
    if visit(stmts) {
        return true;
    }
    let mut bodies = stmts.iter_mut().flat_map(|stmt| stmt.kind.bodies_mut());
    bodies.any(|b| lists(&mut b.stmts, visit))
}

/// The synchronization statements, in the order of the lists: the text and the comment after the
/// statement.
fn marked(module: &Module, src: &str) -> Vec<(String, String)> {
    let mut all = vec![];
    let mut copy = module.clone();
    lists(&mut copy.items, &mut |list| {
        all.extend(list.iter().filter(|s| synchronizes(s)).map(|s| {
            let (line, _) = s.span.line_col(src);
            let text = src.lines().nth(line - 1).unwrap().split("//").next().unwrap().trim();
            (format!("line {line}: {text}"), s.trailing.clone().unwrap_or_default())
        }));
        false
    });
    all
}

/// The module with the mutated statement; none if the mutation does not exist.
fn changed(module: &Module, number: usize, change: Change) -> Option<Module> {
    let mut copy = module.clone();
    let (mut seen, mut done) = (0, false);
    lists(&mut copy.items, &mut |list| {
        let here: Vec<usize> = (0..list.len()).filter(|i| synchronizes(&list[*i])).collect();
        if number >= seen + here.len() {
            seen += here.len();
            return false;
        }
        let i = here[number - seen];
        done = match change {
            Change::Delete => {
                list.remove(i);
                if list.is_empty() {
                    // An empty body would be another error.
                    let nothing = vec![(Name::new("left_out"), Expr::int(0))];
                    list.push(Stmt::new(StmtKind::Let(nothing)));
                }
                true
            }
            Change::Earlier => i > 0 && exchange(list, i - 1),
            Change::Later => i + 1 < list.len() && exchange(list, i),
            Change::Parity | Change::Fewer | Change::More => renumber(&mut list[i], change),
        };
        true
    });
    done.then_some(copy)
}

/// Exchanges a statement with the next one. Resolution refuses a use before its declaration.
fn exchange(list: &mut [Stmt], i: usize) -> bool {
    let same = list[i].kind == list[i + 1].kind;
    list.swap(i, i + 1);
    !same
}

fn renumber(stmt: &mut Stmt, change: Change) -> bool {
    let StmtKind::Sync { op, args } = &mut stmt.kind else { return false };
    let (by, wanted) = match op {
        SyncOp::MbarrierWait => (1, change == Change::Parity),
        SyncOp::MbarrierInit => (1, change != Change::Parity),
        SyncOp::MbarrierExpect => (16, change != Change::Parity),
        // The wait allows one more group; with fewer groups, it only waits longer.
        SyncOp::AsyncWait | SyncOp::BulkWait | SyncOp::BulkWaitRead | SyncOp::WgmmaWait => {
            (1, change == Change::More)
        }
        _ => (0, false),
    };
    let Some(SyncArg::Number(n)) = args.last_mut().filter(|_| wanted) else { return false };
    let op = if change == Change::Fewer { BinOp::Sub } else { BinOp::Add };
    let sum = Expr::bin(op, n.clone(), Expr::int(by));
    *n = match change {
        Change::Parity => Expr::bin(BinOp::Mod, sum, Expr::int(2)),
        _ => sum,
    };
    true
}

/// The result `ok`, or the code of the first error.
fn outcome(module: &Module, table: &AtomTable, schedule: Option<u64>) -> (String, String) {
    let src = text::print(module);
    let fault = |code: &str, what: String| (code.to_owned(), format!("{what}\n{src}"));
    let program = match resolve::resolve(module, &src) {
        Ok(p) => p,
        Err(e) => {
            let first = e.into_vec().remove(0);
            return fault(first.code.as_str(), first.to_string());
        }
    };
    if let Some(first) = verify::verify(&program).into_vec().into_iter().next() {
        return fault(first.code.as_str(), first.to_string());
    }
    let options = Options { inputs: Inputs::Ints(7), schedule, ..Options::default() };
    match simulate(&program, table, &options) {
        Ok(_) => fault("ok", String::new()),
        Err(e) if is_about_two(&e) && e.related.is_empty() => {
            panic!("only one line of two is named: {e} ({})\n{src}", e.label)
        }
        Err(e) => fault(e.code.as_str(), format!("{e} ({}) {:?}", e.label, e.related)),
    }
}

/// Races and missing fences name two accesses, unless the second is the end of the block, or no
/// fence exists before.
fn is_about_two(e: &Diagnostic) -> bool {
    let alone = ["may end while", "an asynchronous MatMul without a fence before"];
    matches!(e.code, Code::Race | Code::MissingFence)
        && !alone.iter().any(|a| e.message.contains(a))
}

/// Parses expectations such as `delete=S0502 later=ok(it is waited for below)`.
fn expectations(comment: &str) -> BTreeMap<&str, &str> {
    let mut rest = comment.trim();
    let mut map = BTreeMap::new();
    while let Some((change, after)) = rest.split_once('=') {
        let end = match (after.find('('), after.find(' ')) {
            (Some(open), Some(space)) if open < space => {
                after.find(')').expect("a reason ends") + 1
            }
            (Some(_), None) => after.len(),
            (_, space) => space.unwrap_or(after.len()),
        };
        map.insert(change.trim(), &after[..end]);
        rest = after[end..].trim();
    }
    map
}

fn check(name: &str, src: &str, arch: Arch) -> (usize, Vec<String>) {
    let module = text::parse(src).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    assert_eq!(text::print(&module), src, "{name} is not formatted");
    let table = AtomTable::new(arch);
    let (code, why) = outcome(&module, &table, None);
    assert_eq!(code, "ok", "{name}: a correct program is reported: {why}");
    let (mut n, mut wrong) = (0, vec![]);
    for (number, (statement, comment)) in marked(&module, src).into_iter().enumerate() {
        let mut expected = expectations(&comment);
        for (change, word) in CHANGES {
            let Some(mutant) = changed(&module, number, change) else { continue };
            n += 1;
            let (code, why) = outcome(&mutant, &table, None);
            // Under other schedules, another error of this mutation may come first.
            for seed in 1..=3 {
                let (other, why) = outcome(&mutant, &table, Some(seed));
                if (other == "ok") != (code == "ok") {
                    let first = why.lines().next().unwrap_or("");
                    wrong.push(format!(
                        "{statement}: {word}={other} under schedule {seed}, {code} otherwise\n    \
                         {first}"
                    ));
                }
            }
            let want = expected.remove(word).unwrap_or("nothing");
            let reason = want.strip_prefix("ok(").is_some_and(|r| r.len() > 8);
            if !(want == code || code == "ok" && reason) {
                let first = why.lines().next().unwrap_or("");
                wrong.push(format!("{statement}: {word}={code}, expected {want}\n    {first}"));
            }
        }
        for left in expected.keys() {
            wrong.push(format!("{statement}: there is no change `{left}`"));
        }
    }
    (n, wrong)
}

#[test]
#[expect(clippy::print_stdout, reason = "says how many there are")]
fn every_mutation_is_reported_with_its_code() {
    let mut all = vec![];
    for (name, src, arch) in PROGRAMS {
        let (n, wrong) = check(name, src, arch);
        println!("{name}: {n} mutants, {} not as their comments say", wrong.len());
        all.extend(wrong.into_iter().map(|what| format!("{name}: {what}")));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

/// The module without a statement, which is given by its number in the order of the lists, and its
/// line; none for a kernel.
fn without(module: &Module, src: &str, number: usize) -> Option<(String, Option<Module>)> {
    let mut copy = module.clone();
    // Without its kernel, a program does nothing.
    let kernels = |s: &Stmt| matches!(&s.kind, StmtKind::Spec(spec) if spec.body.is_some());
    let top = copy.items.iter().position(kernels)?;
    let (mut seen, mut removed) = (0, None);
    lists(&mut copy.items, &mut |list| {
        if number < seen + list.len() {
            removed = Some((seen == 0 && number == top, list.remove(number - seen)));
            return true;
        }
        seen += list.len();
        false
    });
    let (is_kernel, stmt) = removed?;
    let (line, _) = stmt.span.line_col(src);
    let line = format!("line {line}: {}", src.lines().nth(line - 1)?.trim());
    Some((line, (!is_kernel).then_some(copy)))
}

#[test]
fn no_statement_can_be_left_out() {
    let mut all = vec![];
    for (name, src, arch) in PROGRAMS {
        let module = text::parse(src).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        let table = AtomTable::new(arch);
        for number in 0.. {
            let Some((statement, mutant)) = without(&module, src, number) else { break };
            let Some(mutant) = mutant else { continue };
            let (code, _) = outcome(&mutant, &table, None);
            if code == "ok" {
                all.push(format!("{name}: {statement}"));
            }
        }
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}
