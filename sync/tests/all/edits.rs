//! Tests that the checker proves no wrong kernel, by random edits of the synchronization of
//! symbolic, persistent, clustered and ragged kernels (groups of different lengths). If the checker
//! proves an edited kernel, no run of the simulator may refute this. The checker is asked twice:
//! for all values of the symbols, and for one launch in which the symbols are numbers.
//!
//! Case `i` of a seed does not depend on the number of cases, so a short run judges the first cases
//! of a long run. The table of `docs/synchronization.md` has 2,000 cases of the seed 0:
//! `CARBYNE_CASES=2000 CARBYNE_SEED=0` compares it, and `BLESS=1` writes it. Shorter runs do not
//! touch the table.

mod change;
mod kernels;

use crate::corpus;
use crate::support::{complaints, program, reports};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::ast::{Expr, Module, Name, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::Program;
use carbyne_ir::{testing, text};
use carbyne_simulate::{Array, Options, simulate};
use change::Kind;
use kernels::{GROUPS, Kernel, Sizes, kernels};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// The number of cases of the table.
const WHOLE: u32 = 2000;
/// The number of cases of a normal run.
const FIRST: u32 = 30;
/// The most steps of a run of a kernel.
const STEPS: u64 = 1 << 28;

/// Splitmix64, which gives the same numbers on every machine.
pub(crate) struct Draw(u64);

impl Draw {
    fn of(seed: u64, case: u64) -> Draw {
        let mut draw = Draw(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ case);
        draw.next();
        draw
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[(self.next() % of.len() as u64) as usize]
    }
}

/// The verdict of the checker.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Refused,
    Undecided,
    Proved,
}

fn says(p: &Program, arch: Arch) -> Said {
    let reports = reports(p, arch);
    let refused =
        |r: &carbyne_sync::Report| r.counts()[1] > 0 || r.faults.iter().any(|f| f.is_certain);
    if reports.iter().any(|r| refused(r) || r.tried.iter().any(refused)) {
        return Said::Refused;
    }
    match reports.iter().all(carbyne_sync::Report::is_ordered) {
        true => Said::Proved,
        false => Said::Undecided,
    }
}

/// The module with numbers in place of symbols, as for one launch.
fn launch(module: &Module, sizes: &Sizes) -> Module {
    let mut copy = module.clone();
    for item in &mut copy.items {
        if matches!(item.kind, StmtKind::Symbols(_)) {
            let all = sizes.iter().map(|(n, v)| (Name::new(*n), Expr::int(*v)));
            item.kind = StmtKind::Let(all.collect());
        }
    }
    copy
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
enum Run {
    /// The outputs of the kernel.
    Ends(Vec<Option<Array>>),
    /// An ordering error.
    Order(String),
    /// Another error.
    Other(Code),
}

/// Whether an error is about order. A read of an element that no thread ever writes is not: it may
/// be the wrong element.
fn is_about_order(e: &Diagnostic) -> bool {
    match e.code {
        Code::Uninitialized => !e.message.contains("was never written"),
        Code::Race
        | Code::Deadlock
        | Code::UnmetWait
        | Code::BarrierMisuse
        | Code::MissingFence => true,
        _ => false,
    }
}

fn run(p: &Program, arch: Arch, sizes: &Sizes, schedule: Option<u64>) -> Run {
    let symbols = sizes.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect();
    let options = Options {
        schedule,
        symbols,
        check: false,
        shadow: false,
        budget: STEPS,
        ..Options::default()
    };
    match simulate(p, &AtomTable::new(arch), &options) {
        Ok(r) => {
            let names: Vec<String> = r.outputs.names().map(str::to_owned).collect();
            Run::Ends(names.iter().map(|n| r.outputs.get(n)).collect())
        }
        Err(e) if is_about_order(&e) => {
            Run::Order(format!("{} {}: {} {:?}", e.code.as_str(), e.message, e.label, e.related))
        }
        Err(e) => Run::Other(e.code),
    }
}

/// A kernel before edits, and its results.
struct Ready {
    module: Module,
    sites: BTreeMap<Kind, Vec<change::Site>>,
    /// The results for each of its sizes.
    right: Vec<Run>,
    /// The verdicts for all sizes and for each launch.
    said: Vec<Said>,
}

impl Ready {
    fn of(kernel: &Kernel) -> Ready {
        let text = kernel.text();
        let module = text::parse(&text).unwrap();
        let name = kernel.name();
        let mut said = vec![];
        let mut judge = |module: &Module| {
            let src = text::print(module);
            let module = text::parse(&src).unwrap();
            let p = program(&module, &src).unwrap_or_else(|| panic!("{name}\n{src}"));
            let all = says(&p, kernel.arch);
            let why = || -> Vec<String> {
                reports(&p, kernel.arch).iter().flat_map(|r| complaints(&p, r)).collect()
            };
            assert!(all != Said::Refused, "{name} is right, and is refused: {:?}\n{src}", why());
            said.push(all);
            p
        };
        let p = judge(&module);
        let mut right = vec![];
        for sizes in &kernel.sizes {
            judge(&launch(&module, sizes));
            let ends = run(&p, kernel.arch, sizes, None);
            assert!(matches!(&ends, Run::Ends(all) if all.iter().all(Option::is_some)), "{name}");
            right.push(ends);
        }
        let mut sites = BTreeMap::new();
        for site in change::sites(&module, kernel.blocks, &text) {
            sites.entry(site.kind).or_insert_with(Vec::new).push(site);
        }
        Ready { module, sites, right, said }
    }
}

/// The outcome of a case.
struct Judged {
    group: &'static str,
    kind: Kind,
    /// The verdicts for all values and for launches.
    said: Said,
    launches: Said,
    /// An ordering error in some run.
    refuted: Option<String>,
    /// Whether some run gives another value or another error.
    is_wrong: bool,
    /// The contradiction between a proof and a run.
    silent: Option<String>,
    name: String,
}

/// Draws edits until one gives a different valid program.
fn edit(ready: &Ready, kernel: &Kernel, draw: &mut Draw) -> Option<(Kind, String, Module, String)> {
    let kinds: Vec<Kind> = ready.sites.keys().copied().collect();
    let before = text::print(&ready.module);
    for _ in 0..64 {
        if kinds.is_empty() {
            return None;
        }
        let kind = *draw.one(&kinds);
        let site = draw.one(&ready.sites[&kind]);
        let Some(edited) = change::apply_edit(&ready.module, site) else { continue };
        let src = text::print(&edited);
        let Ok(module) = text::parse(&src) else { continue };
        if src == before || program(&module, &src).is_none() {
            continue;
        }
        return Some((kind, format!("{} {site:?}", kernel.name()), module, src));
    }
    None
}

fn judge(kernel: &Kernel, ready: &Ready, draw: &mut Draw) -> Option<Judged> {
    let (kind, name, module, src) = edit(ready, kernel, draw)?;
    let p = program(&module, &src)?;
    let said = says(&p, kernel.arch);
    let of_launch: Vec<Said> = kernel
        .sizes
        .iter()
        .map(|sizes| {
            if sizes.is_empty() || said == Said::Refused {
                return said;
            }
            let src = text::print(&launch(&module, sizes));
            let module = text::parse(&src).unwrap();
            // A number may expose an error that a symbol hides.
            program(&module, &src).map_or(Said::Undecided, |p| says(&p, kernel.arch))
        })
        .collect();
    let refused = said == Said::Refused || of_launch.contains(&Said::Refused);
    let (mut refuted, mut is_wrong, mut silent) = (None, false, None);
    if said == Said::Proved && of_launch.contains(&Said::Refused) {
        silent = Some("proved for all values, and refused for some".to_owned());
    }
    let mut schedules = vec![None];
    schedules.extend((0..3).map(|_| Some(draw.next() % 1_000_000)));
    // Two runs suffice for an edit that is refused.
    let runs: &[usize] = if refused { &[2] } else { &[4, 2] };
    for (i, (sizes, runs)) in kernel.sizes.iter().zip(runs).enumerate() {
        let mut first: Option<Run> = None;
        for schedule in schedules.iter().take(*runs) {
            let ends = run(&p, kernel.arch, sizes, *schedule);
            // The edited kernel computes something else, whatever the order.
            if refused && ends != ready.right[i] && !matches!(ends, Run::Order(_)) {
                is_wrong = true;
                break;
            }
            let fault = match (&ends, &first) {
                (Run::Order(why), _) => Some(why.clone()),
                (now, Some(first)) if now != first => Some(format!(
                    "what it computes depends on the schedule: {:?}",
                    matches!(now, Run::Ends(_))
                )),
                _ => None,
            };
            is_wrong |= ends != ready.right[i] && fault.is_none();
            if let Some(why) = fault {
                let why = format!("{sizes:?}, schedule {schedule:?}: {why}");
                if said == Said::Proved || of_launch[i] == Said::Proved {
                    silent.get_or_insert(format!("{said:?}, {:?}: {why}", of_launch[i]));
                }
                refuted.get_or_insert(why);
                break;
            }
            first.get_or_insert(ends);
        }
    }
    let launches = match () {
        () if of_launch.contains(&Said::Refused) => Said::Refused,
        () if of_launch.contains(&Said::Undecided) => Said::Undecided,
        () => Said::Proved,
    };
    let silent = silent.map(|s| format!("{s}\n{src}"));
    Some(Judged { group: kernel.group, kind, said, launches, refuted, is_wrong, silent, name })
}

/// The numbers of one row of the table.
#[derive(Default, Clone)]
struct Row([usize; 8]);

impl Row {
    fn add(&mut self, j: &Judged) {
        let refused = j.said == Said::Refused || j.launches == Said::Refused;
        let proved = j.said == Said::Proved;
        let launch = !proved && !refused && j.launches == Said::Proved;
        let undecided = !refused && !proved && !launch;
        let found = j.refuted.is_some();
        let add = [
            true,
            refused,
            refused && (found || j.is_wrong),
            undecided,
            undecided && found,
            !refused && proved,
            launch,
            !refused && !undecided && !found && j.is_wrong,
        ];
        self.0.iter_mut().zip(add).for_each(|(n, a)| *n += usize::from(a));
    }
}

fn table(judged: &[Judged]) -> String {
    let mut out = String::from(
        "| | edits | refused | of these wrong in a run | undecided | of these refuted | \
         proved for all sizes | proved of each launch | of both with other values |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut row = |name: &str, of: &dyn Fn(&Judged) -> bool| {
        let mut row = Row::default();
        judged.iter().filter(|j| of(j)).for_each(|j| row.add(j));
        let cells: Vec<String> = row.0.iter().map(usize::to_string).collect();
        out.push_str(&format!("| {name} | {} |\n", cells.join(" | ")));
    };
    for group in GROUPS {
        row(group, &|j| j.group == group);
    }
    for kind in Kind::ALL {
        row(kind.words(), &|j| j.kind == kind);
    }
    row("all", &|_| true);
    out
}

#[test]
#[expect(clippy::print_stdout, reason = "says how many there are")]
fn edited_synchronization_is_not_proved_where_a_run_refutes_it() {
    let seed = testing::seed();
    let n = testing::cases(testing::count(FIRST, WHOLE)) as usize;
    let all = kernels();
    let ready: Vec<OnceLock<Ready>> = all.iter().map(|_| OnceLock::new()).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![]));
    let work = || loop {
        let case = next.fetch_add(1, Ordering::Relaxed);
        if case >= n {
            return;
        }
        let mut draw = Draw::of(seed, case as u64);
        let group = GROUPS[case % GROUPS.len()];
        let own: Vec<usize> = (0..all.len()).filter(|k| all[*k].group == group).collect();
        let k = *draw.one(&own);
        let kernel = &all[k];
        let ready = ready[k].get_or_init(|| Ready::of(kernel));
        let begin = std::time::Instant::now();
        let judged = judge(kernel, ready, &mut draw);
        if let Some(j) = &judged
            && n > FIRST as usize
        {
            println!(
                "{case} {:?} {:?} {:?} {} {} {}",
                begin.elapsed(),
                j.said,
                j.launches,
                j.refuted.as_deref().unwrap_or("-"),
                j.is_wrong,
                j.name
            );
        }
        done.lock().unwrap().push((case, judged));
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(case, _)| *case);
    let silent: Vec<String> = done
        .iter()
        .filter_map(|(case, j)| {
            let j = j.as_ref()?;
            let why = j.silent.as_ref()?;
            Some(format!("case {case}: {}: {why}", j.name))
        })
        .collect();
    let judged: Vec<Judged> = done.into_iter().filter_map(|(_, j)| j).collect();
    let unedited: Vec<(String, &[Said])> = all
        .iter()
        .zip(&ready)
        .filter_map(|(k, r)| Some((k.name(), r.get()?.said.as_slice())))
        .collect();
    let table = table(&judged);
    println!("{unedited:?}\n{table}");
    assert_eq!(judged.len(), n, "some kernels have nothing to edit");
    let refused = judged.iter().filter(|j| j.launches == Said::Refused).count();
    let found = judged.iter().filter(|j| j.refuted.is_some()).count();
    assert!(3 * refused > n && 3 * found > n, "{refused} refused, {found} refuted of {n}");
    assert!(silent.is_empty(), "proved, and refuted:\n{}", silent.join("\n"));
    if n == WHOLE as usize && seed == 0 {
        corpus::fresh_between("edits", &table);
    }
}
