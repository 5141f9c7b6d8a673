//! Tests the comments that say which accesses a synchronization statement orders. A statement whose
//! comment says that it orders nothing can be left out: the checker proves the kernel without it. A
//! normal run takes a random third of the correct programs.

use crate::corpus::{Case, cases};
use crate::support::{complaints, program, reports, right};
use carbyne_ir::ast::{Expr, Module, Name, Stmt, StmtKind};
use carbyne_ir::program::Program;
use carbyne_ir::testing;
use carbyne_ir::text;
use carbyne_remedy::{comments, is_comment};
use std::collections::BTreeMap;

/// The comment of each synchronization statement, by the position of the statement.
fn said(case: &Case, program: &Program) -> BTreeMap<u32, String> {
    let reports = reports(program, case.arch);
    let all: Vec<_> = program.kernels.iter().copied().zip(reports).collect();
    comments(program, &all)
}

/// The module without the statement at a position.
fn without(module: &Module, start: u32) -> Module {
    let mut module = module.clone();
    remove(&mut module.items, start);
    module
}

fn remove(list: &mut Vec<Stmt>, start: u32) {
    let n = list.len();
    list.retain(|s| s.span.start != start);
    if list.is_empty() && n > 0 {
        // An empty body is another error.
        let nothing = vec![(Name::new("left_out"), Expr::int(0))];
        list.push(Stmt::new(StmtKind::Let(nothing)));
    }
    let bodies = list.iter_mut().flat_map(|s| s.kind.bodies_mut());
    bodies.for_each(|b| remove(&mut b.stmts, start));
}

#[test]
#[expect(clippy::print_stdout, reason = "says how many there are")]
fn statements_that_order_nothing_can_be_left_out() {
    let mut wrong = vec![];
    let (mut idle, mut all) = (0, 0);
    let drawn = |case: &&Case| testing::one_in(3, &format!("{} {}", case.name, case.arch));
    for case in cases().iter().filter(drawn) {
        let module = text::parse(&case.text).unwrap();
        for (start, comment) in said(case, &right(&case.text)) {
            assert!(is_comment(&comment), "{comment}");
            all += 1;
            if comment.contains(" line ") {
                continue;
            }
            idle += 1;
            let less = text::print(&without(&module, start));
            let less = text::parse(&less).unwrap();
            let src = text::print(&less);
            let Some(program) = program(&less, &src) else { continue };
            let line = case.text[..start as usize].lines().count();
            for report in reports(&program, case.arch) {
                let mut said = complaints(&program, &report);
                // PTX wants a fence before the first `wgmma`, even if no thread has used registers.
                said.retain(|s| !s.contains("no `wgmma.fence` stands before"));
                if !said.is_empty() {
                    wrong.push(format!("{} {} line {line}: {said:?}", case.name, case.arch));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{idle} of {all} order nothing:\n{}", wrong.join("\n"));
    println!("{idle} of {all} order nothing");
}

/// The second of two equal statements in a row passes nothing on.
#[test]
fn a_repeated_statement_orders_nothing() {
    const TEXT: &str = "carbyne 2
%in:[64].f32.GL
%out:[64].f32.GL
Spec @f <<<#grid:[1], #cta:[@t < 64]>>> (%in) -> (%out) {
  #one = #cta.scalar()
  Allocate %s:[64].f32.SH
  Allocate %x:[1].f32.RF
  Move <<<#one>>> (%in[@t]) -> (%s[@t]) atom=cp.async.ca.b32
  async.commit
  async.commit
  async.wait(0)
  async.wait(0)
  fence.async
  barrier
  barrier
  Move <<<#one>>> (%s[63 - @t]) -> (%x[0]) atom=ld.shared.b32
  Move <<<#one>>> (%x[0]) -> (%out[@t]) atom=st.global.b32
}
";
    let (group, name, arch) = ("", String::new(), carbyne_atoms::Arch::Sm90a);
    let case = Case { group, name, arch, text: TEXT.to_owned() };
    let said = said(&case, &right(TEXT));
    let orders = "orders: what line 8 copies to %s, before line 16 reads it";
    let nothing = "orders nothing that is proved";
    let all: Vec<&str> = said.values().map(|s| s.split(';').next().unwrap_or("")).collect();
    assert_eq!(all, [orders, nothing, orders, nothing, nothing, orders, nothing], "{said:?}");
}
