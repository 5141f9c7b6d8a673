//! Tests that the checker does not prove programs in which the simulator finds an ordering error.
//! The test deletes, moves, modifies or doubles one synchronization statement of a correct program,
//! or gives its rings one stage less; a normal run takes a part of these changes. If the simulator
//! reports an ordering error under any schedule, the checker must not have proved everything. Its
//! answer must not change if it follows every iteration. A second test takes wrong programs from
//! the filetests of the simulator.

use crate::corpus::{Case, cases};
use crate::support::{program, reports};
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::{BinOp, Expr, Module, Name, Stmt, StmtKind, SyncArg, SyncOp};
use carbyne_ir::diag::Code;
use carbyne_ir::program::Program;
use carbyne_ir::testing;
use carbyne_ir::text;
use carbyne_simulate::{Options, simulate};
use carbyne_sync::{Limits, check};
use std::collections::BTreeMap;

/// A change of one statement, selected by its number among all synchronization statements.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Delete,
    Earlier,
    Later,
    Parity,
    Fewer,
    More,
    Double,
}

const CHANGES: [Change; 7] = [
    Change::Delete,
    Change::Earlier,
    Change::Later,
    Change::Parity,
    Change::Fewer,
    Change::More,
    Change::Double,
];

fn synchronizes(stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Barrier(_) | StmtKind::Sync { .. })
}

/// Visits every list of statements, outer ones first, until `visit` returns true.
fn lists(stmts: &mut Vec<Stmt>, visit: &mut dyn FnMut(&mut Vec<Stmt>) -> bool) -> bool {
    if visit(stmts) {
        return true;
    }
    let mut bodies = stmts.iter_mut().flat_map(|stmt| stmt.kind.bodies_mut());
    bodies.any(|b| lists(&mut b.stmts, visit))
}

/// The number of synchronization statements.
fn count(module: &Module) -> usize {
    let (mut copy, mut n) = (module.clone(), 0);
    lists(&mut copy.items, &mut |list| {
        n += list.iter().filter(|s| synchronizes(s)).count();
        false
    });
    n
}

/// The module with the changed statement, and the name of the statement; none if nothing changes.
fn changed(module: &Module, number: usize, change: Change) -> Option<(Module, String)> {
    let mut copy = module.clone();
    let (mut seen, mut done, mut what) = (0, false, String::new());
    lists(&mut copy.items, &mut |list| {
        let here: Vec<usize> = (0..list.len()).filter(|i| synchronizes(&list[*i])).collect();
        if number >= seen + here.len() {
            seen += here.len();
            return false;
        }
        let i = here[number - seen];
        what = match &list[i].kind {
            StmtKind::Sync { op, .. } => op.to_string(),
            _ => "barrier".to_owned(),
        };
        done = match change {
            Change::Delete => {
                list.remove(i);
                if list.is_empty() {
                    // An empty body is another error.
                    let nothing = vec![(Name::new("left_out"), Expr::int(0))];
                    list.push(Stmt::new(StmtKind::Let(nothing)));
                }
                true
            }
            Change::Earlier => i > 0 && exchange(list, i - 1),
            Change::Later => i + 1 < list.len() && exchange(list, i),
            Change::Double => {
                let again = list[i].kind.clone();
                list.insert(i, Stmt::new(again));
                true
            }
            Change::Parity | Change::Fewer | Change::More => renumber(&mut list[i], change),
        };
        true
    });
    done.then_some((copy, what))
}

fn exchange(list: &mut [Stmt], i: usize) -> bool {
    let same = list[i].kind == list[i + 1].kind;
    list.swap(i, i + 1);
    !same
}

fn renumber(stmt: &mut Stmt, change: Change) -> bool {
    let StmtKind::Sync { op, args } = &mut stmt.kind else { return false };
    let (by, wanted) = match op {
        SyncOp::MbarrierWait => (1, change == Change::Parity),
        SyncOp::MbarrierInit | SyncOp::MbarrierArrive => (1, change != Change::Parity),
        SyncOp::MbarrierExpect => (16, change != Change::Parity),
        SyncOp::AsyncWait | SyncOp::BulkWait | SyncOp::BulkWaitRead | SyncOp::WgmmaWait => {
            (1, change != Change::Parity)
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

/// Whether a code is about the order of accesses.
fn is_about_order(code: Code) -> bool {
    matches!(
        code,
        Code::Race
            | Code::Uninitialized
            | Code::Deadlock
            | Code::UnmetWait
            | Code::BarrierMisuse
            | Code::MissingFence
    )
}

/// The ordering error that the simulator reports under any of `schedules` schedules.
pub(crate) fn refuted(p: &Program, table: &AtomTable, schedules: u64) -> Option<(u64, String)> {
    /// Large programs run under fewer schedules.
    const LONG: std::time::Duration = std::time::Duration::from_secs(4);
    let start = std::time::Instant::now();
    for seed in 0..schedules {
        if start.elapsed() > LONG {
            break;
        }
        let options = Options {
            schedule: (seed > 0).then_some(seed),
            blocks: Some(1),
            check: false,
            shadow: false,
            ..Options::default()
        };
        match simulate(p, table, &options) {
            Err(e) if is_about_order(e.code) => {
                return Some((
                    seed,
                    format!("{} {e}: {} {:?}", e.code.as_str(), e.label, e.related),
                ));
            }
            // The error is not about order and is the same under all schedules.
            Err(_) if seed == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The outcome of one change.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The text is not a valid program.
    NoProgram,
    Refused,
    Undecided,
    /// The checker proves the program, and the simulator finds nothing.
    Proved,
    /// The checker proves the program, and the simulator refutes this.
    Wrong,
}

/// Texts in which the rings of one length have one stage less: in buffers, remainders and named
/// numbers.
fn shorter_rings(src: &str) -> Vec<(String, String)> {
    let mut out = vec![];
    for n in 2..=8 {
        let less = n - 1;
        let mut text = src.replace(&format!(":[{n}].["), &format!(":[{less}].["));
        text = text.replace(&format!(":[{n}:"), &format!(":[{less}:"));
        for (before, behind) in
            [("% ", ")"), ("% ", "]"), ("% ", "."), ("ST = ", ","), ("ST = ", "\n")]
        {
            let (from, to) = (format!("{before}{n}{behind}"), format!("{before}{less}{behind}"));
            text = text.replace(&from, &to);
        }
        if text != src {
            out.push((text, format!("rings of {less} instead of {n} stages")));
        }
    }
    out
}

/// Whether a program is refused when every iteration is followed; none if that takes too long.
fn refused_with_every_iteration(p: &Program, case: &Case) -> Option<bool> {
    let limits = Limits { accesses: 1 << 22, every_iteration: true };
    let table = AtomTable::new(case.arch);
    let reports: Vec<_> = p.kernels.iter().map(|k| check(p, *k, &table, &limits)).collect();
    let refused =
        |r: &carbyne_sync::Report| r.counts()[1] > 0 || r.faults.iter().any(|f| f.is_certain);
    if reports.iter().any(refused) {
        return Some(true);
    }
    reports.iter().all(carbyne_sync::Report::is_ordered).then_some(false)
}

fn judge(case: &Case, src: &str, schedules: u64) -> (Outcome, String) {
    let Ok(module) = text::parse(src) else { return (Outcome::NoProgram, String::new()) };
    let Some(p) = program(&module, src) else { return (Outcome::NoProgram, String::new()) };
    let reports = reports(&p, case.arch);
    let refused =
        |r: &carbyne_sync::Report| r.counts()[1] > 0 || r.faults.iter().any(|f| f.is_certain);
    if reports.iter().any(refused) {
        if refused_with_every_iteration(&p, case) == Some(false) {
            return (Outcome::Wrong, format!("refused, but not with every turn\n{src}"));
        }
        return (Outcome::Refused, String::new());
    }
    if !reports.iter().all(carbyne_sync::Report::is_ordered) {
        return (Outcome::Undecided, String::new());
    }
    if refused_with_every_iteration(&p, case) == Some(true) {
        return (Outcome::Wrong, format!("not with every turn\n{src}"));
    }
    match refuted(&p, &AtomTable::new(case.arch), schedules) {
        Some((seed, e)) => (Outcome::Wrong, format!("schedule {seed}: {e}\n{src}")),
        None => (Outcome::Proved, src.to_owned()),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "says how many there are")]
fn programs_that_the_simulator_refutes_are_not_proved() {
    // All changes take an hour.
    let all = testing::all();
    let schedules = if all { 100 } else { 4 };
    let (mut sum, mut wrong, mut drawn) = (BTreeMap::new(), vec![], 0usize);
    let mut all_cases: Vec<&Case> = cases().iter().collect();
    // Programs with pipelines come first.
    let is_plain = |c: &&Case| !c.text.contains(" % ");
    all_cases.sort_by_key(|c| (is_plain(c), c.text.len()));
    all_cases.dedup_by(|a, b| a.text == b.text);
    let start = std::time::Instant::now();
    for case in all_cases {
        if all {
            println!("{:?} {} {}: {sum:?}", start.elapsed(), case.name, case.arch);
        }
        for (mutant, what) in shorter_rings(&case.text) {
            if !all && case.name.starts_with("..") {
                continue;
            }
            let (outcome, why) = judge(case, &mutant, schedules);
            *sum.entry(outcome).or_insert(0usize) += 1;
            if outcome == Outcome::Wrong {
                wrong.push(format!("{} {}: {what}: {why}", case.name, case.arch));
            }
        }
        let module = text::parse(&case.text).unwrap();
        for number in 0..count(&module) {
            for change in CHANGES {
                let Some((mutant, what)) = changed(&module, number, change) else { continue };
                drawn += 1;
                let pipeline = case.name.contains("mutants");
                let every = if all {
                    1
                } else if pipeline {
                    7
                } else {
                    53
                };
                if drawn % every != 0 || !all && case.name.starts_with("..") {
                    continue;
                }
                let (outcome, why) = judge(case, &text::print(&mutant), schedules);
                *sum.entry(outcome).or_insert(0usize) += 1;
                if outcome == Outcome::Wrong {
                    wrong.push(format!(
                        "{} {}: {change:?} of {number} {what}: {why}",
                        case.name, case.arch
                    ));
                }
            }
        }
    }
    println!("{sum:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Programs whose order is wrong according to the simulator's own tests.
#[test]
#[expect(clippy::print_stdout, reason = "says how many there are")]
fn programs_that_are_known_to_race_are_not_proved() {
    let folder = crate::support::root().join("cli/tests/filetests/simulate");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let (mut n, mut proved, mut wrong) = (0, vec![], vec![]);
    for file in files {
        let src = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(module) = text::parse(&src) else { continue };
        let Some(p) = program(&module, &src) else { continue };
        let Some(arch) = carbyne_sync::arch_of(&p) else { continue };
        n += 1;
        if !reports(&p, arch).iter().all(carbyne_sync::Report::is_ordered) {
            continue;
        }
        match refuted(&p, &AtomTable::new(arch), 20) {
            // The element was never written at all, which no order would fix.
            Some((_, e)) if e.contains("was never written") => proved.push(name),
            Some((seed, e)) => wrong.push(format!("{name}, schedule {seed}: {e}")),
            None => proved.push(name),
        }
    }
    println!("{n} programs, of which {} are proved: {proved:?}", proved.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
