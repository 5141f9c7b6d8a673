//! Tests `bind`, which decides whether an atom implements a leaf: it accepts the leaves of the
//! atoms' probes, and states the first difference for leaves that do not fit.

use carbyne_atoms::bind::{Mismatch, bind};
use carbyne_atoms::probe::{Choice, probe};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::{resolve, text};

fn program(src: &str) -> Program {
    let module = text::parse(src).unwrap_or_else(|e| panic!("{e:?}\n{src}"));
    resolve::resolve(&module, src).unwrap_or_else(|e| panic!("{e:?}\n{src}"))
}

/// The leaves that name an atom.
fn named(p: &Program) -> Vec<(SpecId, String)> {
    let leaf = |(id, spec): (SpecId, &carbyne_ir::program::Spec)| Some((id, spec.atom.clone()?));
    p.specs.iter().filter_map(leaf).collect()
}

#[test]
fn probes_bind_to_their_atoms() {
    let mut n = 0;
    for arch in Arch::ALL {
        let table = AtomTable::new(*arch);
        for atom in table.atoms() {
            let Ok(probe) = probe(atom, &table, Choice::default()) else { continue };
            let p = program(&probe.text);
            let leaves = named(&p);
            for (id, name) in &leaves {
                let row = table.get(name).unwrap_or_else(|| panic!("{arch} has no `{name}`"));
                let bound = bind(&p, *id, row)
                    .unwrap_or_else(|m| panic!("{arch}: `{name}`: {m}\n{}", probe.text));
                assert_eq!(bound.operands.len(), row.operands.len());
                assert_eq!(bound.bulk.is_some(), row.extent != carbyne_atoms::Extent::Tile);
                n += usize::from(*name == atom.name);
            }
        }
    }
    assert!(n > 1000, "{n} atoms");
}

/// The mismatch of `atom` with the only leaf of `body` that has no body. `%A` and `%B` have 4096
/// f16 elements in global memory.
fn mismatch(body: &str, atom: &str) -> Option<Mismatch> {
    let src = format!(
        "carbyne 2
sym N{{min=1, max=64}}
%A:[4096].f16.GL
%B:[4096].f16.GL
%E:[(N,8):(1,N)].f16.GL
%F:[(4,N,8):(8*N,8,1)].f16.GL
#grid:[4].block
#cta:[128].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %r:[8].f16.RF
  Allocate %f:[8].f32.RF
  Allocate %s:[1024].f16.SH{{swizzle=(3,3,3)}}
  {body}
}}
"
    );
    let p = program(&src);
    let leaf = p.specs.iter().find(|(_, s)| s.body.is_none()).map(|(id, _)| id);
    let table = AtomTable::new(Arch::Sm90a);
    bind(&p, leaf.unwrap(), table.find(atom).unwrap()).err()
}

#[test]
fn the_first_difference_is_reported() {
    for (body, atom, want) in [
        ("Move <<<#grid, #one>>> (%A.tile([8])[@t]) -> (%r)", "ld.global.b128", ""),
        ("Move <<<#grid, #one>>> (%A[@t]) -> (%r[0])", "fma.f16", "computes MatMul 1x1x1"),
        (
            "Init <<<#grid, #one>>> (1.0) -> (%f[0])",
            "init.f16",
            "operand D must be f16, but is f32",
        ),
        (
            "Move <<<#grid, #one>>> (%A[@t]) -> (%B[@t])",
            "mov.b16",
            "operand S must lie in RF, but lies in GL",
        ),
        ("Move <<<#grid, #cta>>> (%A) -> (%r)", "ld.global.b128", "needs each thread for itself"),
        (
            "Move <<<#grid, #one>>> (%A.tile([8])[@t]) -> (%r)",
            "ld.global.b64",
            "operand S needs 4 values per thread, found 8",
        ),
        (
            "Move <<<#grid, #one>>> (%A.reshape([8,512]:[512,1])[_,@t]) -> (%r)",
            "ld.global.b128",
            "values of operand S must be runs of 8 consecutive elements",
        ),
        (
            "Move <<<#grid, #one>>> (%A.reshape([2,2048]:[1,1])[_,@t]) -> (%r.tile([2])[1])",
            "ld.global.b32",
            "operand S must be aligned to 4 bytes, but is known to be aligned to 2",
        ),
        // This swizzle keeps four elements together.
        (
            "Move <<<#grid, #one>>> (%s.tile([8])[@t]) -> (%r)",
            "ld.shared.b128",
            "operand S must be aligned to 16 bytes, but is known to be aligned to 8",
        ),
        (
            "Move <<<#grid, #one>>> (%A.tile([8])[@t]) -> (%r) cache=evict_first",
            "ld.global.b128",
            "needs `cache=normal`",
        ),
        // If elements are consecutive for every N, the layout need not be known.
        ("Move <<<#grid, #one>>> (%F.tile([1,1,8])[0,0,0]) -> (%r)", "ld.global.b128", ""),
        (
            "Move <<<#grid, #one>>> (%E.tile([1,8])[0,0]) -> (%r)",
            "ld.global.b128",
            "values of operand S must be runs of 8 consecutive elements",
        ),
    ] {
        let found = mismatch(body, atom);
        match (&found, want) {
            (None, "") => {}
            (Some(m), want) if !want.is_empty() && m.to_string().contains(want) => {}
            _ => panic!("{body} atom={atom}: {found:?}, not {want}"),
        }
        assert!(found.is_none_or(|m| !m.help().is_empty()));
    }
}
