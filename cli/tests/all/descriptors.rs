//! Tests programs with `wgmma` on tiles in layouts that its shared-memory matrix descriptor can
//! express, with each consecutive mode and each swizzle: they compute their meaning and compile. A
//! normal run takes a random half of the programs. They stay in the build folder,
//! `tmp/descriptors`, so that `carbyne run` can execute them on a GPU.

use crate::support::{carbyne, none, scratch};
use carbyne_codegen::testing::require_nvrtc;
use carbyne_ir::testing;
use rayon::prelude::*;

/// The consecutive mode of a tile, and the width of its rows in bytes.
#[derive(Copy, Clone, PartialEq)]
struct Lay {
    along_k: bool,
    bytes: i64,
}

impl Lay {
    /// The name, such as `a_k128`.
    fn name(self, operand: char) -> String {
        format!("{operand}_{}{}", if self.along_k { "k" } else { "mn" }, self.bytes)
    }

    /// Shape and stride along mn and along k of `mn` by `k` elements of this many bits, and the
    /// attribute.
    fn leaves(self, mn: i64, k: i64, bits: i64) -> ([(String, String); 2], String) {
        let row = self.bytes * 8 / bits;
        let leaves = if self.along_k {
            [
                (format!("(8,{})", mn / 8), format!("({row},{})", 8 * row)),
                (format!("({row},{})", k / row), format!("(1,{})", row * mn)),
            ]
        } else {
            [
                (format!("({row},{})", mn / row), format!("(1,{})", row * k)),
                (format!("{k}"), format!("{row}")),
            ]
        };
        let swizzle = match self.bytes {
            16 => String::new(),
            wide => format!("{{swizzle=({},4,3)}}", (wide / 16).ilog2()),
        };
        (leaves, swizzle)
    }
}

/// The types of a product: the type of the factors, its bits, the accumulator's type, and k of one
/// instruction.
type Types = (&'static str, i64, &'static str, i64);

/// One tile of 64×128, four instructions deep, so that rows of 128 bytes hold all of them.
fn program(name: &str, (scalar, bits, acc, k): Types, a: Lay, b: Lay) -> String {
    let (depth, word) = (4 * k, bits);
    let (a_leaves, a_swizzle) = a.leaves(64, depth, bits);
    let (b_leaves, b_swizzle) = b.leaves(128, depth, bits);
    let level = |x: &(String, String), y: &(String, String)| {
        format!("[({},{}):({},{})]", x.0, y.0, x.1, y.1)
    };
    let a_level = level(&a_leaves[0], &a_leaves[1]);
    let b_level = level(&b_leaves[1], &b_leaves[0]);
    // Copies of A and of B, one element per thread; threads are consecutive along the rows.
    let copy = |from: &str, to: &str, rows: i64, cols: i64| {
        let across = 128 / rows;
        format!(
            "  Move <<<#grid, #cta>>> (%{from}) -> (%{to}) {{
    #t:[{rows},{across}].[1].thread = #cta.tile([1]).reshape([{rows},{across}]:[1,{rows}])
    @r, @c = #t.indices()
    for (i = 0; i < {}; i += 1) {{
      Allocate %x:[1].{scalar}.RF
      Move <<<#grid, #one>>> (%{from}.tile([1,1])[@r, i * {across} + @c])
          -> (%x) atom=ld.global.b{word}
      Move <<<#grid, #one>>> (%x)
          -> (%{to}.tile([1,1])[@r, i * {across} + @c]) atom=st.shared.b{word}
    }}
  }}\n",
            cols / across
        )
    };
    let pair = if acc == "f16" { 32 } else { 64 };
    format!(
        "carbyne 2
%A:[64,{depth}].{scalar}.GL
%B:[{depth},128].{scalar}.GL
%C:[64,128].{acc}.GL
#grid:[1].block
#cta:[128].thread
MatMul.set @{name} <<<#grid, #cta>>> (%A, %B) -> (%C) acc={acc} {{
  #one:[].thread = #cta.scalar()
  Allocate %As:{a_level}.{scalar}.SH{a_swizzle}
  Allocate %Bs:{b_level}.{scalar}.SH{b_swizzle}
{}{}  fence.async
  barrier
  Allocate %c:[64,128].{acc}.RF{{tv=((4,8,4),(2,2,16)):((128,1,16),(64,8,512)) over #cta}}
  wgmma.fence
  MatMul.set <<<#grid, #cta>>> (%As.tile([64,{k}])[0, 0], %Bs.tile([{k},128])[0, 0]) -> (%c.mine)
  for (s = 1; s < 4; s += 1) unroll {{
    MatMul <<<#grid, #cta>>> (%As.tile([64,{k}])[0, s], %Bs.tile([{k},128])[s, 0]) -> (%c.mine)
  }}
  wgmma.commit
  wgmma.wait(0)
  Move <<<#grid, #cta>>> (%c) -> (%C) {{
    %to:[2,32].{acc}.GL = %C.tv(((4,8,4),(2,(2,16))):((128,1,16),(64,(8,512))) over #cta)
    for (i = 0; i < 32; i += 1) unroll {{
      Move <<<#grid, #one>>> (%c.mine.reshape([2,32]:[1,2])[_, i])
          -> (%to[_, i]) atom=st.global.b{pair}
    }}
  }}
}}\n",
        copy("A", "As", 64, depth),
        copy("B", "Bs", depth, 128),
    )
}

#[test]
fn every_layout_with_a_descriptor_is_multiplied() {
    let folder = scratch("descriptors");
    let nvrtc = require_nvrtc().is_some();
    let layouts =
        [true, false].map(|along_k| [16, 32, 64, 128].map(|bytes| Lay { along_k, bytes }));
    let by_k = layouts[0];
    let widest = by_k[3];
    let mut programs: Vec<(Types, Lay, Lay)> = vec![];
    for lay in layouts.concat() {
        let f16 = ("f16", 16, "f32", 16);
        programs.extend([(f16, lay, widest), (("bf16", 16, "f32", 16), widest, lay)]);
        programs.push((("f16", 16, "f16", 16), lay, lay));
    }
    for lay in by_k {
        for types in [("tf32", 32, "f32", 8), ("e4m3", 8, "f32", 32), ("i8", 8, "i32", 32)] {
            programs.extend([(types, lay, widest), (types, widest, lay)]);
        }
    }
    let check = |(types, a, b): &(Types, Lay, Lay)| -> Result<(), String> {
        let name = format!("{}_{}_{}_{}", types.0, types.2, a.name('a'), b.name('b'));
        if !testing::one_in(2, &name) {
            return Ok(());
        }
        let text = program(&name, *types, *a, *b);
        let file = folder.join(format!("{name}.cby"));
        let decomposed = carbyne(&["decompose", "-", "--arch", "sm_90a"], &text);
        if decomposed.code != 0 {
            return Err(format!("{name}\n{}\n{text}", decomposed.stderr));
        }
        std::fs::write(&file, &decomposed.stdout).map_err(|e| e.to_string())?;
        let file = file.display().to_string();
        for inputs in testing::one_of(&name, &["--seed=7", "--ints=7"]) {
            let ran = carbyne(&["simulate", &file, "--arch", "sm_90a", inputs], "");
            if ran.code != 0 || !ran.stderr.contains("elements that the block wrote, and") {
                return Err(format!("{name} {inputs}\n{}", ran.stderr));
            }
        }
        if nvrtc {
            let ran = carbyne(&["compile", &file, "--arch", "sm_90a", "--emit", "cubin"], "");
            if ran.code != 0 || !ran.stderr.contains("no spills") {
                return Err(format!("{name}\n{}", ran.stderr));
            }
        }
        Ok(())
    };
    none(programs.par_iter().filter_map(|p| check(p).err()).collect());
}
