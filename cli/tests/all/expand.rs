//! Tests `fmt --expand`, which writes omitted parts such as types and strides: the expanded text is
//! an equal program.

use crate::support::{carbyne, none, root, shown, texts_under};
use carbyne_ir::program::{Program, show_levels};
use carbyne_ir::{expand, resolve, text};

/// The program as text that does not depend on its arena.
fn summary(p: &Program) -> String {
    let mut out = String::new();
    for (id, t) in p.tensors.iter() {
        let buffer = &p.buffers[t.buffer];
        out.push_str(&format!(
            "{id} {:?} {} {} + {} {}\n",
            t.name,
            buffer.name,
            show_levels(&p.arena, &t.levels),
            p.arena.display(t.offset),
            p.arena.display(buffer.cosize),
        ));
    }
    for (id, t) in p.threads.iter() {
        let levels = show_levels(&p.arena, &t.levels);
        out.push_str(&format!("{id} {:?} {levels} + {}\n", t.name, p.arena.display(t.offset)));
    }
    format!("{out}{:?}", p.specs.len())
}

/// Expands a text and checks the result.
fn check(source: &str) -> Result<String, String> {
    let module = text::parse(source).map_err(|e| format!("{e:?}"))?;
    let module = resolve::elaborate(&module, source).map_err(|e| format!("{e:?}"))?;
    let program = resolve::resolve(&module, source).map_err(|e| format!("{e:?}"))?;
    let once = text::print(&expand::expand(&module, &program));
    let module = text::parse(&once).map_err(|e| format!("{e:?}\n{once}"))?;
    let again = resolve::resolve(&module, &once).map_err(|e| format!("{e:?}\n{once}"))?;
    let (before, after) = (summary(&program), summary(&again));
    if before != after {
        return Err(carbyne::unified_diff::diff("before", "after", &before, &after));
    }
    let twice = text::print(&expand::expand(&module, &again));
    if twice != once {
        return Err(carbyne::unified_diff::diff("once", "twice", &once, &twice));
    }
    Ok(once)
}

#[test]
fn types_and_strides_are_stated() {
    let source = "\
carbyne 2
sym K{div=64}
let M = 64
%A:[M,K].f16.GL
#grid:[4].block
#cta:[(32,4):(1,32)].thread
Move @f <<<#grid, #cta>>> (%A) -> (%A) {
  @b = #grid.indices()
  #w = #cta.tile([32, _])
  #one = #cta.scalar()
  @l, @y = #cta.indices()
  Allocate %s:[8,(2,4)].f16.SH
  Allocate %o:[8,8].f16.SH{?}
  Allocate %d:[8,16].f32.RF{tv=((4,8,4),1):((1,4,32),0) over #cta}
  %t:[M / 8,_K].[8,64].f16.GL = %A.tile([8,64])
  %u = %t[@b, 0]
  %v = %u[@l / 4, _]
  %x = %v[@y]
  %p = %o.tile([4,4])
  %m = %d.mine
}
";
    let source = source.replace("_K", "K / 64");
    expect_test::expect![[r#"
        carbyne 2
        sym K{div=64}
        let M = 64
        %A:[(M,K):(K,1)].f16.GL
        #grid:[4:1].block
        #cta:[(32,4):(1,32)].thread
        Move @f <<<#grid, #cta>>> (%A) -> (%A) {
          @b = #grid.indices()
          #w:[(1,1):(0,0)].[(32,4):(1,32)].thread = #cta.tile([32,_])
          #one:[].thread = #cta.scalar()
          @l, @y = #cta.indices()
          Allocate %s:[(8,(2,4)):(8,(4,1))].f16.SH
          Allocate %o:[8,8].f16.SH{?}
          Allocate %d:[8,16].f32.RF{tv=((4,8,4),1):((1,4,32),0) over #cta}
          %t:[(M / 8,K / 64):(K * 8,64)].[(8,64):(K,1)].f16.GL = %A.tile([8,64])
          %u:[(8,64):(K,1)].f16.GL = %t[@b, 0]
          %v:[64:1].f16.GL = %u[@l / 4, _]
          %x:[].f16.GL = %v[@y]
          %p:[2,2].[4,4].f16.SH = %o.tile([4,4])
          %m:[1:0].f32.RF = %d.mine
        }
    "#]]
    .assert_eq(&check(&source).unwrap());
}

#[test]
fn examples_and_filetests_mean_the_same_expanded() {
    let mut files = texts_under(&root().join("examples"));
    files.extend(texts_under(&root().join("cli/tests/filetests")));
    let mut failures = vec![];
    for file in files {
        let path = file.display().to_string();
        if carbyne(&["check", &path], "").code != 0 {
            continue; // Its errors are tested elsewhere.
        }
        let mut source = std::fs::read_to_string(&file).unwrap();
        if source.contains("\nimport ") {
            source = carbyne(&["fmt", "--expand", &path, "-o", "-"], "").ok().text().to_owned();
        }
        failures.extend(check(&source).err().map(|e| format!("{}: {e}", shown(&file))));
    }
    none(failures);
}

#[test]
fn levels_lie_inside_each_other_without_gaps() {
    let source = "carbyne 2\n%A:[4].[2].[8,16].f16.GL\n%B:[4].[2].[(8,16):(1,10)].f16.GL\n";
    let expanded = check(source).expect("it resolves");
    assert!(expanded.contains("%A:[4:256].[2:128].[(8,16):(16,1)].f16.GL"), "{expanded}");
    // For given strides, the size of the level is the codomain: 7 + 15 * 10 + 1.
    assert!(expanded.contains("%B:[4:316].[2:158].[(8,16):(1,10)].f16.GL"), "{expanded}");
}
